"""C26: commits are checked, resets of live groups must be forced, groups in use are kept."""

from server.calls import refusal, serving
from server.members import RETRY, member_on, publish

from cases.grouped import group_of, make_topic
from logbroker.testing.clock import ManualClock
from logbroker.v1 import group_pb2
from logbroker.v1 import group_service_pb2 as pb

INT64_MAX = (1 << 63) - 1
DAY_MS = 24 * 3_600_000
INVALID_ARGUMENT, NOT_FOUND = 3, 5


async def commit(calls, offset, *, partition=0, topic="a", is_automatic=False):
    """Returns the committed offset, or the code of the refusal."""
    one = pb.Commit(topic=topic, partition=partition, offset=offset, is_automatic=is_automatic)
    request = pb.CommitOffsetsRequest(group="g", commits=[one])
    [result] = (await calls.groups.CommitOffsets(request)).results
    return -result.error.code if result.HasField("error") else result.committed_offset


async def committed(calls):
    progress = (await group_of(calls)).progress[0]
    return progress.committed_offset if progress.HasField("committed_offset") else None


async def test_c26_commits_outside_the_log_are_refused_and_store_nothing():
    async with serving(partition_count=1) as calls:
        await publish(calls, *[b"v"] * 10)
        assert await commit(calls, 4) == 4
        for offset in (-1, 11, INT64_MAX, -INT64_MAX - 1):
            assert await commit(calls, offset) == -INVALID_ARGUMENT
        for partition in (1, -1, (1 << 31) - 1):
            assert await commit(calls, 3, partition=partition) == -INVALID_ARGUMENT
        assert await commit(calls, 3, topic="nowhere") == -NOT_FOUND
        assert await committed(calls) == 4
        assert [one.topic for one in (await group_of(calls)).progress] == ["a"]
        assert await commit(calls, 10) == 10, "the end is fine"


async def test_c26_a_refused_commit_makes_no_group():
    async with serving(partition_count=1) as calls:
        for offset, partition, topic in ((-1, 0, "a"), (1, 0, "a"), (0, 1, "a"), (0, 0, "b")):
            assert await commit(calls, offset, partition=partition, topic=topic) < 0
        found = await refusal(calls.groups.GetGroup(pb.GetGroupRequest(group="g")))
        assert found == ("NOT_FOUND", "GROUP_NOT_FOUND")


async def test_c26_entries_of_one_commit_are_answered_on_their_own():
    async with serving(partition_count=2) as calls:
        await publish(calls, *[b"v"] * 10)
        commits = [
            pb.Commit(topic="a", partition=0, offset=7),
            pb.Commit(topic="a", partition=0, offset=99),
            pb.Commit(topic="a", partition=1, offset=0),
        ]
        request = pb.CommitOffsetsRequest(group="g", commits=commits)
        results = (await calls.groups.CommitOffsets(request)).results
        assert [one.HasField("error") for one in results] == [False, True, False]
        assert await committed(calls) == 7


async def test_c26_a_rewind_is_allowed_and_automatic_commits_never_rewind():
    async with serving(partition_count=1) as calls:
        await publish(calls, *[b"v"] * 10)
        assert await commit(calls, 8) == 8
        assert await commit(calls, 3, is_automatic=True) == 8
        assert await commit(calls, 3) == 3
        assert await committed(calls) == 3
        async with member_on(calls) as member:
            assert (await member.delivery()).offsets == list(range(3, 10))


async def test_c26_a_live_member_sees_a_rewind_and_an_automatic_commit_makes_none():
    async with serving(partition_count=1) as calls, member_on(calls) as member:
        await publish(calls, *[b"v"] * 10)
        held = await member.delivery()
        await member.settle(held, end=8)
        assert await commit(calls, 3, is_automatic=True) == 8
        assert not member.taken_back
        assert await commit(calls, 3) == 3
        again = await member.delivery()
        assert again.offsets == list(range(3, 10))
        assert member.taken_back == [(held.token, 8, 10)]
        assert (await member.settle(held, first=8, end=10)).error.reason == "LEASE_LOST"
        assert await committed(calls) == 3
        assert (await member.settle(again)).committed_offset == 10


async def test_c26_a_reset_of_a_live_group_is_refused_unless_forced_and_then_fences_members():
    async with serving(partition_count=1) as calls, member_on(calls) as member:
        await publish(calls, *[b"v"] * 10)
        held = await member.delivery()
        await member.settle(held, end=5)
        request = pb.ResetOffsetsRequest(group="g", topic="a", offset=2)
        found = await refusal(calls.groups.ResetOffsets(request))
        assert found == ("FAILED_PRECONDITION", "GROUP_IN_USE")
        assert await committed(calls) == 5
        request.force = True
        await calls.groups.ResetOffsets(request)
        again = await member.delivery()
        assert again.offsets == list(range(2, 10))
        assert (held.token, 5, 10) in member.taken_back
        for outcome in (1, RETRY):
            late = await member.settle(held, outcome, 5, 10)
            assert late.error.reason == "LEASE_LOST"
        assert not (await member.settle(again)).HasField("error")
        assert await committed(calls) == 10


async def test_c26_an_idle_group_expires_and_one_that_is_connected_without_traffic_never():
    clock = ManualClock()
    async with serving(partition_count=1, clock=clock) as calls:
        await publish(calls, *[b"v"] * 10)
        await commit(calls, 4)
        settings = group_pb2.GroupSettings(group_retention_ms=60_000)
        await calls.groups.UpdateGroup(pb.UpdateGroupRequest(group="g", settings=settings))
        async with member_on(calls, group="h", limits=0, group_retention_ms=60_000):
            await clock.advance(300_000)
            call = calls.groups.GetGroup(pb.GetGroupRequest(group="g"))
            assert (await refusal(call))[0] == "NOT_FOUND"
            assert len((await group_of(calls, "h")).members) == 1
        assert (await group_of(calls, "h")).group.group == "h", "its time begins when it ends"
        await clock.advance(300_000)
        call = calls.groups.GetGroup(pb.GetGroupRequest(group="h"))
        assert (await refusal(call))[0] == "NOT_FOUND"


async def test_c26_a_commit_makes_a_group_that_reads_on_from_there():
    async with serving(topic="", partition_count=1) as calls:
        await make_topic(calls)
        await publish(calls, *[b"v"] * 10)
        assert await commit(calls, 6) == 6
        async with member_on(calls) as member:
            assert (await member.delivery()).offsets == [6, 7, 8, 9]
