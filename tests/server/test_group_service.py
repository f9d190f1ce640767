"""GroupService over gRPC: settings, progress, commits, resets, and why."""

import pytest

from logbroker.storage.memory import MemoryEngine
from logbroker.testing.clock import ManualClock
from logbroker.v1 import group_pb2
from logbroker.v1 import group_service_pb2 as pb
from logbroker.v1.group_pb2 import GroupSettings
from logbroker.v1.topic_service_pb2 import DeleteTopicRequest, GrowTopicRequest, TrimTopicRequest

from .calls import refusal, serving, until_no_stream
from .members import RETRY, member_of, member_on, publish

NONE = group_pb2.ORDER_NONE


async def commit(calls, *offsets, group="g", **fields):
    """Returns a pair for each offset: committed offset, reason."""
    commits = [pb.Commit(**{"topic": "a", "offset": offset, **fields}) for offset in offsets]
    request = pb.CommitOffsetsRequest(group=group, commits=commits)
    results = (await calls.groups.CommitOffsets(request)).results
    return [(each.committed_offset, each.error.reason) for each in results]


async def progress(calls, group="g"):
    return (await calls.groups.GetOffsets(pb.GetOffsetsRequest(group=group))).progress


async def reset(calls, group="g", **fields):
    request = pb.ResetOffsetsRequest(group=group, topic="a", **fields)
    return [each.to_offset for each in (await calls.groups.ResetOffsets(request)).resets]


async def test_settings_are_kept_and_changed_one_by_one_also_over_a_restart():
    engine = MemoryEngine(ManualClock())
    async with serving(engine=engine) as calls:
        settings = GroupSettings(order=NONE, max_failures=3, start=group_pb2.GroupStart(offset=7))
        request = pb.CreateGroupRequest(group="g", settings=settings)
        made = (await calls.groups.CreateGroup(request)).group
        assert (made.settings.order, made.settings.lease_ms) == (NONE, 30_000)
        again = calls.groups.CreateGroup(request)
        assert await refusal(again) == ("ALREADY_EXISTS", "GROUP_ALREADY_EXISTS")
        change = pb.UpdateGroupRequest(group="g", settings=GroupSettings(lease_ms=5_000))
        await calls.groups.UpdateGroup(change)
    async with serving(topic="", engine=engine.reopened()) as calls:
        found = (await calls.groups.GetGroup(pb.GetGroupRequest(group="g"))).group.settings
        assert (found.lease_ms, found.max_failures, found.start.offset) == (5_000, 3, 7)


@pytest.mark.parametrize("name", ["", "-a", "__a", "..", "a/b", "ä", "a" * 201])
async def test_a_group_name_that_breaks_the_rule_is_refused(name):
    async with serving() as calls:
        call = calls.groups.CreateGroup(pb.CreateGroupRequest(group=name))
        assert await refusal(call) == ("INVALID_ARGUMENT", "INVALID_NAME")


async def test_commits_are_checked_and_only_automatic_ones_never_rewind():
    async with serving(partition_count=1) as calls:
        await publish(calls, *[b"v"] * 10)
        outside = await commit(calls, -1, 11, (1 << 63) - 1)
        assert [reason for _, reason in outside] == ["INVALID_OFFSET"] * 3
        assert await commit(calls, 1, partition=1) == [(0, "INVALID_ARGUMENT")]
        assert await commit(calls, 10, 4) == [(10, ""), (4, "")]
        assert await commit(calls, 2, is_automatic=True) == [(4, "")]
        [found] = await progress(calls)
        assert (found.committed_offset, found.high_watermark, found.lag) == (4, 10, 6)


async def test_lag_is_never_negative_and_a_group_without_a_commit_says_so():
    clock = ManualClock()
    async with serving(partition_count=2, clock=clock) as calls:
        await publish(calls, *[b"v"] * 50)
        await clock.advance(700)
        async with member_on(calls, group="h", limits=0):
            first, second = await progress(calls, "h")
            assert not first.HasField("committed_offset")
            assert (first.lag, second.lag, first.age_ms) == (50, 0, 700)
        await commit(calls, 10)
        await calls.topics.TrimTopic(TrimTopicRequest(topic="a", partition=0, offset=50))
        [found, _] = await progress(calls)
        assert found.lag == 0


async def test_a_reset_of_a_group_in_use_must_be_forced_and_then_its_leases_are_lost():
    async with serving(partition_count=1) as calls:
        await publish(calls, *[b"v"] * 10)
        async with member_on(calls) as member:
            held = await member.delivery()
            call = calls.groups.ResetOffsets(pb.ResetOffsetsRequest(group="g", topic="a", offset=7))
            assert await refusal(call) == ("FAILED_PRECONDITION", "GROUP_IN_USE")
            assert await reset(calls, offset=7, dry_run=True) == [7]
            assert await reset(calls, offset=7, force=True) == [7]
            assert (await member.delivery()).offsets == [7, 8, 9]
            assert member.taken_back == [(held.token, 0, 10)]
        assert await reset(calls, shift=-2) == [5]
        assert await reset(calls, latest=True) == [10]
        assert await reset(calls, earliest=True) == [0]
        assert await reset(calls, timestamp_ms=1 << 60) == [10]


@pytest.mark.parametrize(
    "policy, start, reason",
    [
        (group_pb2.OUT_OF_RANGE_EARLIEST, 5, ""),
        (group_pb2.OUT_OF_RANGE_LATEST, 10, ""),
        (group_pb2.OUT_OF_RANGE_ERROR, None, "OFFSET_OUT_OF_RANGE"),
    ],
)
async def test_a_group_that_retention_overtook_goes_on_by_its_policy(policy, start, reason):
    async with serving(partition_count=1) as calls:
        for _ in range(2):
            await publish(calls, *[b"v"] * 5)
        await calls.groups.CreateGroup(
            pb.CreateGroupRequest(group="g", settings=GroupSettings(out_of_range=policy))
        )
        assert await commit(calls, 2) == [(2, "")]
        await calls.topics.TrimTopic(TrimTopicRequest(topic="a", partition=0, offset=5))
        member = await member_of(calls)
        if reason:
            assert await refusal(member.call) == ("OUT_OF_RANGE", reason)
            return
        await member.until(lambda: member.caught_up)
        await publish(calls, b"last")
        found = await member.take(11 - start)
        assert found[0].offsets[0] == start
        [told] = await progress(calls)
        assert told.expired_unsettled_count == 3
        await member.leave()


async def test_explain_says_why_a_record_is_not_delivered():
    clock = ManualClock()
    async with serving(partition_count=1, clock=clock) as calls:
        await publish(calls, *[b"v"] * 4)

        async def why(offset):
            request = pb.ExplainRequest(group="g", topic="a", partition=0, offset=offset)
            return (await calls.groups.Explain(request)).state

        async with member_on(calls, limits=2) as member:
            await clock.advance(200)
            held = await member.delivery()
            assert [await why(offset) for offset in (0, 2, 4)] == [
                "leased",
                "available",
                "beyond_end",
            ]
            await member.settle(held, RETRY, 0, 1, reason="not yet")
            assert [await why(offset) for offset in (0, 1)] == ["waiting", "behind_record"]
        await commit(calls, 3)
        assert [await why(offset) for offset in (0, 3)] == ["settled", "no_member"]


async def test_a_group_tells_its_members_and_what_is_theirs():
    clock = ManualClock()
    async with serving(partition_count=2, clock=clock) as calls:
        async with member_on(calls, client_id="one"):
            await clock.advance(200)
            found = await calls.groups.GetGroup(pb.GetGroupRequest(group="g"))
            [member] = found.members
            assert [each.partition for each in member.assignment] == [0, 1]
            assert {each.member_id for each in found.progress} == {member.member_id}
        listed = await calls.groups.ListGroups(pb.ListGroupsRequest())
        assert [(each.group.group, each.member_count) for each in listed.groups] == [("g", 0)]


async def test_a_deleted_group_ends_its_streams_and_begins_anew():
    async with serving(partition_count=1) as calls:
        await publish(calls, b"0")
        member = await member_of(calls)
        await member.settle(await member.delivery())
        call = calls.groups.DeleteGroup(pb.DeleteGroupRequest(group="g"))
        assert await refusal(call) == ("FAILED_PRECONDITION", "GROUP_IN_USE")
        await calls.groups.DeleteGroup(pb.DeleteGroupRequest(group="g", force=True))
        assert await refusal(member.call) == ("NOT_FOUND", "GROUP_NOT_FOUND")
        async with member_on(calls) as member:
            assert (await member.delivery()).offsets == [0]


async def test_a_group_nobody_uses_is_forgotten_and_one_that_is_connected_never():
    clock = ManualClock()
    async with serving(partition_count=1, clock=clock) as calls:
        for name in ("idle", "quiet"):
            settings = GroupSettings(group_retention_ms=120_000)
            request = pb.CreateGroupRequest(group=name, settings=settings)
            await calls.groups.CreateGroup(request)
        async with member_on(calls, group="quiet"):
            await clock.advance(180_000)
            listed = await calls.groups.ListGroups(pb.ListGroupsRequest())
            assert [each.group.group for each in listed.groups] == ["quiet"]


async def test_a_partition_that_is_new_is_read_from_its_start():
    clock = ManualClock()
    start = group_pb2.GroupStart(latest=True)
    async with (
        serving(partition_count=1, clock=clock) as calls,
        member_on(calls, start=start) as member,
    ):
        await clock.advance(200)
        await calls.topics.GrowTopic(GrowTopicRequest(topic="a", partition_count=2))
        await publish(calls, b"new", partition=1)
        await clock.advance(200)
        assert (await member.delivery()).values == [b"new"]


async def test_a_topic_made_again_is_read_from_its_start_without_old_commits():
    async with serving(partition_count=1) as calls:
        from logbroker.v1.topic_service_pb2 import CreateTopicRequest

        await publish(calls, *[b"old"] * 10)
        await commit(calls, 10)
        await calls.topics.DeleteTopic(DeleteTopicRequest(topic="a"))
        await calls.topics.CreateTopic(CreateTopicRequest(topic="a", partition_count=1))
        await publish(calls, *[b"new"] * 5)
        async with member_on(calls) as member:
            assert (await member.delivery()).values == [b"new"] * 5
        await until_no_stream(calls)
