"""Admin: topics, groups, dead letters, and the broker itself. Every verb is one call."""

from typing import NamedTuple

from google.protobuf.message import Message

from logbroker.client.connection import Connection
from logbroker.client.dead_letter_admin import DeadLetterAdmin
from logbroker.client.group_admin import GroupAdmin
from logbroker.client.topics import get_topic
from logbroker.limits import PAGE_SIZE
from logbroker.record.columns import RecordLimits
from logbroker.topic.topic import PartitionStatus, Topic, TopicSettings
from logbroker.v1 import broker_service_pb2, topic_service_pb2
from logbroker.wire.convert import partition_status_of, settings_to_proto, topic_of


class TopicDescription(NamedTuple):
    """A topic, and how its partitions are."""

    topic: Topic
    partitions: tuple[PartitionStatus, ...]


class GrownTopic(NamedTuple):
    """A topic with more partitions, and what to know about that: keys move."""

    topic: Topic
    warning: str


class BrokerInfo(NamedTuple):
    """A broker's version and limits."""

    version: str
    limits: RecordLimits


class Admin(GroupAdmin, DeadLetterAdmin):
    """Creates, changes, looks at and deletes topics and groups. Made by `Client.admin`."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)

    async def create_topic(
        self, topic: str, partition_count: int = 1, settings: TopicSettings | None = None
    ) -> Topic:
        """Returns the new topic. AlreadyExistsError; InvalidError for a name or setting."""
        response = await self._connection.call(
            "TopicService/CreateTopic",
            topic_service_pb2.CreateTopicRequest(
                topic=topic,
                partition_count=partition_count,
                settings=settings_to_proto(settings or TopicSettings()),
            ),
            topic_service_pb2.CreateTopicResponse,
            repeatable=False,
        )
        return topic_of(response.topic)

    async def get_topic(self, topic: str) -> TopicDescription:
        """Returns the topic and the state of its partitions. NotFoundError."""
        response = await self._connection.call(
            "TopicService/GetTopic",
            topic_service_pb2.GetTopicRequest(topic=topic),
            topic_service_pb2.GetTopicResponse,
        )
        partitions = tuple(partition_status_of(status) for status in response.partitions)
        return TopicDescription(topic_of(response.topic), partitions)

    async def list_topics(self) -> list[Topic]:
        """Returns all topics, by name."""
        topics: list[Topic] = []
        token = ""
        while True:
            response = await self._connection.call(
                "TopicService/ListTopics",
                topic_service_pb2.ListTopicsRequest(page_size=PAGE_SIZE, page_token=token),
                topic_service_pb2.ListTopicsResponse,
            )
            topics += [topic_of(message) for message in response.topics]
            token = response.next_page_token
            if not token:
                return topics

    async def update_topic(self, topic: str, settings: TopicSettings) -> Topic:
        """Changes what is set in `settings`, and returns the topic as it is then."""
        response = await self._connection.call(
            "TopicService/UpdateTopic",
            topic_service_pb2.UpdateTopicRequest(topic=topic, settings=settings_to_proto(settings)),
            topic_service_pb2.UpdateTopicResponse,
        )
        return topic_of(response.topic)

    async def grow_topic(self, topic: str, partition_count: int) -> GrownTopic:
        """Raises the number of partitions: from then on, keys go elsewhere."""
        response = await self._connection.call(
            "TopicService/GrowTopic",
            topic_service_pb2.GrowTopicRequest(topic=topic, partition_count=partition_count),
            topic_service_pb2.GrowTopicResponse,
            repeatable=False,
        )
        return GrownTopic(topic_of(response.topic), response.warning)

    async def delete_topic(self, topic: str) -> None:
        """Deletes the topic and its records. Who reads or writes it gets NotFoundError."""
        found = await get_topic(self._connection, topic)
        await self._connection.call(
            "TopicService/DeleteTopic",
            topic_service_pb2.DeleteTopicRequest(topic=topic, topic_id=found.topic_id),
            topic_service_pb2.DeleteTopicResponse,
            repeatable=False,
        )

    async def trim_topic(self, topic: str, partition: int, offset: int) -> int:
        """Raises the log start offset to `offset`, and returns it as it is then.

        Lower where a dead letter cannot be written for now: its record stays, and those behind.
        """
        response = await self._connection.call(
            "TopicService/TrimTopic",
            topic_service_pb2.TrimTopicRequest(topic=topic, partition=partition, offset=offset),
            topic_service_pb2.TrimTopicResponse,
        )
        return response.log_start_offset

    async def get_broker(self) -> BrokerInfo:
        """Returns the broker's version and limits."""
        response = await self._connection.call(
            "BrokerService/GetBroker",
            broker_service_pb2.GetBrokerRequest(),
            broker_service_pb2.GetBrokerResponse,
        )
        limits = response.limits
        return BrokerInfo(
            response.version,
            RecordLimits(
                limits.record_bytes, limits.batch_bytes, limits.header_count, limits.header_bytes
            ),
        )

    async def get_stats(self) -> dict[str, object]:
        """Returns what the broker has counted since it started, by the names of the API.

        `groups` is a list of such dicts, by group.
        """
        response = await self._connection.call(
            "BrokerService/GetStats",
            broker_service_pb2.GetStatsRequest(),
            broker_service_pb2.GetStatsResponse,
        )
        stats = _fields_of(response)
        stats["damaged_topics"] = list(response.damaged_topics)
        stats["damaged_partitions"] = list(response.damaged_partitions)
        stats["failed_journals"] = list(response.failed_journals)
        stats["error_counts"] = dict(response.error_counts)
        stats["groups"] = list(map(_fields_of, response.groups))
        return stats


def _fields_of(message: Message) -> dict[str, object]:
    return {field.name: getattr(message, field.name) for field in message.DESCRIPTOR.fields}
