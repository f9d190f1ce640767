"""Lease calls that wait: they end when what they wait for can never come, and keep a group."""

import asyncio

from logbroker.testing.clock import ManualClock
from logbroker.v1 import consume_service_pb2 as pb
from logbroker.v1 import group_service_pb2 as groups_pb
from logbroker.v1.topic_service_pb2 import CreateTopicRequest, DeleteTopicRequest

from .calls import ending, refusal, serving, until
from .members import Delivered, member_of, publish

MINUTE_MS = 60_000


def lease(calls, wait_ms=MINUTE_MS, **fields):
    """Returns a call that waits for a record."""
    return calls.consume.Lease(pb.LeaseRequest(group="g", topics=["a"], wait_ms=wait_ms, **fields))


async def until_waiting(calls, count=1):
    """Returns once so many calls wait for records of the group."""
    live = calls.broker._groups.live

    def are_waiting():
        waiting = [one for one in live["g"].holdings.values() if not one.is_stream]
        return len(waiting) == count and not any(one.ledgers for one in waiting)

    await until(lambda: "g" in live and are_waiting())


async def test_a_call_that_waits_ends_when_its_topic_is_deleted():
    async with serving(partition_count=1) as calls:
        waiting = asyncio.create_task(refusal(lease(calls)))
        await until_waiting(calls)
        await calls.topics.DeleteTopic(DeleteTopicRequest(topic="a"))
        assert await waiting == ("NOT_FOUND", "TOPIC_NOT_FOUND")
        await calls.topics.CreateTopic(CreateTopicRequest(topic="a", partition_count=1))
        await publish(calls, b"new")
        assert Delivered(await lease(calls)).records == [(0, b"new")]


async def test_a_call_that_waits_ends_when_its_group_is_deleted():
    async with serving(partition_count=1) as calls:
        waiting = asyncio.create_task(refusal(lease(calls)))
        await until_waiting(calls)
        await calls.groups.DeleteGroup(groups_pb.DeleteGroupRequest(group="g", force=True))
        assert await waiting == ("NOT_FOUND", "GROUP_NOT_FOUND")


async def test_other_topics_deletion_is_no_matter_of_a_call_that_waits():
    async with serving(partition_count=1) as calls:
        await calls.topics.CreateTopic(CreateTopicRequest(topic="b", partition_count=1))
        await (await member_of(calls, topics=("b",))).leave()
        waiting = lease(calls)
        await until_waiting(calls)
        await calls.topics.DeleteTopic(DeleteTopicRequest(topic="b"))
        await publish(calls, b"v")
        assert Delivered(await waiting).values == [b"v"]


async def test_a_group_that_is_asked_for_records_now_and_then_is_not_forgotten():
    clock = ManualClock()
    async with serving(partition_count=1, clock=clock) as calls:
        settings = {"group_retention_ms": 10 * MINUTE_MS}
        await (await member_of(calls, limits=0, **settings)).leave()
        for _ in range(15):
            assert not (await lease(calls, wait_ms=0)).HasField("delivery")
            await clock.advance(2 * MINUTE_MS)
        assert (await calls.groups.GetGroup(groups_pb.GetGroupRequest(group="g"))).group.group
        await clock.advance(12 * MINUTE_MS)
        code, *_ = await ending(calls.groups.GetGroup(groups_pb.GetGroupRequest(group="g")))
        assert code.name == "NOT_FOUND"
