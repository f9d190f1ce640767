from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class Reason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REASON_UNSPECIFIED: _ClassVar[Reason]
    REASON_INVALID_NAME: _ClassVar[Reason]
    REASON_INVALID_ARGUMENT: _ClassVar[Reason]
    REASON_INVALID_OFFSET: _ClassVar[Reason]
    REASON_INVALID_SETTING: _ClassVar[Reason]
    REASON_BAD_BATCH: _ClassVar[Reason]
    REASON_RECORD_TOO_LARGE: _ClassVar[Reason]
    REASON_BATCH_TOO_LARGE: _ClassVar[Reason]
    REASON_TOO_MANY_HEADERS: _ClassVar[Reason]
    REASON_HEADER_TOO_LARGE: _ClassVar[Reason]
    REASON_RESPONSE_TOO_LARGE: _ClassVar[Reason]
    REASON_TOPIC_NOT_FOUND: _ClassVar[Reason]
    REASON_PARTITION_NOT_FOUND: _ClassVar[Reason]
    REASON_GROUP_NOT_FOUND: _ClassVar[Reason]
    REASON_DEAD_LETTER_NOT_FOUND: _ClassVar[Reason]
    REASON_REDRIVE_NOT_FOUND: _ClassVar[Reason]
    REASON_TOPIC_ALREADY_EXISTS: _ClassVar[Reason]
    REASON_GROUP_ALREADY_EXISTS: _ClassVar[Reason]
    REASON_OFFSET_OUT_OF_RANGE: _ClassVar[Reason]
    REASON_TOPIC_RECREATED: _ClassVar[Reason]
    REASON_UNEXPECTED_OFFSET: _ClassVar[Reason]
    REASON_GROUP_IN_USE: _ClassVar[Reason]
    REASON_CLIENT_CLOSED: _ClassVar[Reason]
    REASON_BROKER_RUNNING: _ClassVar[Reason]
    REASON_SEQUENCE_GAP: _ClassVar[Reason]
    REASON_SEQUENCE_TOO_OLD: _ClassVar[Reason]
    REASON_PRODUCER_FENCED: _ClassVar[Reason]
    REASON_LEASE_LOST: _ClassVar[Reason]
    REASON_MEMBER_FENCED: _ClassVar[Reason]
    REASON_REDRIVE_RUNNING: _ClassVar[Reason]
    REASON_DISK_FULL: _ClassVar[Reason]
    REASON_OVERLOADED: _ClassVar[Reason]
    REASON_TOO_MANY_PARTITIONS: _ClassVar[Reason]
    REASON_TOO_MANY_GROUPS: _ClassVar[Reason]
    REASON_STORAGE_FAILED: _ClassVar[Reason]
    REASON_SHUTTING_DOWN: _ClassVar[Reason]
    REASON_TOPIC_DAMAGED: _ClassVar[Reason]
    REASON_UNREACHABLE: _ClassVar[Reason]
    REASON_DAMAGED_BATCH: _ClassVar[Reason]
    REASON_BROKER_FAULT: _ClassVar[Reason]
    REASON_OUTCOME_UNKNOWN: _ClassVar[Reason]
REASON_UNSPECIFIED: Reason
REASON_INVALID_NAME: Reason
REASON_INVALID_ARGUMENT: Reason
REASON_INVALID_OFFSET: Reason
REASON_INVALID_SETTING: Reason
REASON_BAD_BATCH: Reason
REASON_RECORD_TOO_LARGE: Reason
REASON_BATCH_TOO_LARGE: Reason
REASON_TOO_MANY_HEADERS: Reason
REASON_HEADER_TOO_LARGE: Reason
REASON_RESPONSE_TOO_LARGE: Reason
REASON_TOPIC_NOT_FOUND: Reason
REASON_PARTITION_NOT_FOUND: Reason
REASON_GROUP_NOT_FOUND: Reason
REASON_DEAD_LETTER_NOT_FOUND: Reason
REASON_REDRIVE_NOT_FOUND: Reason
REASON_TOPIC_ALREADY_EXISTS: Reason
REASON_GROUP_ALREADY_EXISTS: Reason
REASON_OFFSET_OUT_OF_RANGE: Reason
REASON_TOPIC_RECREATED: Reason
REASON_UNEXPECTED_OFFSET: Reason
REASON_GROUP_IN_USE: Reason
REASON_CLIENT_CLOSED: Reason
REASON_BROKER_RUNNING: Reason
REASON_SEQUENCE_GAP: Reason
REASON_SEQUENCE_TOO_OLD: Reason
REASON_PRODUCER_FENCED: Reason
REASON_LEASE_LOST: Reason
REASON_MEMBER_FENCED: Reason
REASON_REDRIVE_RUNNING: Reason
REASON_DISK_FULL: Reason
REASON_OVERLOADED: Reason
REASON_TOO_MANY_PARTITIONS: Reason
REASON_TOO_MANY_GROUPS: Reason
REASON_STORAGE_FAILED: Reason
REASON_SHUTTING_DOWN: Reason
REASON_TOPIC_DAMAGED: Reason
REASON_UNREACHABLE: Reason
REASON_DAMAGED_BATCH: Reason
REASON_BROKER_FAULT: Reason
REASON_OUTCOME_UNKNOWN: Reason

class Error(_message.Message):
    __slots__ = ("code", "reason", "message", "details")
    class DetailsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    code: int
    reason: str
    message: str
    details: _containers.ScalarMap[str, str]
    def __init__(self, code: _Optional[int] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., details: _Optional[_Mapping[str, str]] = ...) -> None: ...
