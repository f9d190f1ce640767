from logbroker.v1 import topic_pb2 as _topic_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CreateTopicRequest(_message.Message):
    __slots__ = ("topic", "partition_count", "settings")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_COUNT_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition_count: int
    settings: _topic_pb2.TopicSettings
    def __init__(self, topic: _Optional[str] = ..., partition_count: _Optional[int] = ..., settings: _Optional[_Union[_topic_pb2.TopicSettings, _Mapping]] = ...) -> None: ...

class CreateTopicResponse(_message.Message):
    __slots__ = ("topic",)
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    topic: _topic_pb2.Topic
    def __init__(self, topic: _Optional[_Union[_topic_pb2.Topic, _Mapping]] = ...) -> None: ...

class GetTopicRequest(_message.Message):
    __slots__ = ("topic", "topic_id")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    topic: str
    topic_id: str
    def __init__(self, topic: _Optional[str] = ..., topic_id: _Optional[str] = ...) -> None: ...

class GetTopicResponse(_message.Message):
    __slots__ = ("topic", "partitions")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    topic: _topic_pb2.Topic
    partitions: _containers.RepeatedCompositeFieldContainer[_topic_pb2.PartitionStatus]
    def __init__(self, topic: _Optional[_Union[_topic_pb2.Topic, _Mapping]] = ..., partitions: _Optional[_Iterable[_Union[_topic_pb2.PartitionStatus, _Mapping]]] = ...) -> None: ...

class ListTopicsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListTopicsResponse(_message.Message):
    __slots__ = ("topics", "next_page_token")
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[_topic_pb2.Topic]
    next_page_token: str
    def __init__(self, topics: _Optional[_Iterable[_Union[_topic_pb2.Topic, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class UpdateTopicRequest(_message.Message):
    __slots__ = ("topic", "topic_id", "settings")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    topic_id: str
    settings: _topic_pb2.TopicSettings
    def __init__(self, topic: _Optional[str] = ..., topic_id: _Optional[str] = ..., settings: _Optional[_Union[_topic_pb2.TopicSettings, _Mapping]] = ...) -> None: ...

class UpdateTopicResponse(_message.Message):
    __slots__ = ("topic",)
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    topic: _topic_pb2.Topic
    def __init__(self, topic: _Optional[_Union[_topic_pb2.Topic, _Mapping]] = ...) -> None: ...

class GrowTopicRequest(_message.Message):
    __slots__ = ("topic", "topic_id", "partition_count")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_COUNT_FIELD_NUMBER: _ClassVar[int]
    topic: str
    topic_id: str
    partition_count: int
    def __init__(self, topic: _Optional[str] = ..., topic_id: _Optional[str] = ..., partition_count: _Optional[int] = ...) -> None: ...

class GrowTopicResponse(_message.Message):
    __slots__ = ("topic", "warning")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    WARNING_FIELD_NUMBER: _ClassVar[int]
    topic: _topic_pb2.Topic
    warning: str
    def __init__(self, topic: _Optional[_Union[_topic_pb2.Topic, _Mapping]] = ..., warning: _Optional[str] = ...) -> None: ...

class DeleteTopicRequest(_message.Message):
    __slots__ = ("topic", "topic_id")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    topic: str
    topic_id: str
    def __init__(self, topic: _Optional[str] = ..., topic_id: _Optional[str] = ...) -> None: ...

class DeleteTopicResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TrimTopicRequest(_message.Message):
    __slots__ = ("topic", "topic_id", "partition", "offset")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    topic: str
    topic_id: str
    partition: int
    offset: int
    def __init__(self, topic: _Optional[str] = ..., topic_id: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ...) -> None: ...

class TrimTopicResponse(_message.Message):
    __slots__ = ("log_start_offset",)
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    log_start_offset: int
    def __init__(self, log_start_offset: _Optional[int] = ...) -> None: ...
