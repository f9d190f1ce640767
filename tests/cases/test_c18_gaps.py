"""C18: where records were removed, readers and groups go on behind the gap, and nowhere else."""

from server.calls import serving
from server.members import member_on, publish

from cases.grouped import group_of
from logbroker.client import Client
from logbroker.v1 import group_service_pb2 as pb
from logbroker.v1.topic_service_pb2 import TrimTopicRequest

COUNT, GAP_END = 200, 120


async def fill(calls) -> None:
    for number in range(COUNT):
        await publish(calls, b"%d" % number)


async def trim(calls, offset) -> None:
    await calls.topics.TrimTopic(TrimTopicRequest(topic="a", partition=0, offset=offset))


async def test_c18_a_reader_at_any_offset_gets_the_first_record_at_or_behind_it():
    async with serving(partition_count=1) as calls, Client(calls.address) as client:
        await fill(calls)
        await trim(calls, GAP_END)
        for offset in (GAP_END, GAP_END + 1, COUNT - 1):
            async with client.reader("a", start=offset) as reader:
                assert (await anext(aiter(reader))).offset == offset
        async with client.reader("a", start="earliest") as reader:
            offsets = [record.offset async for record in reader]
        assert offsets == list(range(GAP_END, COUNT))


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
