from logbroker.v1 import error_pb2 as _error_pb2
from logbroker.v1 import group_pb2 as _group_pb2
from logbroker.v1 import stored_batch_pb2 as _stored_batch_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTCOME_UNSPECIFIED: _ClassVar[Outcome]
    OUTCOME_ACKNOWLEDGE: _ClassVar[Outcome]
    OUTCOME_RETRY: _ClassVar[Outcome]
    OUTCOME_RELEASE: _ClassVar[Outcome]
    OUTCOME_REJECT: _ClassVar[Outcome]
OUTCOME_UNSPECIFIED: Outcome
OUTCOME_ACKNOWLEDGE: Outcome
OUTCOME_RETRY: Outcome
OUTCOME_RELEASE: Outcome
OUTCOME_REJECT: Outcome

class ConsumeRequest(_message.Message):
    __slots__ = ("open", "limits", "settle", "extend", "leave")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    SETTLE_FIELD_NUMBER: _ClassVar[int]
    EXTEND_FIELD_NUMBER: _ClassVar[int]
    LEAVE_FIELD_NUMBER: _ClassVar[int]
    open: OpenConsume
    limits: FlowLimits
    settle: Settlements
    extend: Extensions
    leave: LeaveConsume
    def __init__(self, open: _Optional[_Union[OpenConsume, _Mapping]] = ..., limits: _Optional[_Union[FlowLimits, _Mapping]] = ..., settle: _Optional[_Union[Settlements, _Mapping]] = ..., extend: _Optional[_Union[Extensions, _Mapping]] = ..., leave: _Optional[_Union[LeaveConsume, _Mapping]] = ...) -> None: ...

class OpenConsume(_message.Message):
    __slots__ = ("group", "topics", "settings", "client_id", "instance_id", "limits", "max_response_bytes")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    MAX_RESPONSE_BYTES_FIELD_NUMBER: _ClassVar[int]
    group: str
    topics: _containers.RepeatedScalarFieldContainer[str]
    settings: _group_pb2.GroupSettings
    client_id: str
    instance_id: str
    limits: FlowLimits
    max_response_bytes: int
    def __init__(self, group: _Optional[str] = ..., topics: _Optional[_Iterable[str]] = ..., settings: _Optional[_Union[_group_pb2.GroupSettings, _Mapping]] = ..., client_id: _Optional[str] = ..., instance_id: _Optional[str] = ..., limits: _Optional[_Union[FlowLimits, _Mapping]] = ..., max_response_bytes: _Optional[int] = ...) -> None: ...

class FlowLimits(_message.Message):
    __slots__ = ("max_outstanding_records", "max_outstanding_bytes")
    MAX_OUTSTANDING_RECORDS_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTSTANDING_BYTES_FIELD_NUMBER: _ClassVar[int]
    max_outstanding_records: int
    max_outstanding_bytes: int
    def __init__(self, max_outstanding_records: _Optional[int] = ..., max_outstanding_bytes: _Optional[int] = ...) -> None: ...

class LeaveConsume(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ConsumeResponse(_message.Message):
    __slots__ = ("batches", "delivery", "joined", "assignment", "taken_back", "settled", "extended", "caught_up")
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    JOINED_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    TAKEN_BACK_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    EXTENDED_FIELD_NUMBER: _ClassVar[int]
    CAUGHT_UP_FIELD_NUMBER: _ClassVar[int]
    batches: _containers.RepeatedCompositeFieldContainer[_stored_batch_pb2.StoredBatch]
    delivery: Delivery
    joined: Joined
    assignment: Assignment
    taken_back: _containers.RepeatedCompositeFieldContainer[TakenBack]
    settled: _containers.RepeatedCompositeFieldContainer[SettleResult]
    extended: _containers.RepeatedCompositeFieldContainer[ExtendResult]
    caught_up: _containers.RepeatedCompositeFieldContainer[_group_pb2.TopicPartition]
    def __init__(self, batches: _Optional[_Iterable[_Union[_stored_batch_pb2.StoredBatch, _Mapping]]] = ..., delivery: _Optional[_Union[Delivery, _Mapping]] = ..., joined: _Optional[_Union[Joined, _Mapping]] = ..., assignment: _Optional[_Union[Assignment, _Mapping]] = ..., taken_back: _Optional[_Iterable[_Union[TakenBack, _Mapping]]] = ..., settled: _Optional[_Iterable[_Union[SettleResult, _Mapping]]] = ..., extended: _Optional[_Iterable[_Union[ExtendResult, _Mapping]]] = ..., caught_up: _Optional[_Iterable[_Union[_group_pb2.TopicPartition, _Mapping]]] = ...) -> None: ...

class Joined(_message.Message):
    __slots__ = ("member_id", "settings")
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    member_id: str
    settings: _group_pb2.GroupSettings
    def __init__(self, member_id: _Optional[str] = ..., settings: _Optional[_Union[_group_pb2.GroupSettings, _Mapping]] = ...) -> None: ...

class Assignment(_message.Message):
    __slots__ = ("partitions",)
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[_group_pb2.TopicPartition]
    def __init__(self, partitions: _Optional[_Iterable[_Union[_group_pb2.TopicPartition, _Mapping]]] = ...) -> None: ...

class Delivery(_message.Message):
    __slots__ = ("topic", "topic_id", "partition", "token", "lease_ms", "ranges", "dead_letter_topic")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_TOPIC_FIELD_NUMBER: _ClassVar[int]
    topic: str
    topic_id: str
    partition: int
    token: int
    lease_ms: int
    ranges: _containers.RepeatedCompositeFieldContainer[LeasedRange]
    dead_letter_topic: str
    def __init__(self, topic: _Optional[str] = ..., topic_id: _Optional[str] = ..., partition: _Optional[int] = ..., token: _Optional[int] = ..., lease_ms: _Optional[int] = ..., ranges: _Optional[_Iterable[_Union[LeasedRange, _Mapping]]] = ..., dead_letter_topic: _Optional[str] = ...) -> None: ...

class LeasedRange(_message.Message):
    __slots__ = ("first_offset", "end_offset", "delivery_number", "failures", "redrives")
    FIRST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_NUMBER_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    REDRIVES_FIELD_NUMBER: _ClassVar[int]
    first_offset: int
    end_offset: int
    delivery_number: int
    failures: int
    redrives: int
    def __init__(self, first_offset: _Optional[int] = ..., end_offset: _Optional[int] = ..., delivery_number: _Optional[int] = ..., failures: _Optional[int] = ..., redrives: _Optional[int] = ...) -> None: ...

class TakenBack(_message.Message):
    __slots__ = ("token", "first_offset", "end_offset")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    FIRST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    token: int
    first_offset: int
    end_offset: int
    def __init__(self, token: _Optional[int] = ..., first_offset: _Optional[int] = ..., end_offset: _Optional[int] = ...) -> None: ...

class Settlements(_message.Message):
    __slots__ = ("settlements",)
    SETTLEMENTS_FIELD_NUMBER: _ClassVar[int]
    settlements: _containers.RepeatedCompositeFieldContainer[Settlement]
    def __init__(self, settlements: _Optional[_Iterable[_Union[Settlement, _Mapping]]] = ...) -> None: ...

class Settlement(_message.Message):
    __slots__ = ("token", "first_offset", "end_offset", "outcome", "delay_ms", "reason")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    FIRST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    token: int
    first_offset: int
    end_offset: int
    outcome: Outcome
    delay_ms: int
    reason: str
    def __init__(self, token: _Optional[int] = ..., first_offset: _Optional[int] = ..., end_offset: _Optional[int] = ..., outcome: _Optional[_Union[Outcome, str]] = ..., delay_ms: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class SettleResult(_message.Message):
    __slots__ = ("committed_offset", "error")
    COMMITTED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    committed_offset: int
    error: _error_pb2.Error
    def __init__(self, committed_offset: _Optional[int] = ..., error: _Optional[_Union[_error_pb2.Error, _Mapping]] = ...) -> None: ...

class Extensions(_message.Message):
    __slots__ = ("extensions",)
    EXTENSIONS_FIELD_NUMBER: _ClassVar[int]
    extensions: _containers.RepeatedCompositeFieldContainer[Extension]
    def __init__(self, extensions: _Optional[_Iterable[_Union[Extension, _Mapping]]] = ...) -> None: ...

class Extension(_message.Message):
    __slots__ = ("token", "lease_ms")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    token: int
    lease_ms: int
    def __init__(self, token: _Optional[int] = ..., lease_ms: _Optional[int] = ...) -> None: ...

class ExtendResult(_message.Message):
    __slots__ = ("error",)
    ERROR_FIELD_NUMBER: _ClassVar[int]
    error: _error_pb2.Error
    def __init__(self, error: _Optional[_Union[_error_pb2.Error, _Mapping]] = ...) -> None: ...

class LeaseRequest(_message.Message):
    __slots__ = ("group", "topics", "max_records", "max_bytes", "lease_ms", "wait_ms")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    MAX_RECORDS_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    group: str
    topics: _containers.RepeatedScalarFieldContainer[str]
    max_records: int
    max_bytes: int
    lease_ms: int
    wait_ms: int
    def __init__(self, group: _Optional[str] = ..., topics: _Optional[_Iterable[str]] = ..., max_records: _Optional[int] = ..., max_bytes: _Optional[int] = ..., lease_ms: _Optional[int] = ..., wait_ms: _Optional[int] = ...) -> None: ...

class LeaseResponse(_message.Message):
    __slots__ = ("batches", "delivery")
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    batches: _containers.RepeatedCompositeFieldContainer[_stored_batch_pb2.StoredBatch]
    delivery: Delivery
    def __init__(self, batches: _Optional[_Iterable[_Union[_stored_batch_pb2.StoredBatch, _Mapping]]] = ..., delivery: _Optional[_Union[Delivery, _Mapping]] = ...) -> None: ...

class SettleRequest(_message.Message):
    __slots__ = ("group", "settlements")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    SETTLEMENTS_FIELD_NUMBER: _ClassVar[int]
    group: str
    settlements: _containers.RepeatedCompositeFieldContainer[Settlement]
    def __init__(self, group: _Optional[str] = ..., settlements: _Optional[_Iterable[_Union[Settlement, _Mapping]]] = ...) -> None: ...

class SettleResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[SettleResult]
    def __init__(self, results: _Optional[_Iterable[_Union[SettleResult, _Mapping]]] = ...) -> None: ...

class ExtendRequest(_message.Message):
    __slots__ = ("group", "extensions")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    EXTENSIONS_FIELD_NUMBER: _ClassVar[int]
    group: str
    extensions: _containers.RepeatedCompositeFieldContainer[Extension]
    def __init__(self, group: _Optional[str] = ..., extensions: _Optional[_Iterable[_Union[Extension, _Mapping]]] = ...) -> None: ...

class ExtendResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[ExtendResult]
    def __init__(self, results: _Optional[_Iterable[_Union[ExtendResult, _Mapping]]] = ...) -> None: ...
