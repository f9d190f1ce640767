"""What a consumer settles, and when: done, committed, answered, refused."""

import asyncio
from random import Random

import pytest

from client.fake_group import all_requests, fake_group, take, values
from logbroker.errors import ConflictError
from logbroker.testing.clock import ManualClock
from logbroker.v1 import consume_service_pb2 as pb
from logbroker.v1 import group_pb2


async def test_a_record_is_done_when_the_next_one_is_asked_for():
    async with fake_group() as (group, client), client.consumer("g", "t") as consumer:
        member = await group.member()
        member.deliver(0, values(3))
        await take(consumer, 3)
        asking = asyncio.create_task(anext(consumer))
        assert await member.wait_settled(3) == [0, 1, 2]
        asking.cancel()
        assert len(member.settlements) == 1


async def test_leaving_settles_what_is_done_and_not_the_record_in_hand():
    async with fake_group() as (group, client):
        async with client.consumer("g", "t") as consumer:
            member = await group.member()
            member.deliver(0, values(5))
            await take(consumer, 3)
        assert member.settled() == [0, 1]
        assert [request.WhichOneof("request") for request in all_requests(member)][-1] == "leave"


async def test_commit_settles_the_record_in_hand_too():
    async with fake_group() as (group, client):
        async with client.consumer("g", "t", auto_settle=False) as consumer:
            member = await group.member()
            member.deliver(0, values(5))
            member.deliver(5, values(2, 5), token=2)
            await take(consumer, 6)
            assert member.settled() == []
            await consumer.commit()
            assert member.settled() == [0, 1, 2, 3, 4, 5]
            assert consumer.committed_offsets() == {("t", 0): 6}
            await consumer.commit()
        assert member.settled() == [0, 1, 2, 3, 4, 5]


async def test_while_a_batch_is_read_slowly_its_done_part_is_settled():
    clock = ManualClock()
    async with fake_group(clock=clock) as (group, client), client.consumer("g", "t") as consumer:
        member = await group.member()
        member.deliver(0, values(5))
        await take(consumer, 4)
        await clock.advance(200)
        assert await member.wait_settled(3) == [0, 1, 2]


async def test_single_acknowledgements_of_a_turn_travel_as_ranges():
    async with (
        fake_group(group_pb2.ORDER_NONE) as (group, client),
        client.consumer("g", "t", auto_settle=False) as consumer,
    ):
        member = await group.member()
        member.deliver(0, values(100))
        records = await take(consumer, 100)
        Random(1).shuffle(records)
        pending = [consumer.acknowledge(one) for one in records if one.offset % 10]
        for one in pending:
            await one
        assert [one.done() for one in pending] == [True] * 90
        ranges = [(one.first_offset, one.end_offset) for one in member.settlements]
        assert ranges == [(at + 1, at + 10) for at in range(0, 100, 10)]


async def test_an_answer_that_comes_too_late_is_told_to_who_gave_it_and_to_nobody_else():
    async with (
        fake_group(group_pb2.ORDER_NONE) as (group, client),
        client.consumer("g", "t", auto_settle=False) as consumer,
    ):
        lost = []
        consumer.on_lost = lost.append
        member = await group.member()
        member.refused = {3}
        member.deliver(0, values(10))
        pending = [consumer.acknowledge(one) for one in await take(consumer, 10)]
        await consumer.flush()
        assert [one.error() and one.error().reason for one in pending] == [
            None, None, None, "LEASE_LOST", *[None] * 6,
        ]  # fmt: skip
        with pytest.raises(ConflictError):
            await pending[3]
        assert lost == [("t", 0, 3, 4)]
        assert consumer.stats().settled_count == 9


async def test_every_answer_says_what_it_is():
    async with (
        fake_group(group_pb2.ORDER_NONE) as (group, client),
        client.consumer("g", "t", auto_settle=False) as consumer,
    ):
        member = await group.member()
        member.deliver(0, values(4))
        first, second, third, fourth = await take(consumer, 4)
        await consumer.retry(first, 0, "not now")
        await consumer.retry(second, reason="again")
        await consumer.release(third)
        await consumer.reject(fourth, "never")
        answers = [
            (one.outcome, one.HasField("delay_ms"), one.reason) for one in member.settlements
        ]
        assert answers == [
            (pb.OUTCOME_RETRY, True, "not now"),
            (pb.OUTCOME_RETRY, False, "again"),
            (pb.OUTCOME_RELEASE, False, ""),
            (pb.OUTCOME_REJECT, False, "never"),
        ]


async def test_after_a_rejected_record_those_behind_it_go_on_if_they_are_still_held():
    async with fake_group() as (group, client), client.consumer("g", "t") as consumer:
        member = await group.member()
        member.deliver(0, values(3))
        consumer.reject(await anext(consumer))
        assert [record.offset for record in await take(consumer, 2)] == [1, 2]


@pytest.mark.parametrize("how", ["left", "refused"])
async def test_an_answer_given_after_the_end_is_refused_and_nobody_waits_for_it(how):
    async with fake_group() as (group, client), asyncio.timeout(10):
        consumer = client.consumer("g", "t", auto_settle=False, instance_id="i")
        async with consumer:
            member = await group.member()
            member.deliver(0, values(4))
            first, second, third, _ = await take(consumer, 4)
            if how == "refused":
                member.fence()
                with pytest.raises(ConflictError):
                    await anext(consumer)
        for answer in (consumer.acknowledge(first), consumer.retry(second)):
            with pytest.raises(ConflictError) as caught:
                await answer
            assert caught.value.reason == "LEASE_LOST"
        consumer.acknowledge(third)
        await consumer.flush()
        with pytest.raises(ConflictError):
            await consumer.commit()
        assert consumer.stats().lost_count > 0


async def test_settled_before_it_is_handed_out_a_record_is_seen_at_most_once():
    async with (
        fake_group() as (group, client),
        client.consumer("g", "t", settle="before") as consumer,
    ):
        member = await group.member()
        member.refused = {0}
        member.deliver(0, values(1))
        member.deliver(1, values(2, 1), token=2)
        record = await anext(consumer)
        assert record.offset == 1
        assert member.settled() == [0, 1, 2]


async def test_batches_are_settled_as_a_whole():
    async with fake_group() as (group, client), client.consumer("g", "t") as consumer:
        member = await group.member()
        member.deliver(0, values(3))
        member.deliver(3, values(1, 3), token=2)
        batches = consumer.batches()
        batch = await anext(batches)
        assert list(batch.values) == values(3)
        assert len(batch.records()) == len(batch) == 3
        await anext(batches)
        assert await member.wait_settled(3) == [0, 1, 2]
