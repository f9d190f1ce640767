"""Requests and responses to values and back; for server and client alike."""

from collections.abc import Iterable

from logbroker.config import Durability, LogConfig
from logbroker.errors import InvalidError
from logbroker.record.receipt import Receipt
from logbroker.record.record import Header
from logbroker.topic.topic import PartitionStatus, Topic, TopicSettings
from logbroker.v1 import record_pb2, records_pb2, topic_pb2

TO_PROTO = {
    Durability.SYNCED: record_pb2.DURABILITY_SYNCED,
    Durability.WRITTEN: record_pb2.DURABILITY_WRITTEN,
}
FROM_PROTO = {number: durability for durability, number in TO_PROTO.items()}
OPTIONAL_SETTINGS = (
    "flush_interval_ms", "retention_ms", "retention_bytes", "segment_bytes", "segment_ms",
)  # fmt: skip


def settings_to_proto(settings: TopicSettings | LogConfig) -> topic_pb2.TopicSettings:
    """Returns the message; what is None is absent."""
    durability = settings.durability
    return topic_pb2.TopicSettings(
        durability=TO_PROTO[durability] if durability else record_pb2.DURABILITY_UNSPECIFIED,
        **{name: getattr(settings, name) for name in OPTIONAL_SETTINGS},
    )


def settings_of(message: topic_pb2.TopicSettings) -> TopicSettings:
    """Returns what is set; InvalidError for a durability there is not."""
    if message.durability not in (*FROM_PROTO, record_pb2.DURABILITY_UNSPECIFIED):
        text = f"durability {message.durability} is neither synced (1) nor written (2)"
        raise InvalidError("INVALID_SETTING", text, durability=message.durability)
    given = {name: getattr(message, name) for name in OPTIONAL_SETTINGS if message.HasField(name)}
    return TopicSettings(durability=FROM_PROTO.get(message.durability), **given)


def topic_to_proto(topic: Topic) -> topic_pb2.Topic:
    """Returns the message."""
    return topic_pb2.Topic(
        topic=topic.topic,
        topic_id=topic.topic_id,
        partition_count=topic.partition_count,
        settings=settings_to_proto(topic.settings),
        created_ms=topic.created_ms,
    )


def topic_of(message: topic_pb2.Topic) -> Topic:
    """Returns the value."""
    return Topic(
        topic=message.topic,
        topic_id=message.topic_id,
        partition_count=message.partition_count,
        settings=settings_of(message.settings).over(LogConfig()),
        created_ms=message.created_ms,
    )


def partition_status_to_proto(status: PartitionStatus) -> topic_pb2.PartitionStatus:
    """Returns the message."""
    return topic_pb2.PartitionStatus(
        partition=status.partition,
        log_start_offset=status.log_start_offset,
        high_watermark=status.high_watermark,
        next_offset=status.next_offset,
        size_bytes=status.size_bytes,
        segment_count=status.segment_count,
        damaged=[
            topic_pb2.OffsetRange(first_offset=first, end_offset=end)
            for first, end in status.damaged
        ],
        failure=status.failure,
    )


def partition_status_of(message: topic_pb2.PartitionStatus) -> PartitionStatus:
    """Returns the value."""
    return PartitionStatus(
        partition=message.partition,
        log_start_offset=message.log_start_offset,
        high_watermark=message.high_watermark,
        next_offset=message.next_offset,
        size_bytes=message.size_bytes,
        segment_count=message.segment_count,
        damaged=tuple((range_.first_offset, range_.end_offset) for range_ in message.damaged),
        failure=message.failure,
    )


def receipt_of(message: record_pb2.Receipt) -> Receipt:
    """Returns the value."""
    return Receipt(
        message.topic,
        message.topic_id,
        message.partition,
        message.base_offset,
        message.record_count,
        message.append_time_ms,
        FROM_PROTO[message.durability],
        message.duplicate,
    )


def headers_of(messages: Iterable[records_pb2.Header]) -> tuple[Header, ...]:
    """Returns the headers in their order; an absent value is null."""
    return tuple(
        Header(header.name, header.value if header.HasField("value") else None)
        for header in messages
    )
