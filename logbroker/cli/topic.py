"""`topic create|list|describe|update|grow|delete|trim`."""

import sys
from typing import Annotated

import typer

from logbroker.cli.command import DEFAULT_SERVER, OutputOption, ServerOption, TopicArgument, call
from logbroker.cli.moment import show_time
from logbroker.cli.output import Output, counted, note, write, write_json, write_table
from logbroker.cli.topic_options import (
    DurabilityOption,
    FlushIntervalOption,
    RetentionBytesOption,
    RetentionOption,
    SegmentAgeOption,
    SegmentBytesOption,
)
from logbroker.cli.topic_view import (
    PARTITION_COLUMNS,
    partition_fields,
    partition_row,
    settings_for_people,
    topic_fields,
    write_topic,
)
from logbroker.cli.units import show_size
from logbroker.client.client import Client
from logbroker.topic.names import check_name
from logbroker.topic.topic import PartitionStatus, Topic, TopicSettings

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Make, show, change and remove topics."
)


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

    write_topic(call(server, output, verb), output, "created")


@app.command("list")
def list_topics(server: ServerOption = DEFAULT_SERVER, output: OutputOption = Output.TABLE) -> None:
    """List the topics by name."""

    async def verb(client: Client) -> list[Topic]:
        return await client.admin.list_topics()

    topics = call(server, output, verb)
    if output is Output.JSON:
        for topic in topics:
            write_json(topic_fields(topic))
        return
    columns = ("topic", "partitions", "durability", "retention", "retention bytes", "created")
    rows = []
    for topic in topics:
        shown = settings_for_people(topic.settings)
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
        write_json(topic_fields(found) | {"partitions": list(map(partition_fields, partitions))})
        return
    write_topic(found, output, "")
    write("\n")
    write_table(PARTITION_COLUMNS, list(map(partition_row, partitions)))


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

    write_topic(call(server, output, verb), output, "updated")


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
    write_topic(grown, output, "grown")
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
            raise typer.BadParameter("this deletes all its records: say --yes if you mean it")
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
    count = sum(each.high_watermark - each.log_start_offset for each in partitions)
    size = show_size(sum(each.size_bytes for each in partitions))
    question = f"Delete {topic} with its {counted(count, 'record')} ({size})?"
    typer.confirm(question, abort=True, err=True)
