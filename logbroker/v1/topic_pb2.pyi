from logbroker.v1 import record_pb2 as _record_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Topic(_message.Message):
    __slots__ = ("topic", "topic_id", "partition_count", "settings", "created_ms")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_COUNT_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    topic_id: str
    partition_count: int
    settings: TopicSettings
    created_ms: int
    def __init__(self, topic: _Optional[str] = ..., topic_id: _Optional[str] = ..., partition_count: _Optional[int] = ..., settings: _Optional[_Union[TopicSettings, _Mapping]] = ..., created_ms: _Optional[int] = ...) -> None: ...

class TopicSettings(_message.Message):
    __slots__ = ("durability", "flush_interval_ms", "retention_ms", "retention_bytes", "segment_bytes", "segment_ms")
    DURABILITY_FIELD_NUMBER: _ClassVar[int]
    FLUSH_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    RETENTION_MS_FIELD_NUMBER: _ClassVar[int]
    RETENTION_BYTES_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_MS_FIELD_NUMBER: _ClassVar[int]
    durability: _record_pb2.Durability
    flush_interval_ms: int
    retention_ms: int
    retention_bytes: int
    segment_bytes: int
    segment_ms: int
    def __init__(self, durability: _Optional[_Union[_record_pb2.Durability, str]] = ..., flush_interval_ms: _Optional[int] = ..., retention_ms: _Optional[int] = ..., retention_bytes: _Optional[int] = ..., segment_bytes: _Optional[int] = ..., segment_ms: _Optional[int] = ...) -> None: ...

class PartitionStatus(_message.Message):
    __slots__ = ("partition", "log_start_offset", "high_watermark", "next_offset", "size_bytes", "segment_count", "damaged", "failure")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    DAMAGED_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    partition: int
    log_start_offset: int
    high_watermark: int
    next_offset: int
    size_bytes: int
    segment_count: int
    damaged: _containers.RepeatedCompositeFieldContainer[OffsetRange]
    failure: str
    def __init__(self, partition: _Optional[int] = ..., log_start_offset: _Optional[int] = ..., high_watermark: _Optional[int] = ..., next_offset: _Optional[int] = ..., size_bytes: _Optional[int] = ..., segment_count: _Optional[int] = ..., damaged: _Optional[_Iterable[_Union[OffsetRange, _Mapping]]] = ..., failure: _Optional[str] = ...) -> None: ...

class OffsetRange(_message.Message):
    __slots__ = ("first_offset", "end_offset")
    FIRST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    first_offset: int
    end_offset: int
    def __init__(self, first_offset: _Optional[int] = ..., end_offset: _Optional[int] = ...) -> None: ...
