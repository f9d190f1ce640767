"""C18: where records were removed, readers and groups go on behind the gap, and nowhere else."""

import asyncio

import pytest
from server.calls import serving
from server.members import ACK, member_on, publish

from cases.grouped import check_nothing_left, group_of
from logbroker.client import Client
from logbroker.group.settings import GroupSettings, Order
from logbroker.v1 import group_pb2
from logbroker.v1 import group_service_pb2 as pb
from logbroker.v1.topic_service_pb2 import TrimTopicRequest

COUNT, GAP_END = 200, 120
NONE = group_pb2.ORDER_NONE


async def fill(calls) -> None:
    for number in range(COUNT):
        await publish(calls, b"%d" % number)


async def trim(calls, offset) -> None:
    await calls.topics.TrimTopic(TrimTopicRequest(topic="a", partition=0, offset=offset))


async def test_c18_a_reader_at_any_offset_gets_the_first_record_at_or_behind_it():
    async with serving(partition_count=1) as calls, Client(calls.address) as client:
        await fill(calls)
        await trim(calls, GAP_END)
        for offset in range(COUNT):
            async with client.reader("a", start=offset, stop_offset=COUNT) as reader:
                first = await anext(aiter(reader))
                assert (first.offset, first.value) == (max(offset, GAP_END), b"%d" % first.offset)
        async with client.reader("a", start="earliest") as reader:
            offsets = [record.offset async for record in reader]
        assert offsets == list(range(GAP_END, COUNT))


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize(
    "limits",
    [{"max_outstanding_records": 1}, {"max_outstanding_bytes": 1}, {}],
    ids=["one_record", "one_byte", "defaults"],
)
async def test_c18_consumers_and_workers_move_on_over_what_was_removed(order, limits):
    async with serving(partition_count=1) as calls, Client(calls.address) as client:
        await fill(calls)
        for group in ("c", "w"):
            await client.admin.create_group(group, GroupSettings(order=order))
            one = pb.Commit(topic="a", partition=0, offset=50)
            await calls.groups.CommitOffsets(pb.CommitOffsetsRequest(group=group, commits=[one]))
        await trim(calls, GAP_END)
        async with client.consumer("c", "a", follow=False, **limits) as consumer:
            assert [record.offset async for record in consumer] == list(range(GAP_END, COUNT))
        handled: list[int] = []
        done = asyncio.Event()

        async def handle(record) -> None:
            handled.append(record.offset)
            if len(handled) == COUNT - GAP_END:
                done.set()

        async with client.worker("w", "a", handle, concurrency=1, **limits), asyncio.timeout(10):
            await done.wait()
        assert handled == list(range(GAP_END, COUNT))
        await check_nothing_left(calls, "c")
        await check_nothing_left(calls, "w")


async def test_c18_a_group_that_has_settled_some_of_what_is_removed_loses_only_the_rest():
    async with serving(partition_count=1) as calls, member_on(calls, order=NONE) as member:
        await fill(calls)
        held = await member.take(COUNT)
        for each in held:
            for offset in each.offsets:
                if offset % 2:  # every other one, so that what is settled lies in pieces
                    await member.settle(each, ACK, offset, offset + 1)
        await trim(calls, GAP_END)
        [found] = (await group_of(calls)).progress
        assert (found.lag, found.high_watermark) == ((COUNT - GAP_END) // 2, COUNT)
        was_in_time = 0
        for each in held:
            for offset in each.offsets:
                if offset % 2 == 0:
                    result = await member.settle(each, ACK, offset, offset + 1)
                    was_in_time += offset < GAP_END and not result.HasField("error")
        await publish(calls, b"last")
        assert (await member.delivery()).values == [b"last"]
        [found] = (await group_of(calls)).progress
        assert (found.committed_offset, found.lag) == (COUNT, 1)
        assert found.expired_unsettled_count == GAP_END // 2 - was_in_time


async def test_c18_a_group_whose_committed_offset_was_removed_goes_on_behind_the_gap():
    async with serving(partition_count=1) as calls:
        await fill(calls)
        one = pb.Commit(topic="a", partition=0, offset=50)
        await calls.groups.CommitOffsets(pb.CommitOffsetsRequest(group="g", commits=[one]))
        await trim(calls, GAP_END)
        seen: list[int] = []
        async with member_on(calls, limits=1) as member:
            while len(seen) < COUNT - GAP_END:
                held = await member.delivery()
                seen += held.offsets
                await member.settle(held)
        assert seen == list(range(GAP_END, COUNT))
        [found] = (await group_of(calls)).progress
        assert (found.committed_offset, found.lag) == (COUNT, 0)
        assert found.expired_unsettled_count == GAP_END - 50


async def test_c18_what_is_removed_under_a_lease_holds_up_nobody():
    async with serving(partition_count=1) as calls, member_on(calls, limits=10) as member:
        await fill(calls)
        held = await member.take(10)
        await trim(calls, GAP_END)
        for each in held:  # it has the records: it may settle them, or hear that they are gone
            await member.settle(each)
        fresh = await member.take(10)
        offsets = [offset for each in fresh for offset in each.offsets]
        assert offsets == list(range(GAP_END, GAP_END + 10))
        [found] = (await group_of(calls)).progress
        assert (found.committed_offset, found.expired_unsettled_count) == (GAP_END, GAP_END - 10)
