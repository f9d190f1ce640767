"""`topic create|list|describe|update|grow|delete|trim`."""

import sys
from dataclasses import fields
from typing import Annotated, Any

import typer

from logbroker.cli.command import DEFAULT_SERVER, OutputOption, ServerOption, TopicArgument, call
from logbroker.cli.moment import show_time
from logbroker.cli.output import Output, note, write, write_fields, write_json, write_table
from logbroker.cli.units import (
    UNLIMITED,
    duration_ms,
    duration_or_unlimited_ms,
    show_duration,
    show_size,
    size_bytes,
    size_or_unlimited_bytes,
)
from logbroker.client.client import Client
from logbroker.config import Durability, LogConfig
from logbroker.topic.names import check_name
from logbroker.topic.topic import PartitionStatus, Topic, TopicSettings

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Make, show, change and remove topics."
)

DurabilityOption = Annotated[
    Durability | None, typer.Option("--durability", help="What a receipt promises.")
]
RetentionOption = Annotated[
    int | None,
    typer.Option(
        "--retention",
        metavar="DURATION|unlimited",
        parser=duration_or_unlimited_ms,
        help="How long records are kept after their append time, such as 7d.",
    ),
]
RetentionBytesOption = Annotated[
    int | None,
    typer.Option(
        "--retention-bytes",
        metavar="SIZE|unlimited",
        parser=size_or_unlimited_bytes,
        help="How much a partition keeps, such as 10GiB.",
    ),
]
SegmentBytesOption = Annotated[
    int | None,
    typer.Option(
        "--segment-bytes",
        metavar="SIZE",
        parser=size_bytes,
        help="A segment of this size is closed and the next one begun.",
    ),
]
SegmentAgeOption = Annotated[
    int | None,
    typer.Option(
        "--segment-age",
        metavar="DURATION",
        parser=duration_ms,
        help="A segment whose first batch is this old is closed and the next one begun.",
    ),
]
FlushIntervalOption = Annotated[
    int | None,
    typer.Option(
        "--flush-interval",
        metavar="DURATION",
        parser=duration_ms,
        help="The longest a batch of a `written` topic waits for the disk.",
    ),
]


@app.command()
def create(
    topic: TopicArgument,
    partitions: Annotated[
        int, typer.Option("--partitions", "-p", min=1, metavar="N", help="How many partitions.")
    ] = 1,
    durability: DurabilityOption = None,
    retention: RetentionOption = None,
    retention_bytes: RetentionBytesOption = None,
    segment_bytes: SegmentBytesOption = None,
    segment_age: SegmentAgeOption = None,
    flush_interval: FlushIntervalOption = None,
    server: ServerOption = DEFAULT_SERVER,
    output: OutputOption = Output.TABLE,
) -> None:
    """Create a topic. What is not given is as the broker's defaults are."""
    settings = TopicSettings(
        durability=durability,
        flush_interval_ms=flush_interval,
        retention_ms=retention,
        retention_bytes=retention_bytes,
        segment_bytes=segment_bytes,
        segment_ms=segment_age,
    )

    async def verb(client: Client) -> Topic:
        name = check_name(topic)
        return await client.admin.create_topic(name, partition_count=partitions, settings=settings)

    _show_topic(call(server, output, verb), output, "created")


@app.command("list")
def list_topics(server: ServerOption = DEFAULT_SERVER, output: OutputOption = Output.TABLE) -> None:
    """List the topics by name."""

    async def verb(client: Client) -> list[Topic]:
        return await client.admin.list_topics()

    topics = call(server, output, verb)
    if output is Output.JSON:
        for topic in topics:
            write_json(_topic_fields(topic))
        return
    columns = ("topic", "partitions", "durability", "retention", "retention bytes", "created")
    rows = []
    for topic in topics:
        shown = _shown_settings(topic.settings)
        kept = shown["durability"], shown["retention"], shown["retention bytes"]
        rows.append((topic.topic, str(topic.partition_count), *kept, show_time(topic.created_ms)))
    write_table(columns, rows)


@app.command()
def describe(
    topic: TopicArgument,
    server: ServerOption = DEFAULT_SERVER,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show a topic, its settings, and how each of its partitions is."""

    async def verb(client: Client) -> tuple[Topic, tuple[PartitionStatus, ...]]:
        found = await client.admin.get_topic(check_name(topic))
        return found.topic, found.partitions

    found, partitions = call(server, output, verb)
    if output is Output.JSON:
        write_json(_topic_fields(found) | {"partitions": list(map(_partition_fields, partitions))})
        return
    _show_topic(found, output, "")
    write("\n")
    columns = (
        "partition", "log start offset", "high watermark", "next offset", "size", "segments",
        "damage", "failure",
    )  # fmt: skip
    write_table(columns, list(map(_partition_row, partitions)))


@app.command()
def update(
    topic: TopicArgument,
    durability: DurabilityOption = None,
    retention: RetentionOption = None,
    retention_bytes: RetentionBytesOption = None,
    segment_bytes: SegmentBytesOption = None,
    segment_age: SegmentAgeOption = None,
    flush_interval: FlushIntervalOption = None,
    server: ServerOption = DEFAULT_SERVER,
    output: OutputOption = Output.TABLE,
) -> None:
    """Change settings of a topic. What is not given stays as it is."""
    settings = TopicSettings(
        durability=durability,
        flush_interval_ms=flush_interval,
        retention_ms=retention,
        retention_bytes=retention_bytes,
        segment_bytes=segment_bytes,
        segment_ms=segment_age,
    )
    if settings == TopicSettings():
        raise typer.BadParameter("nothing to change; give a setting, such as --retention 7d")

    async def verb(client: Client) -> Topic:
        return await client.admin.update_topic(check_name(topic), settings)

    _show_topic(call(server, output, verb), output, "updated")


@app.command()
def grow(
    topic: TopicArgument,
    partitions: Annotated[
        int, typer.Option("--partitions", "-p", min=1, metavar="N", help="The new count.")
    ],
    server: ServerOption = DEFAULT_SERVER,
    output: OutputOption = Output.TABLE,
) -> None:
    """Add partitions. Keys may then map to other partitions than before."""

    async def verb(client: Client) -> tuple[Topic, str]:
        return await client.admin.grow_topic(check_name(topic), partitions)

    grown, warning = call(server, output, verb)
    _show_topic(grown, output, "grown")
    if warning:
        note(f"warning: {warning}")


@app.command()
def delete(
    topic: TopicArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    server: ServerOption = DEFAULT_SERVER,
    output: OutputOption = Output.TABLE,
) -> None:
    """Delete a topic and all its records."""
    if not yes:
        if not sys.stdin.isatty():
            raise typer.BadParameter("deletes all records of the topic: say --yes if you mean it")
        _confirm(topic, server, output)

    async def verb(client: Client) -> None:
        await client.admin.delete_topic(check_name(topic))

    call(server, output, verb)
    if output is Output.JSON:
        write_json({"topic": topic, "deleted": True})
    else:
        write(f"deleted {topic}\n")


@app.command()
def trim(
    topic: TopicArgument,
    partition: Annotated[
        int, typer.Argument(min=0, metavar="PARTITION", help="The partition's number.")
    ],
    offset: Annotated[
        int, typer.Argument(min=0, metavar="OFFSET", help="The first offset to keep.")
    ],
    server: ServerOption = DEFAULT_SERVER,
    output: OutputOption = Output.TABLE,
) -> None:
    """Remove the records of a partition below an offset."""

    async def verb(client: Client) -> int:
        return await client.admin.trim_topic(check_name(topic), partition, offset)

    start = call(server, output, verb)
    if output is Output.JSON:
        write_json({"topic": topic, "partition": partition, "log_start_offset": str(start)})
    else:
        write(f"{topic} partition {partition} starts at offset {start}\n")


def _confirm(topic: str, server: str, output: Output) -> None:
    """Asks whether to go on, saying how much is at stake; ends the command unless told so."""

    async def verb(client: Client) -> tuple[PartitionStatus, ...]:
        return (await client.admin.get_topic(check_name(topic))).partitions

    partitions = call(server, output, verb)
    records = sum(each.high_watermark - each.log_start_offset for each in partitions)
    size = show_size(sum(each.size_bytes for each in partitions))
    typer.confirm(f"Delete {topic} with its {records} records ({size})?", abort=True, err=True)


def _show_topic(topic: Topic, output: Output, done: str) -> None:
    if output is Output.JSON:
        write_json(_topic_fields(topic))
        return
    if done:
        write(f"{done} {topic.topic}\n")
    about = {
        "topic": topic.topic,
        "topic id": topic.topic_id,
        "partitions": str(topic.partition_count),
        "created": show_time(topic.created_ms),
    }
    write_fields(about | _shown_settings(topic.settings))


def _shown_settings(settings: LogConfig) -> dict[str, str]:
    retention_bytes = settings.retention_bytes
    return {
        "durability": settings.durability,
        "flush interval": show_duration(settings.flush_interval_ms),
        "retention": show_duration(settings.retention_ms) if settings.retention_ms else UNLIMITED,
        "retention bytes": show_size(retention_bytes) if retention_bytes else UNLIMITED,
        "segment bytes": show_size(settings.segment_bytes),
        "segment age": show_duration(settings.segment_ms),
    }


def _topic_fields(topic: Topic) -> dict[str, Any]:
    settings = {each.name: str(getattr(topic.settings, each.name)) for each in fields(LogConfig)}
    return {
        "topic": topic.topic,
        "topic_id": topic.topic_id,
        "partition_count": topic.partition_count,
        "settings": settings,
        "created_ms": str(topic.created_ms),
    }


def _partition_fields(status: PartitionStatus) -> dict[str, Any]:
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


def _partition_row(status: PartitionStatus) -> tuple[str, ...]:
    damage = ", ".join(f"{first} to {end - 1}" for first, end in status.damaged)
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
