"""A topic: a name, one incarnation of it, its partitions and settings."""

from dataclasses import dataclass, fields, replace
from typing import Any

from logbroker.config import Durability, LogConfig
from logbroker.record.partition_id import PartitionId


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """What can be set for a topic. None: the broker's default, or no change in an update."""

    durability: Durability | None = None
    flush_interval_ms: int | None = None
    retention_ms: int | None = None
    retention_bytes: int | None = None
    segment_bytes: int | None = None
    segment_ms: int | None = None

    def over(self, config: LogConfig) -> LogConfig:
        """Returns `config` with what is set here; raises InvalidError where out of range."""
        changes: dict[str, Any] = {
            field.name: value
            for field in fields(self)
            if (value := getattr(self, field.name)) is not None
        }
        return replace(config, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic as it stands in the catalog."""

    topic: str
    topic_id: str
    partition_count: int
    settings: LogConfig
    created_ms: int
    source_topic: str = ""
    """Of a dead-letter topic: what its records come from..."""
    source_topic_id: str = ""
    source_group: str = ""
    """... and which group failed at them."""

    @property
    def is_dead_letter_topic(self) -> bool:
        """Returns whether the broker made it for what a group failed at."""
        return bool(self.source_group)

    def partition(self, partition: int) -> PartitionId:
        """Returns the id of the partition of this number."""
        return PartitionId(self.topic, self.topic_id, partition)

    def partitions(self) -> list[PartitionId]:
        """Returns the ids of all partitions, by number."""
        return [self.partition(number) for number in range(self.partition_count)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatus:
    """The state of one partition, as a client is told."""

    partition: int
    log_start_offset: int
    high_watermark: int
    next_offset: int
    size_bytes: int
    segment_count: int
    damaged: tuple[tuple[int, int], ...] = ()
    failure: str = ""
