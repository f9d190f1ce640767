from logbroker.v1 import record_pb2 as _record_pb2
from logbroker.v1 import stored_batch_pb2 as _stored_batch_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ProduceRequest(_message.Message):
    __slots__ = ("entries",)
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[ProduceEntry]
    def __init__(self, entries: _Optional[_Iterable[_Union[ProduceEntry, _Mapping]]] = ...) -> None: ...

class ProduceEntry(_message.Message):
    __slots__ = ("batch", "topic", "topic_id", "partition", "expected_offset")
    BATCH_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    batch: _stored_batch_pb2.StoredBatch
    topic: str
    topic_id: str
    partition: int
    expected_offset: int
    def __init__(self, batch: _Optional[_Union[_stored_batch_pb2.StoredBatch, _Mapping]] = ..., topic: _Optional[str] = ..., topic_id: _Optional[str] = ..., partition: _Optional[int] = ..., expected_offset: _Optional[int] = ...) -> None: ...

class ProduceResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[_record_pb2.ProduceResult]
    def __init__(self, results: _Optional[_Iterable[_Union[_record_pb2.ProduceResult, _Mapping]]] = ...) -> None: ...

class PublishRequest(_message.Message):
    __slots__ = ("topic", "topic_id", "records", "partition", "expected_offset")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    topic: str
    topic_id: str
    records: _containers.RepeatedCompositeFieldContainer[_record_pb2.Record]
    partition: int
    expected_offset: int
    def __init__(self, topic: _Optional[str] = ..., topic_id: _Optional[str] = ..., records: _Optional[_Iterable[_Union[_record_pb2.Record, _Mapping]]] = ..., partition: _Optional[int] = ..., expected_offset: _Optional[int] = ...) -> None: ...

class PublishResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[_record_pb2.ProduceResult]
    def __init__(self, results: _Optional[_Iterable[_Union[_record_pb2.ProduceResult, _Mapping]]] = ...) -> None: ...

class CreateProducerRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CreateProducerResponse(_message.Message):
    __slots__ = ("producer_id", "producer_epoch")
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    producer_id: int
    producer_epoch: int
    def __init__(self, producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ...) -> None: ...
