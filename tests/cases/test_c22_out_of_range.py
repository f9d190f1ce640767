"""C22: a place outside the bounds goes on by the group's policy, said and counted."""

import asyncio
from contextlib import asynccontextmanager

import grpc
import pytest
from server.calls import ending, refusal, serving
from server.members import member_of, member_on, publish

from cases.grouped import check_nothing_left, group_of, settle_each
from cases.watching import becomes_true
from logbroker.clock import SystemClock
from logbroker.config import StorageConfig
from logbroker.storage.file.engine import FileEngine
from logbroker.testing.faulty_disk import FaultyDisk
from logbroker.v1 import group_pb2
from logbroker.v1 import group_service_pb2 as pb
from logbroker.v1.record_pb2 import DURABILITY_WRITTEN
from logbroker.v1.topic_pb2 import TopicSettings
from logbroker.v1.topic_service_pb2 import (
    CreateTopicRequest,
    GetTopicRequest,
    TrimTopicRequest,
    UpdateTopicRequest,
)

EARLIEST, LATEST = group_pb2.OUT_OF_RANGE_EARLIEST, group_pb2.OUT_OF_RANGE_LATEST
ERROR = group_pb2.OUT_OF_RANGE_ERROR
POLICIES, NAMES = (EARLIEST, LATEST, ERROR), ("earliest", "latest", "error")
START, END = 500, 1_000
LOST_END = 5_000
"""Where the log ended before it lost what it had not flushed."""


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


@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
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


@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
async def test_c22_a_group_without_a_commit_begins_at_its_start_whatever_the_policy(policy):
    async with serving(partition_count=1) as calls:
        await fill(calls, policy)
        async with member_on(calls) as member:
            assert (await member.delivery()).offsets[0] == START
        assert not [one for one in calls.logs if one["event"] == "group was out of range"]


@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
async def test_c22_a_race_with_a_moving_start_ends(policy):
    async with serving(partition_count=1) as calls:
        settings = group_pb2.GroupSettings(out_of_range=policy)
        await calls.groups.CreateGroup(pb.CreateGroupRequest(group="g", settings=settings))
        for _ in range(20):
            await publish(calls, *[b"v"] * 50)

        async def trim() -> None:
            for offset in range(25, 1_000, 25):
                request = TrimTopicRequest(topic="a", partition=0, offset=offset)
                await calls.topics.TrimTopic(request)
                await asyncio.sleep(0)
            while not is_over.is_set():  # the group may have gone on behind one of them
                await publish(calls, b"last")

        is_over = asyncio.Event()
        trimming = asyncio.create_task(trim())
        member = await member_of(calls, limits=10)
        seen: list[tuple[int, bytes]] = []
        while not seen or seen[-1][1] != b"last":
            try:
                held = await member.delivery()
                await settle_each(member, held)
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                break  # that it has ended
            seen += held.records
        is_over.set()
        await trimming
        if not seen or seen[-1][1] != b"last":
            assert policy == ERROR
            assert await refusal(member.call) == ("OUT_OF_RANGE", "OFFSET_OUT_OF_RANGE")
            return
        assert [offset for offset, _ in seen] == sorted({offset for offset, _ in seen})
        [progress] = (await group_of(calls)).progress
        assert progress.committed_offset == seen[-1][0] + 1
        await member.leave()


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


@asynccontextmanager
async def after_a_power_cut(tmp_path, policy, *, order, settle):
    """Yields stubs for a broker whose log, `written` alone, lost all from END on.

    `settle` is what the group did before, on a log that ended at LOST_END.
    """
    data_dir = tmp_path / "data"
    disk = FaultyDisk(data_dir)
    async with serving_files(data_dir, disk) as calls:
        written = TopicSettings(durability=DURABILITY_WRITTEN, flush_interval_ms=50)
        request = CreateTopicRequest(topic="a", partition_count=1, settings=written)
        await calls.topics.CreateTopic(request)
        await publish(calls, *[b"old"] * END)
        synced = disk.sync_count
        await becomes_true(lambda: disk.sync_count > synced, "what there is is flushed")
        written.flush_interval_ms = 3_600_000
        await calls.topics.UpdateTopic(UpdateTopicRequest(topic="a", settings=written))
        await calls.topics.TrimTopic(TrimTopicRequest(topic="a", partition=0, offset=START))
        await publish(calls, *[b"lost"] * (LOST_END - END))
        settings = group_pb2.GroupSettings(out_of_range=policy, order=order)
        await calls.groups.CreateGroup(pb.CreateGroupRequest(group="g", settings=settings))
        await settle(calls)
        disk.lose_power()
    async with serving_files(data_dir) as calls:
        [found] = (await calls.topics.GetTopic(GetTopicRequest(topic="a"))).partitions
        assert (found.log_start_offset, found.high_watermark) == (START, END)
        yield calls


@asynccontextmanager
async def serving_files(data_dir, disk=None):
    """Yields stubs for a broker that keeps its files on this disk."""
    engine = await FileEngine.start(StorageConfig(data_dir=data_dir), SystemClock(), disk)
    try:
        async with serving(topic="", engine=engine) as calls:
            yield calls
    finally:
        await engine.close()


async def commit_all(calls) -> None:
    one = pb.Commit(topic="a", partition=0, offset=LOST_END)
    await calls.groups.CommitOffsets(pb.CommitOffsetsRequest(group="g", commits=[one]))


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
async def test_c22_a_place_beyond_the_end_goes_on_by_policy_too_and_never_at_0(tmp_path, policy):
    async with after_a_power_cut(
        tmp_path, policy, order=group_pb2.ORDER_PARTITION, settle=commit_all
    ) as calls:
        [progress] = (await group_of(calls)).progress
        assert progress.lag == (END - START if policy == EARLIEST else 0)
        if policy == ERROR:
            member = await member_of(calls)
            code, info, message = await ending(member.call)
            assert (code.name, info.reason) == ("OUT_OF_RANGE", "OFFSET_OUT_OF_RANGE")
            assert str(START) in message
            assert str(END) in message
            return
        await publish(calls, *[b"new"] * (LOST_END - END + 10))  # beyond its place, too
        async with member_on(calls) as member:
            held = await member.delivery()
            assert held.records[0] == ((START, b"old") if policy == EARLIEST else (END, b"new"))
        assert [line["offset"] for line in calls.logs if "ahead of its log" in line["event"]] == (
            [LOST_END]
        )


@pytest.mark.slow
async def test_c22_what_was_settled_beyond_the_end_is_not_settled_when_it_is_given_out_again(
    tmp_path,
):
    async def settle_some(calls) -> None:
        async with member_on(calls, limits=10_000) as member:
            seen = 0
            while seen < LOST_END - START:
                held = await member.delivery()
                seen += len(held.offsets)
                if held.offsets[0] < START + 100:
                    await member.settle(held, first=START, end=START + 100)
                if held.offsets[-1] >= END + 10:
                    await member.settle(held, first=max(held.offsets[0], END + 10))

    async with after_a_power_cut(
        tmp_path, EARLIEST, order=group_pb2.ORDER_NONE, settle=settle_some
    ) as calls:
        await publish(calls, *[b"new"] * 100)
        seen: list[int] = []
        async with member_on(calls) as member:
            while len(seen) < END - START - 100 + 100:
                held = await member.delivery()
                seen += held.offsets
                await settle_each(member, held)
        assert seen == list(range(START + 100, END + 100))
        await check_nothing_left(calls)
