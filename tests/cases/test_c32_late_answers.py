"""C32: an answer that comes after its lease is over changes nothing, and its giver hears of it."""

import asyncio

import pytest
from server.calls import serving
from server.members import ACK, REJECT, RELEASE, RETRY, Delivered, member_on, publish

from cases.grouped import check_nothing_left
from logbroker.client import Client
from logbroker.group.settings import GroupSettings
from logbroker.testing.clock import ManualClock
from logbroker.testing.running_broker import running_broker
from logbroker.v1 import consume_service_pb2 as pb
from logbroker.v1 import group_pb2

SETTINGS = {"order": group_pb2.ORDER_NONE, "lease_ms": 2_000, "retry_initial_ms": 1}


async def test_c32_an_old_token_is_worth_nothing_and_the_new_lease_is_untouched():
    clock = ManualClock()
    async with (
        serving(partition_count=1, clock=clock) as calls,
        member_on(calls, limits=1, **SETTINGS) as a,
    ):
        await publish(calls, b"m")
        late = await a.delivery()
        await a.limit(0)
        async with member_on(calls, limits=1) as b:
            await clock.advance(3_000)
            held = await b.delivery()
            assert (held.values, held.numbers, held.failures) == ([b"m"], [2], [1])
            assert held.token != late.token
            for outcome in (ACK, RETRY, RELEASE, REJECT):
                assert (await a.settle(late, outcome)).error.reason == "LEASE_LOST"
            assert (await a.extend(late)).error.reason == "LEASE_LOST"
            assert a.taken_back == [(late.token, 0, 1)]
            assert (await b.settle(held)).committed_offset == 1
            assert not b.taken_back
            assert (await a.settle(late)).error.reason == "LEASE_LOST", "still"
        await check_nothing_left(calls)


async def test_c32_extensions_repeat_and_the_newest_deadline_counts():
    clock = ManualClock()
    async with (
        serving(partition_count=1, clock=clock) as calls,
        member_on(calls, **SETTINGS) as member,
    ):
        await publish(calls, b"m")
        held = await member.delivery()
        await clock.advance(1_000)
        assert not (await member.extend(held, 10_000)).HasField("error")
        await clock.advance(7_000)
        assert not (await member.extend(held, 10_000)).HasField("error")
        await clock.advance(7_000)
        assert (await member.settle(held)).committed_offset == 1
        twice = await member.settle(held)
        assert (twice.committed_offset, twice.HasField("error")) == (1, False)
        assert not member.taken_back


async def test_c32_an_extension_can_shorten_a_lease():
    clock = ManualClock()
    async with (
        serving(partition_count=1, clock=clock) as calls,
        member_on(calls, **SETTINGS) as member,
    ):
        await publish(calls, b"m")
        held = await member.delivery()
        await member.extend(held, 10_000)
        await member.extend(held, 500)
        await clock.advance(600)
        await member.until(lambda: member.taken_back)
        assert (await member.delivery()).numbers == [2]


async def test_c32_calls_without_a_stream_hear_it_too():
    clock = ManualClock()
    async with serving(partition_count=1, clock=clock) as calls:
        async with member_on(calls, limits=0, **SETTINGS):
            await publish(calls, b"m")

        async def lease():
            request = pb.LeaseRequest(group="g", topics=["a"], wait_ms=60_000)
            return Delivered(await calls.consume.Lease(request))

        async def settle(token, outcome=ACK):
            one = pb.Settlement(token=token, first_offset=0, end_offset=1, outcome=outcome)
            request = pb.SettleRequest(group="g", settlements=[one])
            return (await calls.consume.Settle(request)).results[0]

        async def extend(token):
            request = pb.ExtendRequest(group="g", extensions=[pb.Extension(token=token)])
            return (await calls.consume.Extend(request)).results[0]

        late = await lease()
        await clock.advance(3_000)
        held = await lease()
        assert (held.numbers, held.failures) == ([2], [1])
        for answer in (await settle(late.token), await extend(late.token)):
            assert answer.error.reason == "LEASE_LOST"
        assert not (await extend(held.token)).HasField("error")
        for _ in range(2):
            assert (await settle(held.token)).committed_offset == 1


@pytest.mark.slow
@pytest.mark.parametrize("cancel_lost", [False, True], ids=["asked", "cancelled"])
async def test_c32_a_handler_is_told_that_its_lease_is_lost(cancel_lost):
    heard, has_begun = asyncio.Event(), asyncio.Event()
    attempts = []

    async def handler(record):
        attempts.append(record.delivery_number)
        has_begun.set()
        if len(attempts) > 1:
            return
        try:
            while not record.lease_lost:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        except asyncio.CancelledError:
            assert cancel_lost
            raise
        finally:
            heard.set()

    async with running_broker() as (address, _), Client(address) as client:
        await client.admin.create_topic("a")
        async with client.producer("a") as producer:
            await producer.publish(b"m")
        settings = GroupSettings(lease_ms=60_000)
        worker = client.worker("g", "a", handler, cancel_lost=cancel_lost, settings=settings)
        async with asyncio.timeout(10), worker:
            await has_begun.wait()
            await client.admin.reset_offsets("g", "a", 0, force=True)  # fences it
            await heard.wait()
            while worker.stats().running_count or len(attempts) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        assert worker.stats().lost_count >= 1
        [progress] = await client.admin.get_offsets("g", "a")
        assert (progress.committed_offset, progress.lag) == (1, 0)
