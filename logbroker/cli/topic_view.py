"""How topics and their partitions are shown: in words and units, and as JSON."""

from dataclasses import fields
from typing import Any

from logbroker.cli.moment import show_time
from logbroker.cli.output import Output, write, write_fields, write_json
from logbroker.cli.units import UNLIMITED, show_duration, show_size
from logbroker.config import LogConfig
from logbroker.topic.topic import PartitionStatus, Topic

PARTITION_COLUMNS = (
    "partition", "log start offset", "high watermark", "next offset", "size", "segments",
    "damage", "failure",
)  # fmt: skip


def write_topic(topic: Topic, output: Output, done: str) -> None:
    """Writes the topic, behind a line that says what was done to it, if anything was."""
    if output is Output.JSON:
        write_json(topic_fields(topic))
        return
    if done:
        write(f"{done} {topic.topic}\n")
    about = {
        "topic": topic.topic,
        "topic id": topic.topic_id,
        "partitions": str(topic.partition_count),
        "created": show_time(topic.created_ms),
    }
    write_fields(about | settings_for_people(topic.settings))


def settings_for_people(settings: LogConfig) -> dict[str, str]:
    """Returns the settings with units, by their names in words."""
    retention_bytes = settings.retention_bytes
    return {
        "durability": settings.durability,
        "flush interval": show_duration(settings.flush_interval_ms),
        "retention": show_duration(settings.retention_ms) if settings.retention_ms else UNLIMITED,
        "retention bytes": show_size(retention_bytes) if retention_bytes else UNLIMITED,
        "segment bytes": show_size(settings.segment_bytes),
        "segment age": show_duration(settings.segment_ms),
    }


def topic_fields(topic: Topic) -> dict[str, Any]:
    """Returns the topic for JSON: int64 as strings."""
    settings = {each.name: str(getattr(topic.settings, each.name)) for each in fields(LogConfig)}
    return {
        "topic": topic.topic,
        "topic_id": topic.topic_id,
        "partition_count": topic.partition_count,
        "settings": settings,
        "created_ms": str(topic.created_ms),
    }


def partition_fields(status: PartitionStatus) -> dict[str, Any]:
    """Returns the state of a partition for JSON: int64 as strings."""
    return {
        "partition": status.partition,
        "log_start_offset": str(status.log_start_offset),
        "high_watermark": str(status.high_watermark),
        "next_offset": str(status.next_offset),
        "size_bytes": str(status.size_bytes),
        "segment_count": status.segment_count,
        "damaged": [
            {"first_offset": str(first), "end_offset": str(end)} for first, end in status.damaged
        ],
        "failure": status.failure,
    }


def partition_row(status: PartitionStatus) -> tuple[str, ...]:
    """Returns the state of a partition, in the order of PARTITION_COLUMNS."""
    damage = ", ".join(f"{first} to {end}" for first, end in status.damaged)
    return (
        str(status.partition),
        str(status.log_start_offset),
        str(status.high_watermark),
        str(status.next_offset),
        show_size(status.size_bytes),
        str(status.segment_count),
        damage or "none",
        status.failure or "none",
    )
