"""What nobody waits for is gathered for a moment: a message and a flush for many, not for each."""

import asyncio

import pytest

from client.fake_group import fake_group, stored
from logbroker.client.held_leases import LARGE_BYTES
from logbroker.client.settlement_pause import GATHER_MS
from logbroker.testing.clock import ManualClock
from logbroker.v1 import consume_service_pb2 as pb
from logbroker.v1 import group_pb2


async def read(consumer, count):
    """Reads so many batches of one record, and asks for the next: then all of them are done."""
    for _ in range(count):
        await anext(consumer)
    return asyncio.create_task(anext(consumer))


async def test_what_is_done_within_a_moment_is_settled_by_one_request():
    clock = ManualClock()
    async with (
        fake_group(clock=clock) as (group, client),
        client.consumer("g", "t") as consumer,
    ):
        member = await group.member()
        for number in range(5):
            member.deliver(number, [b"v"], token=1 + number)
        asking = await read(consumer, 5)
        await clock.advance(0)
        assert not member.was_asked.is_set()
        await clock.advance(GATHER_MS)
        request = await member.wait_for("settle")
        assert [one.first_offset for one in request.settle.settlements] == [0, 1, 2, 3, 4]
        asking.cancel()


@pytest.mark.parametrize("limit", [1, 8])
async def test_it_goes_at_once_where_half_of_what_may_be_outstanding_is(limit):
    async with (
        fake_group(clock=ManualClock()) as (group, client),
        client.consumer("g", "t", max_outstanding_records=limit) as consumer,
    ):
        member = await group.member()
        member.deliver(0, [b"v"] * -(-limit // 2))
        asking = await read(consumer, -(-limit // 2))
        await member.wait_settled(1)
        asking.cancel()


async def test_it_goes_at_once_behind_a_large_batch():
    async with (
        fake_group(clock=ManualClock()) as (group, client),
        client.consumer("g", "t") as consumer,
    ):
        member = await group.member()
        member.deliver(0, [bytes(LARGE_BYTES)])
        asking = await read(consumer, 1)
        await member.wait_settled(1)
        asking.cancel()


async def test_the_answer_to_one_request_does_not_send_the_next():
    clock = ManualClock()
    async with (
        fake_group(clock=clock) as (group, client),
        client.consumer("g", "t") as consumer,
    ):
        member = await group.member()
        member.confirms.clear()
        member.deliver(0, [b"v"])
        await anext(consumer)
        flushing = asyncio.create_task(consumer.commit())
        await member.was_asked.wait()
        member.deliver(1, [b"v"], token=2)
        asking = await read(consumer, 1)
        member.confirms.set()
        await flushing
        await clock.advance(0)
        assert member.settled() == [0]
        await clock.advance(GATHER_MS)
        assert await member.wait_settled(2) == [0, 1]
        asking.cancel()


async def test_it_goes_at_once_where_the_next_record_of_a_key_waits_for_it():
    async with (
        fake_group(group_pb2.ORDER_KEY, clock=ManualClock()) as (group, client),
        client.consumer("g", "t") as consumer,
    ):
        member = await group.member()
        member.deliver(0, [b"v"], keys=[b"k"])
        asking = await read(consumer, 1)
        await member.wait_settled(1)
        asking.cancel()


async def test_it_goes_at_once_for_what_came_before_as_suspects_come_alone():
    async with (
        fake_group(clock=ManualClock()) as (group, client),
        client.consumer("g", "t") as consumer,
    ):
        member = await group.member()
        again = pb.LeasedRange(first_offset=0, end_offset=1, delivery_number=2)
        member.deliver(0, [b"v"], ranges=[again])
        asking = await read(consumer, 1)
        await member.wait_settled(1)
        asking.cancel()


@pytest.mark.parametrize("verb", ["flush", "commit", "acknowledge", "close"])
async def test_who_waits_for_it_waits_for_nothing_else(verb):
    async with (
        fake_group(clock=ManualClock()) as (group, client),
        client.consumer("g", "t") as consumer,
    ):
        member = await group.member()
        for number in range(2):
            member.deliver(number, [b"v"], token=1 + number)
        await anext(consumer)
        last = await anext(consumer)
        if verb == "acknowledge":
            await consumer.acknowledge(last)
        else:
            await getattr(consumer, verb)()
        assert 0 in await member.wait_settled(1)


async def test_what_a_handler_has_done_is_gathered_too():
    clock, handled = ManualClock(), asyncio.Semaphore(0)

    async def handle(record):
        handled.release()

    async with fake_group(clock=clock) as (group, client), client.worker("g", "t", handle):
        member = await group.member()
        for number in range(3):
            member.deliver(number, [b"v"], token=1 + number)
        for _ in range(3):
            await handled.acquire()
        await clock.advance(0)
        await clock.advance(GATHER_MS)
        request = await member.wait_for("settle")
        assert len(request.settle.settlements) == 3


async def test_who_waits_for_a_record_does_not_wait_for_those_of_its_lease_that_may():
    async with (
        fake_group(clock=ManualClock()) as (group, client),
        client.consumer("g", "t") as consumer,
    ):
        member = await group.member()
        member.deliver(0, [b"v"] * 2, batches=[stored(0, [b"v"]), stored(1, [b"v"])])
        first = await anext(consumer)
        second = await anext(consumer)  # now the first one is done
        assert first.run.lease is second.run.lease
        await consumer.acknowledge(second)
        assert 1 in member.settled()


async def test_a_flush_of_nothing_makes_nothing_that_comes_later_go_at_once():
    clock = ManualClock()
    async with (
        fake_group(clock=clock) as (group, client),
        client.consumer("g", "t") as consumer,
    ):
        member = await group.member()
        await consumer.flush()
        await clock.advance(0)
        member.deliver(0, [b"v"])
        asking = await read(consumer, 1)
        consumer.set_limits(500, 1 << 20)  # wakes who writes
        await member.wait_for("limits")
        await clock.advance(0)
        assert not member.was_asked.is_set()
        asking.cancel()
