"""Values to messages and back: nothing is lost, and what is absent stays absent."""

import pytest

from logbroker.config import Durability, LogConfig
from logbroker.errors import InvalidError
from logbroker.record.record import Header
from logbroker.topic.topic import PartitionStatus, Topic, TopicSettings
from logbroker.v1 import records_pb2, topic_pb2
from logbroker.wire import convert

CONFIG = LogConfig(
    durability=Durability.WRITTEN,
    flush_interval_ms=1,
    retention_ms=0,
    retention_bytes=1 << 40,
    segment_bytes=4096,
    segment_ms=1 << 50,
)


def test_a_topic_comes_back():
    topic = Topic(topic="a", topic_id="id", partition_count=7, settings=CONFIG, created_ms=1 << 41)
    message = topic_pb2.Topic.FromString(convert.topic_to_proto(topic).SerializeToString())
    assert convert.topic_of(message) == topic


@pytest.mark.parametrize(
    "settings",
    [
        TopicSettings(),
        TopicSettings(durability=Durability.SYNCED),
        TopicSettings(retention_ms=0, retention_bytes=0),
        TopicSettings(flush_interval_ms=5, segment_bytes=1, segment_ms=2),
    ],
)
def test_settings_come_back_and_zero_is_not_absent(settings):
    assert convert.settings_of(convert.settings_to_proto(settings)) == settings


def test_a_durability_there_is_not_is_refused():
    message = topic_pb2.TopicSettings()
    message.durability = 9
    with pytest.raises(InvalidError) as raised:
        convert.settings_of(message)
    assert raised.value.reason == "INVALID_SETTING"


@pytest.mark.parametrize("damaged, failure", [((), ""), (((3, 5), (9, 10)), "STORAGE_FAILED")])
def test_a_partitions_state_comes_back(damaged, failure):
    status = PartitionStatus(
        partition=3,
        log_start_offset=1,
        high_watermark=1 << 40,
        next_offset=(1 << 40) + 1,
        size_bytes=5,
        segment_count=6,
        damaged=damaged,
        failure=failure,
    )
    assert convert.partition_status_of(convert.partition_status_to_proto(status)) == status


def test_headers_keep_their_order_their_doubles_and_their_nulls():
    messages = [
        records_pb2.Header(name="k", value=b"1"),
        records_pb2.Header(name="k", value=b""),
        records_pb2.Header(name="K"),
    ]
    assert convert.headers_of(messages) == (Header("k", b"1"), Header("k", b""), Header("K", None))
