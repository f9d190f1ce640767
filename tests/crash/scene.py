"""What an operation has done and was told, and whether a broker still knows it."""

from typing import Any

from cases.watching import becomes_true
from server.members import records_of

from logbroker.v1 import consume_service_pb2 as pb
from logbroker.v1.fetch_service_pb2 import FetchRequest
from logbroker.v1.group_pb2 import ORDER_NONE, GroupSettings
from logbroker.v1.group_service_pb2 import (
    CreateGroupRequest,
    GetGroupRequest,
    ListGroupsRequest,
)
from logbroker.v1.produce_service_pb2 import PublishRequest
from logbroker.v1.record_pb2 import Record
from logbroker.v1.topic_pb2 import TopicSettings
from logbroker.v1.topic_service_pb2 import CreateTopicRequest, GetTopicRequest, ListTopicsRequest

TOPIC, GROUP = "a", "g"
LETTERS = f"{TOPIC}.{GROUP}.dlq"
VALUE_BYTES = 400
LEASE_MS = 600_000
"""No lease ends for a machine that is slow."""
SEGMENT_BYTES = 4 << 10
"""Some nine records."""


class Records:
    """What was sent to a topic of one partition, and what of it was answered."""

    def __init__(self, topic: str = TOPIC) -> None:
        self.topic = topic
        self.sent: list[bytes] = []
        self.acked: dict[int, bytes] = {}

    async def make(self, calls: Any, count: int, segment_bytes: int = SEGMENT_BYTES) -> None:
        """Makes the topic with so many records."""
        settings = TopicSettings(segment_bytes=segment_bytes)
        await calls.topics.CreateTopic(
            CreateTopicRequest(topic=self.topic, partition_count=1, settings=settings)
        )
        await self.publish(calls, count)

    async def publish(self, calls: Any, count: int) -> None:
        """Publishes one record after another."""
        for _ in range(count):
            value = b"%d:" % len(self.sent)
            self.sent.append(value + b"." * (VALUE_BYTES - len(value)))
            record = Record(value=self.sent[-1])
            request = PublishRequest(topic=self.topic, records=[record])
            [result] = (await calls.produce.Publish(request)).results
            assert not result.HasField("error"), result
            self.acked[result.receipt.base_offset] = self.sent[-1]

    async def publish_many(self, calls: Any, count: int) -> None:
        """Publishes so many in one request."""
        values = [
            b"%d:" % number + b"." * 20 for number in range(len(self.sent), len(self.sent) + count)
        ]
        self.sent += values
        request = PublishRequest(
            topic=self.topic, records=[Record(value=value) for value in values]
        )
        for result, value in zip(
            (await calls.produce.Publish(request)).results, values, strict=True
        ):
            assert not result.HasField("error"), result
            self.acked[result.receipt.base_offset] = value

    async def check(self, calls: Any) -> None:
        """Fails unless what was answered is there, in its place, and all in order and once."""
        part = await partition_of(calls, self.topic)
        found = await records_in(calls, self.topic)
        assert list(found) == list(range(part.log_start_offset, part.next_offset))
        assert part.high_watermark == part.next_offset
        assert not part.damaged
        kept = {offset: value for offset, value in self.acked.items() if offset in found}
        assert kept == {offset: found[offset] for offset in kept}
        lost = self.acked.keys() - kept.keys()
        assert all(offset < part.log_start_offset for offset in lost), f"lost: {sorted(lost)}"
        places = [self.sent.index(value) for value in found.values()]
        assert places == sorted(set(places)), "twice, or out of order"


async def partition_of(calls: Any, topic: str) -> Any:
    """Returns the state of the one partition of a topic."""
    [part] = (await calls.topics.GetTopic(GetTopicRequest(topic=topic))).partitions
    assert not part.failure, part
    return part


async def topics_of(calls: Any) -> set[str]:
    """Returns the names of all topics."""
    return {topic.topic for topic in (await calls.topics.ListTopics(ListTopicsRequest())).topics}


async def records_in(calls: Any, topic: str, partition: int = 0) -> dict[int, bytes]:
    """Returns the values in a partition, by offset."""
    found: dict[int, bytes] = {}
    async for response in calls.fetch.Fetch(FetchRequest(topic=topic, partition=partition)):
        for offset, value in records_of(response.batches):
            assert offset not in found
            found[offset] = value
    return found


async def everything(calls: Any) -> dict[str, Any]:
    """Returns all records, and how far all groups are."""
    known: dict[str, Any] = {}
    for topic in sorted(await topics_of(calls)):
        parts = (await calls.topics.GetTopic(GetTopicRequest(topic=topic))).partitions
        for part in parts:
            found = await records_in(calls, topic, part.partition)
            known[f"{topic}/{part.partition}"] = part.log_start_offset, part.next_offset, found
    for one in (await calls.groups.ListGroups(ListGroupsRequest())).groups:
        group = await calls.groups.GetGroup(GetGroupRequest(group=one.group.group))
        known[one.group.group] = [
            (part.topic, part.partition, part.committed_offset, part.lag, part.parked_count)
            for part in group.progress
        ]
    return known


async def make_group(calls: Any, group: str = GROUP) -> None:
    """Makes a group that takes records in no order."""
    settings = GroupSettings(order=ORDER_NONE)
    await calls.groups.CreateGroup(CreateGroupRequest(group=group, settings=settings))


async def committed_of(calls: Any, group: str = GROUP) -> int:
    """Returns the committed offset of a group that reads one partition, or none yet."""
    progress = (await calls.groups.GetGroup(GetGroupRequest(group=group))).progress
    assert len(progress) <= 1
    return int(progress[0].committed_offset) if progress else 0


async def lease(calls: Any, count: int = 100, group: str = GROUP) -> Any:
    """Returns what the group may have now, as a LeaseResponse."""
    request = pb.LeaseRequest(group=group, topics=[TOPIC], max_records=count, lease_ms=LEASE_MS)
    return await calls.consume.Lease(request)


async def leased(calls: Any, group: str = GROUP) -> dict[bytes, int]:
    """Leases all that there is; returns the values, and how often each was redriven."""
    found: dict[bytes, int] = {}
    while (delivery := await lease(calls, group=group)).batches:
        redrives = {
            offset: run.redrives
            for run in delivery.delivery.ranges
            for offset in range(run.first_offset, run.end_offset)
        }
        for offset, value in records_of(delivery.batches):
            assert value not in found, "leased twice at a time"
            found[value] = redrives[offset]
    return found


async def settle(calls: Any, token: int, first: int, end: int, outcome: int) -> None:
    """Settles, and returns once that is confirmed."""
    one = pb.Settlement(
        token=token, first_offset=first, end_offset=end, outcome=outcome, reason="bad"
    )
    request = pb.SettleRequest(group=GROUP, settlements=[one])
    [result] = (await calls.consume.Settle(request)).results
    assert not result.HasField("error"), result


async def comes_true(condition: Any, what: str) -> None:
    """Returns once it is true, which takes the broker some time."""
    await becomes_true(condition, what, within_s=60)
