"""TopicService: translate in, call one broker verb, translate out."""

from typing import Any, Protocol

from logbroker.topic.topic import PartitionStatus, Topic, TopicSettings
from logbroker.v1 import topic_service_pb2 as pb
from logbroker.v1.topic_service_pb2_grpc import TopicServiceServicer
from logbroker.wire.convert import partition_status_to_proto, settings_of, topic_to_proto

KEYS_MOVE = (
    "keys may map to other partitions from now on: the records of a key are in order before "
    "and after this growth, but not across it"
)


class Topics(Protocol):
    """What this service asks of the broker."""

    async def create_topic(
        self, name: str, partition_count: int, settings: TopicSettings
    ) -> Topic: ...
    def get_topic(self, name: str, topic_id: str) -> Topic: ...
    def partition_statuses(self, topic: Topic) -> list[PartitionStatus]: ...
    def list_topics(self, page_size: int, page_token: str) -> tuple[list[Topic], str]: ...
    async def update_topic(self, name: str, topic_id: str, settings: TopicSettings) -> Topic: ...
    async def grow_topic(self, name: str, topic_id: str, partition_count: int) -> Topic: ...
    async def delete_topic(self, name: str, topic_id: str) -> None: ...
    async def trim_topic(self, name: str, topic_id: str, partition: int, offset: int) -> int: ...


class TopicService(TopicServiceServicer):
    """Makes, shows, changes and removes topics."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    async def CreateTopic(self, request: pb.CreateTopicRequest, context: Any) -> Any:
        """Creates a topic."""
        settings = settings_of(request.settings)
        topic = await self._topics.create_topic(request.topic, request.partition_count, settings)
        return pb.CreateTopicResponse(topic=topic_to_proto(topic))

    async def GetTopic(self, request: pb.GetTopicRequest, context: Any) -> Any:
        """Returns a topic and the state of its partitions."""
        topic = self._topics.get_topic(request.topic, request.topic_id)
        statuses = self._topics.partition_statuses(topic)
        return pb.GetTopicResponse(
            topic=topic_to_proto(topic),
            partitions=[partition_status_to_proto(status) for status in statuses],
        )

    async def ListTopics(self, request: pb.ListTopicsRequest, context: Any) -> Any:
        """Lists topics by name, in pages."""
        topics, token = self._topics.list_topics(request.page_size, request.page_token)
        found = [topic_to_proto(topic) for topic in topics]
        return pb.ListTopicsResponse(topics=found, next_page_token=token)

    async def UpdateTopic(self, request: pb.UpdateTopicRequest, context: Any) -> Any:
        """Changes settings."""
        settings = settings_of(request.settings)
        topic = await self._topics.update_topic(request.topic, request.topic_id, settings)
        return pb.UpdateTopicResponse(topic=topic_to_proto(topic))

    async def GrowTopic(self, request: pb.GrowTopicRequest, context: Any) -> Any:
        """Adds partitions."""
        count = request.partition_count
        topic = await self._topics.grow_topic(request.topic, request.topic_id, count)
        return pb.GrowTopicResponse(topic=topic_to_proto(topic), warning=KEYS_MOVE)

    async def DeleteTopic(self, request: pb.DeleteTopicRequest, context: Any) -> Any:
        """Deletes a topic and all its records."""
        await self._topics.delete_topic(request.topic, request.topic_id)
        return pb.DeleteTopicResponse()

    async def TrimTopic(self, request: pb.TrimTopicRequest, context: Any) -> Any:
        """Raises the log start offset of a partition."""
        offset = await self._topics.trim_topic(
            request.topic, request.topic_id, request.partition, request.offset
        )
        return pb.TrimTopicResponse(log_start_offset=offset)
