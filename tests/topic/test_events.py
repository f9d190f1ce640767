"""What is journaled about topics comes back as it was."""

import json

import pytest

from logbroker.config import Durability, LogConfig
from logbroker.errors import DataLossError
from logbroker.topic import events, producer_registry
from logbroker.topic.events import (
    TopicCreated,
    TopicDeleted,
    TopicErased,
    TopicGrown,
    TopicUpdated,
)
from logbroker.topic.producer_registry import TableSaved, TopicForgotten
from logbroker.topic.topic import Topic

SETTINGS = LogConfig(durability=Durability.WRITTEN, retention_ms=5, segment_bytes=4096)
TOPIC = Topic(topic="a", topic_id="id", partition_count=3, settings=SETTINGS, created_ms=7)


@pytest.mark.parametrize(
    "event",
    [
        TopicCreated(TOPIC),
        TopicUpdated("id", SETTINGS),
        TopicGrown("id", 9),
        TopicDeleted("id"),
        TopicErased("id"),
    ],
)
def test_an_event_about_a_topic_comes_back_as_it_was(event):
    assert events.decode(events.encode(event)) == event


@pytest.mark.parametrize(
    "event",
    [TableSaved("id", 2, 30, [[1, 0, 2, 3, 4, 5]]), TopicForgotten("i")],
)
def test_an_event_about_producers_comes_back_as_it_was(event):
    assert producer_registry.decode(producer_registry.encode(event)) == event


def test_a_setting_of_a_later_version_is_passed_over():
    values = json.loads(events.encode(TopicUpdated("id", SETTINGS)))
    values["settings"]["of_a_later_version"] = 1
    assert events.decode(json.dumps(values).encode()) == TopicUpdated("id", SETTINGS)


@pytest.mark.parametrize("decode", [events.decode, producer_registry.decode])
@pytest.mark.parametrize(
    "data",
    [
        b"", b"\xff", b"[]", b"3", b"null", b"{}", b'{"event": "Unheard"}', b'{"event": []}',
        b'{"event": "TopicGrown", "topic_id": "id"}',
        b'{"event": "TopicCreated", "topic": 1}',
        b'{"event": "TopicUpdated", "topic_id": "id", "settings": {"durability": "sure"}}',
        b'{"event": "TopicUpdated", "topic_id": "id", "settings": '
        b'{"durability": "synced", "segment_bytes": 1}}',
    ],
)  # fmt: skip
def test_bytes_that_are_no_event_are_lost_data(decode, data):
    with pytest.raises(DataLossError):
        decode(data)
