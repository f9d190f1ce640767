"""What a producer or reader knows of its topic and broker, fetched when first needed."""

from logbroker.client.connection import Connection
from logbroker.record.columns import RecordLimits
from logbroker.topic.topic import Topic
from logbroker.v1 import broker_service_pb2, topic_service_pb2
from logbroker.wire.convert import topic_of

REFRESH_MS = 30_000
"""How often the number of a topic's partitions is looked up again while it is used."""


async def get_topic(connection: Connection, topic: str, topic_id: str = "") -> Topic:
    """Returns the topic. NotFoundError; TOPIC_RECREATED if it is not the one of `topic_id`."""
    request = topic_service_pb2.GetTopicRequest(topic=topic, topic_id=topic_id)
    response = await connection.call(
        "TopicService/GetTopic", request, topic_service_pb2.GetTopicResponse
    )
    return topic_of(response.topic)


async def get_limits(connection: Connection) -> RecordLimits:
    """Returns what the broker takes."""
    response = await connection.call(
        "BrokerService/GetBroker",
        broker_service_pb2.GetBrokerRequest(),
        broker_service_pb2.GetBrokerResponse,
    )
    limits = response.limits
    return RecordLimits(
        limits.record_bytes, limits.batch_bytes, limits.header_count, limits.header_bytes
    )
