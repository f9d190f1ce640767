"""What is kept of producers besides the log: tables as of an offset. Pure.

The sequences themselves are in the headers of the log. A saved table shortens the way:
after a restart only the headers from its offset on are read.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any

from logbroker.errors import DataLossError
from logbroker.record.partition_id import PartitionId
from logbroker.topic.producers import ProducerTable


@dataclass(frozen=True, slots=True)
class TableSaved:
    """A partition's producers, as they were when `offset` came next."""

    topic_id: str
    partition: int
    offset: int
    rows: list[list[int]]


@dataclass(frozen=True, slots=True)
class TopicForgotten:
    """A topic is erased, and its tables with it."""

    topic_id: str


ProducerEvent = TableSaved | TopicForgotten
KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in (TableSaved, TopicForgotten)}


def encode(event: ProducerEvent) -> bytes:
    """Returns the event as JSON, with its kind."""
    return json.dumps({"event": type(event).__name__, **asdict(event)}).encode()


def decode(data: bytes) -> ProducerEvent:
    """Returns the event; DataLossError for bytes that are none."""
    try:
        values = json.loads(data)
        event: ProducerEvent = KINDS[values.pop("event")](**values)
        if isinstance(event, TableSaved):
            ProducerTable.check_rows(event.rows)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataLossError("DAMAGED_BATCH", f"not an event: {data[:100]!r}") from error
    return event


class ProducerRegistry:
    """`apply` is the only way it changes, live and at replay alike."""

    def __init__(self) -> None:
        self._tables: dict[tuple[str, int], TableSaved] = {}

    def table_of(self, partition: PartitionId) -> tuple[int, ProducerTable]:
        """Returns the offset and the table saved for it; 0 and an empty one if none was."""
        saved = self._tables.get((partition.topic_id, partition.partition))
        return (
            (saved.offset, ProducerTable.from_rows(saved.rows)) if saved else (0, ProducerTable())
        )

    def saved_offset(self, partition: PartitionId) -> int:
        """Returns the offset of the saved table; 0 if none was."""
        saved = self._tables.get((partition.topic_id, partition.partition))
        return saved.offset if saved else 0

    def knows(self, topic_id: str) -> bool:
        """Returns whether a table of this topic was saved."""
        return any(key[0] == topic_id for key in self._tables)

    def apply(self, event: ProducerEvent) -> None:
        """Takes in one event."""
        match event:
            case TableSaved(topic_id, partition):
                self._tables[topic_id, partition] = event
            case TopicForgotten(topic_id):
                for key in [key for key in self._tables if key[0] == topic_id]:
                    del self._tables[key]

    def snapshot(self) -> list[ProducerEvent]:
        """Returns the events that make an empty registry equal to this one."""
        return list(self._tables.values())
