from logbroker.v1 import records_pb2 as _records_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DeadLetterFilter(_message.Message):
    __slots__ = ("group", "topic", "partition", "first_offset", "end_offset", "from_ms", "until_ms", "reason_contains", "key", "limit", "blocked")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    FIRST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    FROM_MS_FIELD_NUMBER: _ClassVar[int]
    UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    REASON_CONTAINS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_FIELD_NUMBER: _ClassVar[int]
    group: str
    topic: str
    partition: int
    first_offset: int
    end_offset: int
    from_ms: int
    until_ms: int
    reason_contains: str
    key: bytes
    limit: int
    blocked: bool
    def __init__(self, group: _Optional[str] = ..., topic: _Optional[str] = ..., partition: _Optional[int] = ..., first_offset: _Optional[int] = ..., end_offset: _Optional[int] = ..., from_ms: _Optional[int] = ..., until_ms: _Optional[int] = ..., reason_contains: _Optional[str] = ..., key: _Optional[bytes] = ..., limit: _Optional[int] = ..., blocked: _Optional[bool] = ...) -> None: ...

class DeadLetter(_message.Message):
    __slots__ = ("dead_letter_topic", "partition", "offset", "state", "source_topic", "source_topic_id", "source_offset", "source_append_time_ms", "failures", "first_failure_ms", "last_failure_ms", "reason", "redrives", "dead_lettered_ms", "timestamp_ms", "key", "value_bytes")
    DEAD_LETTER_TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_TOPIC_FIELD_NUMBER: _ClassVar[int]
    SOURCE_TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    SOURCE_APPEND_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    FIRST_FAILURE_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_FAILURE_MS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REDRIVES_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTERED_MS_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_BYTES_FIELD_NUMBER: _ClassVar[int]
    dead_letter_topic: str
    partition: int
    offset: int
    state: str
    source_topic: str
    source_topic_id: str
    source_offset: int
    source_append_time_ms: int
    failures: int
    first_failure_ms: int
    last_failure_ms: int
    reason: str
    redrives: int
    dead_lettered_ms: int
    timestamp_ms: int
    key: bytes
    value_bytes: int
    def __init__(self, dead_letter_topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ..., state: _Optional[str] = ..., source_topic: _Optional[str] = ..., source_topic_id: _Optional[str] = ..., source_offset: _Optional[int] = ..., source_append_time_ms: _Optional[int] = ..., failures: _Optional[int] = ..., first_failure_ms: _Optional[int] = ..., last_failure_ms: _Optional[int] = ..., reason: _Optional[str] = ..., redrives: _Optional[int] = ..., dead_lettered_ms: _Optional[int] = ..., timestamp_ms: _Optional[int] = ..., key: _Optional[bytes] = ..., value_bytes: _Optional[int] = ...) -> None: ...

class ListDeadLettersRequest(_message.Message):
    __slots__ = ("filter", "with_resolved", "page_size", "page_token")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    WITH_RESOLVED_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    filter: DeadLetterFilter
    with_resolved: bool
    page_size: int
    page_token: str
    def __init__(self, filter: _Optional[_Union[DeadLetterFilter, _Mapping]] = ..., with_resolved: _Optional[bool] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListDeadLettersResponse(_message.Message):
    __slots__ = ("dead_letters", "next_page_token")
    DEAD_LETTERS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    dead_letters: _containers.RepeatedCompositeFieldContainer[DeadLetter]
    next_page_token: str
    def __init__(self, dead_letters: _Optional[_Iterable[_Union[DeadLetter, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetDeadLetterRequest(_message.Message):
    __slots__ = ("group", "topic", "partition", "offset", "blocked")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_FIELD_NUMBER: _ClassVar[int]
    group: str
    topic: str
    partition: int
    offset: int
    blocked: bool
    def __init__(self, group: _Optional[str] = ..., topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ..., blocked: _Optional[bool] = ...) -> None: ...

class GetDeadLetterResponse(_message.Message):
    __slots__ = ("dead_letter", "value", "headers")
    DEAD_LETTER_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    dead_letter: DeadLetter
    value: bytes
    headers: _containers.RepeatedCompositeFieldContainer[_records_pb2.Header]
    def __init__(self, dead_letter: _Optional[_Union[DeadLetter, _Mapping]] = ..., value: _Optional[bytes] = ..., headers: _Optional[_Iterable[_Union[_records_pb2.Header, _Mapping]]] = ...) -> None: ...

class ResolveDeadLettersRequest(_message.Message):
    __slots__ = ("filter", "discard", "dry_run")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    DISCARD_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    filter: DeadLetterFilter
    discard: bool
    dry_run: bool
    def __init__(self, filter: _Optional[_Union[DeadLetterFilter, _Mapping]] = ..., discard: _Optional[bool] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class ResolveDeadLettersResponse(_message.Message):
    __slots__ = ("count",)
    COUNT_FIELD_NUMBER: _ClassVar[int]
    count: int
    def __init__(self, count: _Optional[int] = ...) -> None: ...

class CopyDeadLettersRequest(_message.Message):
    __slots__ = ("filter", "to_topic", "dry_run")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    TO_TOPIC_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    filter: DeadLetterFilter
    to_topic: str
    dry_run: bool
    def __init__(self, filter: _Optional[_Union[DeadLetterFilter, _Mapping]] = ..., to_topic: _Optional[str] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class CopyDeadLettersResponse(_message.Message):
    __slots__ = ("count",)
    COUNT_FIELD_NUMBER: _ClassVar[int]
    count: int
    def __init__(self, count: _Optional[int] = ...) -> None: ...

class StartRedriveRequest(_message.Message):
    __slots__ = ("filter", "records_per_second", "dry_run")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    RECORDS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    filter: DeadLetterFilter
    records_per_second: float
    dry_run: bool
    def __init__(self, filter: _Optional[_Union[DeadLetterFilter, _Mapping]] = ..., records_per_second: _Optional[float] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class StartRedriveResponse(_message.Message):
    __slots__ = ("redrive",)
    REDRIVE_FIELD_NUMBER: _ClassVar[int]
    redrive: Redrive
    def __init__(self, redrive: _Optional[_Union[Redrive, _Mapping]] = ...) -> None: ...

class Redrive(_message.Message):
    __slots__ = ("redrive_id", "filter", "state", "selected_count", "redriven_count", "resolved_count", "parked_again_count", "started_ms", "ended_ms", "records_per_second")
    REDRIVE_ID_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SELECTED_COUNT_FIELD_NUMBER: _ClassVar[int]
    REDRIVEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_COUNT_FIELD_NUMBER: _ClassVar[int]
    PARKED_AGAIN_COUNT_FIELD_NUMBER: _ClassVar[int]
    STARTED_MS_FIELD_NUMBER: _ClassVar[int]
    ENDED_MS_FIELD_NUMBER: _ClassVar[int]
    RECORDS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    redrive_id: str
    filter: DeadLetterFilter
    state: str
    selected_count: int
    redriven_count: int
    resolved_count: int
    parked_again_count: int
    started_ms: int
    ended_ms: int
    records_per_second: float
    def __init__(self, redrive_id: _Optional[str] = ..., filter: _Optional[_Union[DeadLetterFilter, _Mapping]] = ..., state: _Optional[str] = ..., selected_count: _Optional[int] = ..., redriven_count: _Optional[int] = ..., resolved_count: _Optional[int] = ..., parked_again_count: _Optional[int] = ..., started_ms: _Optional[int] = ..., ended_ms: _Optional[int] = ..., records_per_second: _Optional[float] = ...) -> None: ...

class GetRedriveRequest(_message.Message):
    __slots__ = ("redrive_id",)
    REDRIVE_ID_FIELD_NUMBER: _ClassVar[int]
    redrive_id: str
    def __init__(self, redrive_id: _Optional[str] = ...) -> None: ...

class GetRedriveResponse(_message.Message):
    __slots__ = ("redrive",)
    REDRIVE_FIELD_NUMBER: _ClassVar[int]
    redrive: Redrive
    def __init__(self, redrive: _Optional[_Union[Redrive, _Mapping]] = ...) -> None: ...

class ListRedrivesRequest(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: str
    def __init__(self, group: _Optional[str] = ...) -> None: ...

class ListRedrivesResponse(_message.Message):
    __slots__ = ("redrives",)
    REDRIVES_FIELD_NUMBER: _ClassVar[int]
    redrives: _containers.RepeatedCompositeFieldContainer[Redrive]
    def __init__(self, redrives: _Optional[_Iterable[_Union[Redrive, _Mapping]]] = ...) -> None: ...

class CancelRedriveRequest(_message.Message):
    __slots__ = ("redrive_id",)
    REDRIVE_ID_FIELD_NUMBER: _ClassVar[int]
    redrive_id: str
    def __init__(self, redrive_id: _Optional[str] = ...) -> None: ...

class CancelRedriveResponse(_message.Message):
    __slots__ = ("redrive",)
    REDRIVE_FIELD_NUMBER: _ClassVar[int]
    redrive: Redrive
    def __init__(self, redrive: _Optional[_Union[Redrive, _Mapping]] = ...) -> None: ...
