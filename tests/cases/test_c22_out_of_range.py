"""C22: a place outside the bounds goes on by the group's policy, said and counted."""

import asyncio

import pytest
from server.calls import ending, serving
from server.members import member_of, member_on, publish

from cases.grouped import group_of, settle_each
from logbroker.v1 import group_pb2
from logbroker.v1 import group_service_pb2 as pb
from logbroker.v1.topic_service_pb2 import TrimTopicRequest

EARLIEST, LATEST = group_pb2.OUT_OF_RANGE_EARLIEST, group_pb2.OUT_OF_RANGE_LATEST
ERROR = group_pb2.OUT_OF_RANGE_ERROR
START, END = 500, 1_000


async def fill(calls, policy, *, committed=None, start=None) -> None:
    """Makes a log from START to END and a group at a place."""
    for _ in range(END // 100):
        await publish(calls, *[b"v"] * 100)
    settings = group_pb2.GroupSettings(out_of_range=policy)
    if start is not None:
        settings.start.offset = start
    await calls.groups.CreateGroup(pb.CreateGroupRequest(group="g", settings=settings))
    if committed is not None:
        one = pb.Commit(topic="a", partition=0, offset=committed)
        await calls.groups.CommitOffsets(pb.CommitOffsetsRequest(group="g", commits=[one]))
    await calls.topics.TrimTopic(TrimTopicRequest(topic="a", partition=0, offset=START))


@pytest.mark.parametrize("policy", [EARLIEST, LATEST, ERROR], ids=["earliest", "latest", "error"])
async def test_c22_a_place_outside_the_bounds_goes_on_by_policy(policy):
    async with serving(partition_count=1) as calls:
        await fill(calls, policy, committed=100)
        member = await member_of(calls)
        if policy == ERROR:
            code, info, message = await ending(member.call)
            assert (code.name, info.reason) == ("OUT_OF_RANGE", "OFFSET_OUT_OF_RANGE")
            told = message + str(dict(info.metadata))
            assert str(START) in told, "it says what range is valid"
            assert str(END) in told
            return
        expected = START if policy == EARLIEST else END
        await member.until(lambda: member.deliveries or member.caught_up)
        await publish(calls, b"last")
        first = await member.delivery()
        assert first.offsets[0] == expected
        said = [line for line in calls.logs if line["event"] == "group was out of range"]
        assert [(line["offset"], line["to_offset"]) for line in said] == [(100, expected)]
        assert said[0]["skipped"] == expected - 100
        [progress] = (await group_of(calls)).progress
        assert progress.expired_unsettled_count == START - 100
        await member.leave()


@pytest.mark.parametrize("start, expected", [(100, START), (700, 700), (5_000, END)])
async def test_c22_a_start_outside_the_bounds_is_the_nearest_place_inside(start, expected):
    async with serving(partition_count=1) as calls:
        await fill(calls, EARLIEST, start=start)
        async with member_on(calls) as member:
            await member.until(lambda: member.deliveries or member.caught_up)
            await publish(calls, b"last")
            assert (await member.delivery()).offsets[0] == expected


@pytest.mark.parametrize("policy", [EARLIEST, LATEST, ERROR], ids=["earliest", "latest", "error"])
async def test_c22_a_group_without_a_commit_begins_at_its_start_whatever_the_policy(policy):
    async with serving(partition_count=1) as calls:
        await fill(calls, policy)
        async with member_on(calls) as member:
            assert (await member.delivery()).offsets[0] == START
        assert not [one for one in calls.logs if one["event"] == "group was out of range"]


async def test_c22_a_race_with_a_moving_start_ends():
    async with serving(partition_count=1) as calls, member_on(calls, limits=10) as member:
        for _ in range(20):
            await publish(calls, *[b"v"] * 50)

        async def trim() -> None:
            for offset in range(25, 1_000, 25):
                request = TrimTopicRequest(topic="a", partition=0, offset=offset)
                await calls.topics.TrimTopic(request)
                await asyncio.sleep(0)

        trimming = asyncio.create_task(trim())
        seen: list[int] = []
        while not seen or seen[-1] < 999:
            held = await member.delivery()
            seen += held.offsets
            for offset in held.offsets:
                await member.settle(held, 1, offset, offset + 1)
        await trimming
        assert seen == sorted(set(seen)), "forward only"
        [progress] = (await group_of(calls)).progress
        assert (progress.committed_offset, progress.lag) == (1_000, 0)


async def test_c22_a_group_in_error_goes_on_after_a_reset():
    async with serving(partition_count=1) as calls:
        await fill(calls, ERROR, committed=100)
        code, _, _ = await ending((await member_of(calls)).call)
        assert code.name == "OUT_OF_RANGE"
        await calls.groups.ResetOffsets(pb.ResetOffsetsRequest(group="g", topic="a", earliest=True))
        async with member_on(calls) as member:
            held = await member.delivery()
            assert held.offsets[0] == START
            await settle_each(member, held)
