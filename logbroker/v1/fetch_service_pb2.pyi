from logbroker.v1 import stored_batch_pb2 as _stored_batch_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StartPosition(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    START_POSITION_UNSPECIFIED: _ClassVar[StartPosition]
    START_POSITION_EARLIEST: _ClassVar[StartPosition]
    START_POSITION_LATEST: _ClassVar[StartPosition]
START_POSITION_UNSPECIFIED: StartPosition
START_POSITION_EARLIEST: StartPosition
START_POSITION_LATEST: StartPosition

class FetchRequest(_message.Message):
    __slots__ = ("topic", "topic_id", "partition", "offset", "position", "timestamp_ms", "stop_offset", "stop_timestamp_ms", "follow", "max_bytes", "max_response_bytes")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    STOP_OFFSET_FIELD_NUMBER: _ClassVar[int]
    STOP_TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_RESPONSE_BYTES_FIELD_NUMBER: _ClassVar[int]
    topic: str
    topic_id: str
    partition: int
    offset: int
    position: StartPosition
    timestamp_ms: int
    stop_offset: int
    stop_timestamp_ms: int
    follow: bool
    max_bytes: int
    max_response_bytes: int
    def __init__(self, topic: _Optional[str] = ..., topic_id: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ..., position: _Optional[_Union[StartPosition, str]] = ..., timestamp_ms: _Optional[int] = ..., stop_offset: _Optional[int] = ..., stop_timestamp_ms: _Optional[int] = ..., follow: _Optional[bool] = ..., max_bytes: _Optional[int] = ..., max_response_bytes: _Optional[int] = ...) -> None: ...

class FetchResponse(_message.Message):
    __slots__ = ("batches", "high_watermark", "log_start_offset", "next_offset", "start_offset")
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    batches: _containers.RepeatedCompositeFieldContainer[_stored_batch_pb2.StoredBatch]
    high_watermark: int
    log_start_offset: int
    next_offset: int
    start_offset: int
    def __init__(self, batches: _Optional[_Iterable[_Union[_stored_batch_pb2.StoredBatch, _Mapping]]] = ..., high_watermark: _Optional[int] = ..., log_start_offset: _Optional[int] = ..., next_offset: _Optional[int] = ..., start_offset: _Optional[int] = ...) -> None: ...

class FindOffsetRequest(_message.Message):
    __slots__ = ("topic", "topic_id", "partition", "timestamp_ms")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    topic_id: str
    partition: int
    timestamp_ms: int
    def __init__(self, topic: _Optional[str] = ..., topic_id: _Optional[str] = ..., partition: _Optional[int] = ..., timestamp_ms: _Optional[int] = ...) -> None: ...

class FindOffsetResponse(_message.Message):
    __slots__ = ("offset",)
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    offset: int
    def __init__(self, offset: _Optional[int] = ...) -> None: ...
