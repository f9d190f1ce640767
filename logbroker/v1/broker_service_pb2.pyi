from logbroker.v1 import group_pb2 as _group_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetBrokerRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetBrokerResponse(_message.Message):
    __slots__ = ("version", "limits")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    version: str
    limits: Limits
    def __init__(self, version: _Optional[str] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("record_bytes", "batch_bytes", "header_count", "header_bytes")
    RECORD_BYTES_FIELD_NUMBER: _ClassVar[int]
    BATCH_BYTES_FIELD_NUMBER: _ClassVar[int]
    HEADER_COUNT_FIELD_NUMBER: _ClassVar[int]
    HEADER_BYTES_FIELD_NUMBER: _ClassVar[int]
    record_bytes: int
    batch_bytes: int
    header_count: int
    header_bytes: int
    def __init__(self, record_bytes: _Optional[int] = ..., batch_bytes: _Optional[int] = ..., header_count: _Optional[int] = ..., header_bytes: _Optional[int] = ...) -> None: ...

class GetStatsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetStatsResponse(_message.Message):
    __slots__ = ("uptime_ms", "topic_count", "partition_count", "failed_partition_count", "damaged_range_count", "damaged_topics", "torn_bytes", "disk_free_bytes", "open_file_count", "appended_batch_count", "appended_record_count", "appended_bytes", "fetched_bytes", "duplicate_batch_count", "in_flight_bytes", "error_counts", "open_stream_count", "rss_bytes", "group_count", "member_count", "groups", "failed_journals", "damaged_partitions", "scrubbed_segment_count", "scrubbed_bytes", "scrub_finished_time_ms", "scrub_failure_count", "loop_lag_ms")
    class ErrorCountsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    UPTIME_MS_FIELD_NUMBER: _ClassVar[int]
    TOPIC_COUNT_FIELD_NUMBER: _ClassVar[int]
    PARTITION_COUNT_FIELD_NUMBER: _ClassVar[int]
    FAILED_PARTITION_COUNT_FIELD_NUMBER: _ClassVar[int]
    DAMAGED_RANGE_COUNT_FIELD_NUMBER: _ClassVar[int]
    DAMAGED_TOPICS_FIELD_NUMBER: _ClassVar[int]
    TORN_BYTES_FIELD_NUMBER: _ClassVar[int]
    DISK_FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    OPEN_FILE_COUNT_FIELD_NUMBER: _ClassVar[int]
    APPENDED_BATCH_COUNT_FIELD_NUMBER: _ClassVar[int]
    APPENDED_RECORD_COUNT_FIELD_NUMBER: _ClassVar[int]
    APPENDED_BYTES_FIELD_NUMBER: _ClassVar[int]
    FETCHED_BYTES_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_BATCH_COUNT_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_BYTES_FIELD_NUMBER: _ClassVar[int]
    ERROR_COUNTS_FIELD_NUMBER: _ClassVar[int]
    OPEN_STREAM_COUNT_FIELD_NUMBER: _ClassVar[int]
    RSS_BYTES_FIELD_NUMBER: _ClassVar[int]
    GROUP_COUNT_FIELD_NUMBER: _ClassVar[int]
    MEMBER_COUNT_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    FAILED_JOURNALS_FIELD_NUMBER: _ClassVar[int]
    DAMAGED_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    SCRUBBED_SEGMENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    SCRUBBED_BYTES_FIELD_NUMBER: _ClassVar[int]
    SCRUB_FINISHED_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    SCRUB_FAILURE_COUNT_FIELD_NUMBER: _ClassVar[int]
    LOOP_LAG_MS_FIELD_NUMBER: _ClassVar[int]
    uptime_ms: int
    topic_count: int
    partition_count: int
    failed_partition_count: int
    damaged_range_count: int
    damaged_topics: _containers.RepeatedScalarFieldContainer[str]
    torn_bytes: int
    disk_free_bytes: int
    open_file_count: int
    appended_batch_count: int
    appended_record_count: int
    appended_bytes: int
    fetched_bytes: int
    duplicate_batch_count: int
    in_flight_bytes: int
    error_counts: _containers.ScalarMap[str, int]
    open_stream_count: int
    rss_bytes: int
    group_count: int
    member_count: int
    groups: _containers.RepeatedCompositeFieldContainer[_group_pb2.GroupStats]
    failed_journals: _containers.RepeatedScalarFieldContainer[str]
    damaged_partitions: _containers.RepeatedScalarFieldContainer[str]
    scrubbed_segment_count: int
    scrubbed_bytes: int
    scrub_finished_time_ms: int
    scrub_failure_count: int
    loop_lag_ms: int
    def __init__(self, uptime_ms: _Optional[int] = ..., topic_count: _Optional[int] = ..., partition_count: _Optional[int] = ..., failed_partition_count: _Optional[int] = ..., damaged_range_count: _Optional[int] = ..., damaged_topics: _Optional[_Iterable[str]] = ..., torn_bytes: _Optional[int] = ..., disk_free_bytes: _Optional[int] = ..., open_file_count: _Optional[int] = ..., appended_batch_count: _Optional[int] = ..., appended_record_count: _Optional[int] = ..., appended_bytes: _Optional[int] = ..., fetched_bytes: _Optional[int] = ..., duplicate_batch_count: _Optional[int] = ..., in_flight_bytes: _Optional[int] = ..., error_counts: _Optional[_Mapping[str, int]] = ..., open_stream_count: _Optional[int] = ..., rss_bytes: _Optional[int] = ..., group_count: _Optional[int] = ..., member_count: _Optional[int] = ..., groups: _Optional[_Iterable[_Union[_group_pb2.GroupStats, _Mapping]]] = ..., failed_journals: _Optional[_Iterable[str]] = ..., damaged_partitions: _Optional[_Iterable[str]] = ..., scrubbed_segment_count: _Optional[int] = ..., scrubbed_bytes: _Optional[int] = ..., scrub_finished_time_ms: _Optional[int] = ..., scrub_failure_count: _Optional[int] = ..., loop_lag_ms: _Optional[int] = ...) -> None: ...
