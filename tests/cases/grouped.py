"""Groups for the cases: a broker's stubs over a channel of their own, and members on them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
from server.calls import stubs_of
from server.members import ACK

from cases.watching import becomes_true
from logbroker.v1.dead_letter_service_pb2 import DeadLetterFilter, ListDeadLettersRequest
from logbroker.v1.group_service_pb2 import GetGroupRequest
from logbroker.v1.topic_service_pb2 import CreateTopicRequest


@asynccontextmanager
async def calls_to(address: str) -> AsyncIterator:
    """Yields stubs for a broker; they do not outlive its restart."""
    async with grpc.aio.insecure_channel(address) as channel:
        yield stubs_of(channel)


async def make_topic(calls, topic: str = "a", partition_count: int = 1) -> None:
    """Makes a topic."""
    await calls.topics.CreateTopic(CreateTopicRequest(topic=topic, partition_count=partition_count))


async def group_of(calls, group: str = "g"):
    """Returns a group, its members and its progress."""
    return await calls.groups.GetGroup(GetGroupRequest(group=group))


async def until_members(calls, count: int, group: str = "g") -> None:
    """Returns once the broker knows of so many members."""

    async def are_known() -> bool:
        return len((await group_of(calls, group)).members) == count

    await becomes_true(are_known, f"{count} members are known")


async def letters_of(calls, group: str = "g", topic: str = "a", **filters) -> list:
    """Returns the dead letters that are not resolved."""
    which = DeadLetterFilter(group=group, topic=topic, **filters)
    request = ListDeadLettersRequest(filter=which)
    return list((await calls.dead_letters.ListDeadLetters(request)).dead_letters)


async def check_nothing_left(calls, group: str = "g") -> None:
    """AssertionError unless everything is settled: then nothing can come."""
    progress = (await group_of(calls, group)).progress
    assert [one.lag for one in progress] == [0] * len(progress), progress
    assert [one.leased_count for one in progress] == [0] * len(progress), progress


async def settle_each(member, delivered, outcome=ACK) -> None:
    """Settles the records of a delivery one by one: it may have gaps."""
    for offset in delivered.offsets:
        result = await member.settle(delivered, outcome, offset, offset + 1)
        assert not result.HasField("error"), result
