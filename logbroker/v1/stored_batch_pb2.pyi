from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Segment(_message.Message):
    __slots__ = ("batches",)
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    batches: _containers.RepeatedCompositeFieldContainer[StoredBatch]
    def __init__(self, batches: _Optional[_Iterable[_Union[StoredBatch, _Mapping]]] = ...) -> None: ...

class StoredBatch(_message.Message):
    __slots__ = ("base_offset", "append_time_ms", "record_count", "offset_span", "max_timestamp_ms", "attributes", "producer_id", "producer_epoch", "base_sequence", "records_crc", "header_crc", "records")
    BASE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    APPEND_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    RECORD_COUNT_FIELD_NUMBER: _ClassVar[int]
    OFFSET_SPAN_FIELD_NUMBER: _ClassVar[int]
    MAX_TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    BASE_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    RECORDS_CRC_FIELD_NUMBER: _ClassVar[int]
    HEADER_CRC_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    base_offset: int
    append_time_ms: int
    record_count: int
    offset_span: int
    max_timestamp_ms: int
    attributes: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_crc: int
    header_crc: int
    records: bytes
    def __init__(self, base_offset: _Optional[int] = ..., append_time_ms: _Optional[int] = ..., record_count: _Optional[int] = ..., offset_span: _Optional[int] = ..., max_timestamp_ms: _Optional[int] = ..., attributes: _Optional[int] = ..., producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., base_sequence: _Optional[int] = ..., records_crc: _Optional[int] = ..., header_crc: _Optional[int] = ..., records: _Optional[bytes] = ...) -> None: ...
