from logbroker.v1 import error_pb2 as _error_pb2
from logbroker.v1 import records_pb2 as _records_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Durability(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DURABILITY_UNSPECIFIED: _ClassVar[Durability]
    DURABILITY_SYNCED: _ClassVar[Durability]
    DURABILITY_WRITTEN: _ClassVar[Durability]
DURABILITY_UNSPECIFIED: Durability
DURABILITY_SYNCED: Durability
DURABILITY_WRITTEN: Durability

class Record(_message.Message):
    __slots__ = ("key", "value", "headers", "timestamp_ms", "partition")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    value: bytes
    headers: _containers.RepeatedCompositeFieldContainer[_records_pb2.Header]
    timestamp_ms: int
    partition: int
    def __init__(self, key: _Optional[bytes] = ..., value: _Optional[bytes] = ..., headers: _Optional[_Iterable[_Union[_records_pb2.Header, _Mapping]]] = ..., timestamp_ms: _Optional[int] = ..., partition: _Optional[int] = ...) -> None: ...

class Receipt(_message.Message):
    __slots__ = ("topic", "topic_id", "partition", "base_offset", "record_count", "append_time_ms", "durability", "duplicate")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    BASE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    RECORD_COUNT_FIELD_NUMBER: _ClassVar[int]
    APPEND_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    DURABILITY_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    topic: str
    topic_id: str
    partition: int
    base_offset: int
    record_count: int
    append_time_ms: int
    durability: Durability
    duplicate: bool
    def __init__(self, topic: _Optional[str] = ..., topic_id: _Optional[str] = ..., partition: _Optional[int] = ..., base_offset: _Optional[int] = ..., record_count: _Optional[int] = ..., append_time_ms: _Optional[int] = ..., durability: _Optional[_Union[Durability, str]] = ..., duplicate: _Optional[bool] = ...) -> None: ...

class ProduceResult(_message.Message):
    __slots__ = ("receipt", "error")
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    receipt: Receipt
    error: _error_pb2.Error
    def __init__(self, receipt: _Optional[_Union[Receipt, _Mapping]] = ..., error: _Optional[_Union[_error_pb2.Error, _Mapping]] = ...) -> None: ...
