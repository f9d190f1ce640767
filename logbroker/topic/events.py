"""What is journaled about topics, and its encoding: one JSON object an event. Pure."""

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from logbroker.config import Durability, LogConfig
from logbroker.errors import DataLossError, InvalidError
from logbroker.topic.topic import Topic


@dataclass(frozen=True, slots=True)
class TopicCreated:
    """A topic is there."""

    topic: Topic


@dataclass(frozen=True, slots=True)
class TopicUpdated:
    """Its settings are these now."""

    topic_id: str
    settings: LogConfig


@dataclass(frozen=True, slots=True)
class TopicGrown:
    """It has this many partitions now."""

    topic_id: str
    partition_count: int


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    """It is gone for everybody; its files are yet to be removed."""

    topic_id: str


@dataclass(frozen=True, slots=True)
class TopicErased:
    """Its files are removed too."""

    topic_id: str


TopicEvent = TopicCreated | TopicUpdated | TopicGrown | TopicDeleted | TopicErased
KINDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (TopicCreated, TopicUpdated, TopicGrown, TopicDeleted, TopicErased)
}
NO_EVENT = (ValueError, KeyError, TypeError, AttributeError, RecursionError, InvalidError)
"""What reading bytes that are no event may raise."""


def encode(event: TopicEvent) -> bytes:
    """Returns the event as JSON, with its kind."""
    return json.dumps({"event": type(event).__name__, **asdict(event)}).encode()


def decode(data: bytes) -> TopicEvent:
    """Returns the event; DataLossError for bytes that are none."""
    try:
        values = json.loads(data)
        kind = KINDS[values.pop("event")]
        if "settings" in values:
            values["settings"] = _settings(values["settings"])
        if kind is TopicCreated:
            topic = values["topic"]
            values["topic"] = Topic(**{**topic, "settings": _settings(topic["settings"])})
        event: TopicEvent = kind(**values)
    except NO_EVENT as error:
        raise DataLossError("DAMAGED_BATCH", f"not an event: {data[:100]!r}") from error
    return event


def _settings(values: dict[str, Any]) -> LogConfig:
    """Reads what this version knows, so that an older broker reads a newer one's journal."""
    known = {field.name for field in fields(LogConfig)}
    given = {name: value for name, value in values.items() if name in known}
    return LogConfig(**{**given, "durability": Durability(given["durability"])})
