from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Order(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ORDER_UNSPECIFIED: _ClassVar[Order]
    ORDER_PARTITION: _ClassVar[Order]
    ORDER_KEY: _ClassVar[Order]
    ORDER_NONE: _ClassVar[Order]

class Exhausted(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EXHAUSTED_UNSPECIFIED: _ClassVar[Exhausted]
    EXHAUSTED_DEAD_LETTER: _ClassVar[Exhausted]
    EXHAUSTED_BLOCK: _ClassVar[Exhausted]
    EXHAUSTED_DISCARD: _ClassVar[Exhausted]

class AfterDeadLetter(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AFTER_DEAD_LETTER_UNSPECIFIED: _ClassVar[AfterDeadLetter]
    AFTER_DEAD_LETTER_CONTINUE: _ClassVar[AfterDeadLetter]
    AFTER_DEAD_LETTER_HOLD: _ClassVar[AfterDeadLetter]

class OutOfRange(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUT_OF_RANGE_UNSPECIFIED: _ClassVar[OutOfRange]
    OUT_OF_RANGE_EARLIEST: _ClassVar[OutOfRange]
    OUT_OF_RANGE_LATEST: _ClassVar[OutOfRange]
    OUT_OF_RANGE_ERROR: _ClassVar[OutOfRange]
ORDER_UNSPECIFIED: Order
ORDER_PARTITION: Order
ORDER_KEY: Order
ORDER_NONE: Order
EXHAUSTED_UNSPECIFIED: Exhausted
EXHAUSTED_DEAD_LETTER: Exhausted
EXHAUSTED_BLOCK: Exhausted
EXHAUSTED_DISCARD: Exhausted
AFTER_DEAD_LETTER_UNSPECIFIED: AfterDeadLetter
AFTER_DEAD_LETTER_CONTINUE: AfterDeadLetter
AFTER_DEAD_LETTER_HOLD: AfterDeadLetter
OUT_OF_RANGE_UNSPECIFIED: OutOfRange
OUT_OF_RANGE_EARLIEST: OutOfRange
OUT_OF_RANGE_LATEST: OutOfRange
OUT_OF_RANGE_ERROR: OutOfRange

class Group(_message.Message):
    __slots__ = ("group", "settings", "created_ms", "topics")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    group: str
    settings: GroupSettings
    created_ms: int
    topics: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, group: _Optional[str] = ..., settings: _Optional[_Union[GroupSettings, _Mapping]] = ..., created_ms: _Optional[int] = ..., topics: _Optional[_Iterable[str]] = ...) -> None: ...

class GroupSettings(_message.Message):
    __slots__ = ("order", "lease_ms", "retry_initial_ms", "retry_multiplier", "retry_max_ms", "max_failures", "exhausted", "after_dead_letter", "max_unsettled", "start", "out_of_range", "group_retention_ms")
    ORDER_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    RETRY_INITIAL_MS_FIELD_NUMBER: _ClassVar[int]
    RETRY_MULTIPLIER_FIELD_NUMBER: _ClassVar[int]
    RETRY_MAX_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_FAILURES_FIELD_NUMBER: _ClassVar[int]
    EXHAUSTED_FIELD_NUMBER: _ClassVar[int]
    AFTER_DEAD_LETTER_FIELD_NUMBER: _ClassVar[int]
    MAX_UNSETTLED_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    OUT_OF_RANGE_FIELD_NUMBER: _ClassVar[int]
    GROUP_RETENTION_MS_FIELD_NUMBER: _ClassVar[int]
    order: Order
    lease_ms: int
    retry_initial_ms: int
    retry_multiplier: float
    retry_max_ms: int
    max_failures: int
    exhausted: Exhausted
    after_dead_letter: AfterDeadLetter
    max_unsettled: int
    start: GroupStart
    out_of_range: OutOfRange
    group_retention_ms: int
    def __init__(self, order: _Optional[_Union[Order, str]] = ..., lease_ms: _Optional[int] = ..., retry_initial_ms: _Optional[int] = ..., retry_multiplier: _Optional[float] = ..., retry_max_ms: _Optional[int] = ..., max_failures: _Optional[int] = ..., exhausted: _Optional[_Union[Exhausted, str]] = ..., after_dead_letter: _Optional[_Union[AfterDeadLetter, str]] = ..., max_unsettled: _Optional[int] = ..., start: _Optional[_Union[GroupStart, _Mapping]] = ..., out_of_range: _Optional[_Union[OutOfRange, str]] = ..., group_retention_ms: _Optional[int] = ...) -> None: ...

class GroupStart(_message.Message):
    __slots__ = ("earliest", "latest", "offset", "timestamp_ms")
    EARLIEST_FIELD_NUMBER: _ClassVar[int]
    LATEST_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    earliest: bool
    latest: bool
    offset: int
    timestamp_ms: int
    def __init__(self, earliest: _Optional[bool] = ..., latest: _Optional[bool] = ..., offset: _Optional[int] = ..., timestamp_ms: _Optional[int] = ...) -> None: ...

class Member(_message.Message):
    __slots__ = ("member_id", "client_id", "joined_ms", "assignment", "leased_count")
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    JOINED_MS_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    LEASED_COUNT_FIELD_NUMBER: _ClassVar[int]
    member_id: str
    client_id: str
    joined_ms: int
    assignment: _containers.RepeatedCompositeFieldContainer[TopicPartition]
    leased_count: int
    def __init__(self, member_id: _Optional[str] = ..., client_id: _Optional[str] = ..., joined_ms: _Optional[int] = ..., assignment: _Optional[_Iterable[_Union[TopicPartition, _Mapping]]] = ..., leased_count: _Optional[int] = ...) -> None: ...

class TopicPartition(_message.Message):
    __slots__ = ("topic", "partition")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ...) -> None: ...

class PartitionProgress(_message.Message):
    __slots__ = ("topic", "partition", "committed_offset", "high_watermark", "log_start_offset", "lag", "age_ms", "leased_count", "waiting_count", "parked_count", "failed_count", "expired_unsettled_count", "member_id", "waits_for", "discarded_count")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LAG_FIELD_NUMBER: _ClassVar[int]
    AGE_MS_FIELD_NUMBER: _ClassVar[int]
    LEASED_COUNT_FIELD_NUMBER: _ClassVar[int]
    WAITING_COUNT_FIELD_NUMBER: _ClassVar[int]
    PARKED_COUNT_FIELD_NUMBER: _ClassVar[int]
    FAILED_COUNT_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_UNSETTLED_COUNT_FIELD_NUMBER: _ClassVar[int]
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    WAITS_FOR_FIELD_NUMBER: _ClassVar[int]
    DISCARDED_COUNT_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    committed_offset: int
    high_watermark: int
    log_start_offset: int
    lag: int
    age_ms: int
    leased_count: int
    waiting_count: int
    parked_count: int
    failed_count: int
    expired_unsettled_count: int
    member_id: str
    waits_for: str
    discarded_count: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., committed_offset: _Optional[int] = ..., high_watermark: _Optional[int] = ..., log_start_offset: _Optional[int] = ..., lag: _Optional[int] = ..., age_ms: _Optional[int] = ..., leased_count: _Optional[int] = ..., waiting_count: _Optional[int] = ..., parked_count: _Optional[int] = ..., failed_count: _Optional[int] = ..., expired_unsettled_count: _Optional[int] = ..., member_id: _Optional[str] = ..., waits_for: _Optional[str] = ..., discarded_count: _Optional[int] = ...) -> None: ...

class GroupStats(_message.Message):
    __slots__ = ("group", "member_count", "partition_count", "lag", "age_ms", "leased_count", "waiting_count", "blocked_count", "parked_count", "failure_count", "dead_letter_count", "discarded_count", "expired_unsettled_count", "skipped_count", "reset_count")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MEMBER_COUNT_FIELD_NUMBER: _ClassVar[int]
    PARTITION_COUNT_FIELD_NUMBER: _ClassVar[int]
    LAG_FIELD_NUMBER: _ClassVar[int]
    AGE_MS_FIELD_NUMBER: _ClassVar[int]
    LEASED_COUNT_FIELD_NUMBER: _ClassVar[int]
    WAITING_COUNT_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_COUNT_FIELD_NUMBER: _ClassVar[int]
    PARKED_COUNT_FIELD_NUMBER: _ClassVar[int]
    FAILURE_COUNT_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_COUNT_FIELD_NUMBER: _ClassVar[int]
    DISCARDED_COUNT_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_UNSETTLED_COUNT_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_COUNT_FIELD_NUMBER: _ClassVar[int]
    RESET_COUNT_FIELD_NUMBER: _ClassVar[int]
    group: str
    member_count: int
    partition_count: int
    lag: int
    age_ms: int
    leased_count: int
    waiting_count: int
    blocked_count: int
    parked_count: int
    failure_count: int
    dead_letter_count: int
    discarded_count: int
    expired_unsettled_count: int
    skipped_count: int
    reset_count: int
    def __init__(self, group: _Optional[str] = ..., member_count: _Optional[int] = ..., partition_count: _Optional[int] = ..., lag: _Optional[int] = ..., age_ms: _Optional[int] = ..., leased_count: _Optional[int] = ..., waiting_count: _Optional[int] = ..., blocked_count: _Optional[int] = ..., parked_count: _Optional[int] = ..., failure_count: _Optional[int] = ..., dead_letter_count: _Optional[int] = ..., discarded_count: _Optional[int] = ..., expired_unsettled_count: _Optional[int] = ..., skipped_count: _Optional[int] = ..., reset_count: _Optional[int] = ...) -> None: ...
