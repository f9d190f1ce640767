from logbroker.v1 import error_pb2 as _error_pb2
from logbroker.v1 import group_pb2 as _group_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CreateGroupRequest(_message.Message):
    __slots__ = ("group", "settings")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    group: str
    settings: _group_pb2.GroupSettings
    def __init__(self, group: _Optional[str] = ..., settings: _Optional[_Union[_group_pb2.GroupSettings, _Mapping]] = ...) -> None: ...

class CreateGroupResponse(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: _group_pb2.Group
    def __init__(self, group: _Optional[_Union[_group_pb2.Group, _Mapping]] = ...) -> None: ...

class GetGroupRequest(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: str
    def __init__(self, group: _Optional[str] = ...) -> None: ...

class GetGroupResponse(_message.Message):
    __slots__ = ("group", "members", "progress", "dead_letters")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTERS_FIELD_NUMBER: _ClassVar[int]
    group: _group_pb2.Group
    members: _containers.RepeatedCompositeFieldContainer[_group_pb2.Member]
    progress: _containers.RepeatedCompositeFieldContainer[_group_pb2.PartitionProgress]
    dead_letters: _containers.RepeatedCompositeFieldContainer[DeadLetterProgress]
    def __init__(self, group: _Optional[_Union[_group_pb2.Group, _Mapping]] = ..., members: _Optional[_Iterable[_Union[_group_pb2.Member, _Mapping]]] = ..., progress: _Optional[_Iterable[_Union[_group_pb2.PartitionProgress, _Mapping]]] = ..., dead_letters: _Optional[_Iterable[_Union[DeadLetterProgress, _Mapping]]] = ...) -> None: ...

class DeadLetterProgress(_message.Message):
    __slots__ = ("topic", "partition", "parked_count", "redriven_count")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    PARKED_COUNT_FIELD_NUMBER: _ClassVar[int]
    REDRIVEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    parked_count: int
    redriven_count: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., parked_count: _Optional[int] = ..., redriven_count: _Optional[int] = ...) -> None: ...

class ListGroupsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListGroupsResponse(_message.Message):
    __slots__ = ("groups", "next_page_token")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[GroupSummary]
    next_page_token: str
    def __init__(self, groups: _Optional[_Iterable[_Union[GroupSummary, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GroupSummary(_message.Message):
    __slots__ = ("group", "member_count", "lag", "age_ms", "parked_count", "blocked_count")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MEMBER_COUNT_FIELD_NUMBER: _ClassVar[int]
    LAG_FIELD_NUMBER: _ClassVar[int]
    AGE_MS_FIELD_NUMBER: _ClassVar[int]
    PARKED_COUNT_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_COUNT_FIELD_NUMBER: _ClassVar[int]
    group: _group_pb2.Group
    member_count: int
    lag: int
    age_ms: int
    parked_count: int
    blocked_count: int
    def __init__(self, group: _Optional[_Union[_group_pb2.Group, _Mapping]] = ..., member_count: _Optional[int] = ..., lag: _Optional[int] = ..., age_ms: _Optional[int] = ..., parked_count: _Optional[int] = ..., blocked_count: _Optional[int] = ...) -> None: ...

class UpdateGroupRequest(_message.Message):
    __slots__ = ("group", "settings")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    group: str
    settings: _group_pb2.GroupSettings
    def __init__(self, group: _Optional[str] = ..., settings: _Optional[_Union[_group_pb2.GroupSettings, _Mapping]] = ...) -> None: ...

class UpdateGroupResponse(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: _group_pb2.Group
    def __init__(self, group: _Optional[_Union[_group_pb2.Group, _Mapping]] = ...) -> None: ...

class DeleteGroupRequest(_message.Message):
    __slots__ = ("group", "force")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    group: str
    force: bool
    def __init__(self, group: _Optional[str] = ..., force: _Optional[bool] = ...) -> None: ...

class DeleteGroupResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CommitOffsetsRequest(_message.Message):
    __slots__ = ("group", "commits")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    COMMITS_FIELD_NUMBER: _ClassVar[int]
    group: str
    commits: _containers.RepeatedCompositeFieldContainer[Commit]
    def __init__(self, group: _Optional[str] = ..., commits: _Optional[_Iterable[_Union[Commit, _Mapping]]] = ...) -> None: ...

class Commit(_message.Message):
    __slots__ = ("topic", "topic_id", "partition", "offset", "is_automatic")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    IS_AUTOMATIC_FIELD_NUMBER: _ClassVar[int]
    topic: str
    topic_id: str
    partition: int
    offset: int
    is_automatic: bool
    def __init__(self, topic: _Optional[str] = ..., topic_id: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ..., is_automatic: _Optional[bool] = ...) -> None: ...

class CommitOffsetsResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[CommitResult]
    def __init__(self, results: _Optional[_Iterable[_Union[CommitResult, _Mapping]]] = ...) -> None: ...

class CommitResult(_message.Message):
    __slots__ = ("committed_offset", "error")
    COMMITTED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    committed_offset: int
    error: _error_pb2.Error
    def __init__(self, committed_offset: _Optional[int] = ..., error: _Optional[_Union[_error_pb2.Error, _Mapping]] = ...) -> None: ...

class GetOffsetsRequest(_message.Message):
    __slots__ = ("group", "topic")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    group: str
    topic: str
    def __init__(self, group: _Optional[str] = ..., topic: _Optional[str] = ...) -> None: ...

class GetOffsetsResponse(_message.Message):
    __slots__ = ("progress",)
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    progress: _containers.RepeatedCompositeFieldContainer[_group_pb2.PartitionProgress]
    def __init__(self, progress: _Optional[_Iterable[_Union[_group_pb2.PartitionProgress, _Mapping]]] = ...) -> None: ...

class ResetOffsetsRequest(_message.Message):
    __slots__ = ("group", "topic", "partitions", "earliest", "latest", "offset", "timestamp_ms", "shift", "force", "dry_run")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    EARLIEST_FIELD_NUMBER: _ClassVar[int]
    LATEST_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    SHIFT_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    group: str
    topic: str
    partitions: _containers.RepeatedScalarFieldContainer[int]
    earliest: bool
    latest: bool
    offset: int
    timestamp_ms: int
    shift: int
    force: bool
    dry_run: bool
    def __init__(self, group: _Optional[str] = ..., topic: _Optional[str] = ..., partitions: _Optional[_Iterable[int]] = ..., earliest: _Optional[bool] = ..., latest: _Optional[bool] = ..., offset: _Optional[int] = ..., timestamp_ms: _Optional[int] = ..., shift: _Optional[int] = ..., force: _Optional[bool] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class ResetOffsetsResponse(_message.Message):
    __slots__ = ("resets",)
    RESETS_FIELD_NUMBER: _ClassVar[int]
    resets: _containers.RepeatedCompositeFieldContainer[OffsetReset]
    def __init__(self, resets: _Optional[_Iterable[_Union[OffsetReset, _Mapping]]] = ...) -> None: ...

class OffsetReset(_message.Message):
    __slots__ = ("topic", "partition", "from_offset", "to_offset")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    FROM_OFFSET_FIELD_NUMBER: _ClassVar[int]
    TO_OFFSET_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    from_offset: int
    to_offset: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., from_offset: _Optional[int] = ..., to_offset: _Optional[int] = ...) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("group", "topic", "partition", "offset")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    group: str
    topic: str
    partition: int
    offset: int
    def __init__(self, group: _Optional[str] = ..., topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ...) -> None: ...

class ExplainResponse(_message.Message):
    __slots__ = ("state", "message", "details")
    class DetailsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    STATE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    state: str
    message: str
    details: _containers.ScalarMap[str, str]
    def __init__(self, state: _Optional[str] = ..., message: _Optional[str] = ..., details: _Optional[_Mapping[str, str]] = ...) -> None: ...
