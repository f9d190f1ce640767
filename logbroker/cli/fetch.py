"""`fetch`: records of a topic, from any offset or time, once or as they come."""

import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from logbroker.cli.command import (
    DEFAULT_SERVER,
    OutputOption,
    ServerOption,
    TopicArgument,
    call,
)
from logbroker.cli.moment import Moment, Place, parse_place, parse_stop, show_time
from logbroker.cli.output import Output, counted, flush, note, write, write_bytes
from logbroker.cli.record_json import record_to_json
from logbroker.cli.record_line import TITLES, line_template, record_line
from logbroker.client.client import Client
from logbroker.client.partition_stream import Timestamp
from logbroker.client.reader import Reader
from logbroker.clock import SystemClock
from logbroker.errors import DataLossError, InvalidError, NotFoundError
from logbroker.record.record import Record
from logbroker.topic.names import check_name
from logbroker.topic.topic import PartitionStatus

Show = Callable[[Sequence[Record]], None]


def fetch(
    topic: TopicArgument,
    partition: Annotated[
        list[int] | None,
        typer.Option(
            "--partition", "-p", min=0, metavar="N", help="Only this one. May be repeated."
        ),
    ] = None,
    start: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="PLACE",
            help="earliest, latest, an offset (of one partition), or a time: "
            "2026-07-01T12:00:00+02:00 (no zone: UTC), @MILLISECONDS, or -10m.",
        ),
    ] = "earliest",
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="PLACE", help="Stop before this offset or time."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-F", help="Wait for more at the end.")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, metavar="N", help="Stop after this many records."),
    ] = None,
    last: Annotated[
        int | None,
        typer.Option(
            "--last", min=1, metavar="N", help="Only this many from the end of each partition."
        ),
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="TEMPLATE",
            help=r"Such as '{offset} {key} {value}\n'; also {partition} {time} {timestamp_ms} "
            "{headers} {size}.",
        ),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Do not cut long values.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="Values alone, byte for byte, each with a newline.")
    ] = False,
    skip_damage: Annotated[
        bool, typer.Option("--skip-damage", help="Read on behind damaged batches.")
    ] = False,
    server: ServerOption = DEFAULT_SERVER,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print records. Without --follow, up to the end as it is when the command begins.

    Times are in UTC. A time given without a zone is UTC. What others wrote is shown with
    escapes; --raw writes it as it is, and -o json prints it so that `produce` takes it back.
    """
    now_ms = SystemClock().now_ms()
    place = parse_place(start, now_ms=now_ms)
    stop = None if until is None else parse_stop(until, now_ms=now_ms)
    say_zone("--from", start, place)
    say_zone("--until", until, stop)
    if last is not None and (start != "earliest" or until is not None):
        raise typer.BadParameter("--last says where to start and stop; leave --from and --until")
    show = _show(template, full=full, raw=raw, output=output)

    async def verb(client: Client) -> None:
        statuses = (await client.admin.get_topic(check_name(topic))).partitions
        chosen = _chosen(topic, statuses, partition)
        if last is None:
            _check_offsets(place, stop, len(chosen))
        reader = client.reader(
            topic,
            partition=[each.partition for each in chosen] if partition else None,
            start=_start(place) if last is None else _last(chosen, last),
            stop_offset=stop if isinstance(stop, int) else None,
            stop_timestamp_ms=stop.ms if isinstance(stop, Moment) else None,
            follow=follow,
            skip_damage=skip_damage,
            out_of_range="error" if isinstance(place, int) else "earliest",
        )
        async with reader:
            if output is Output.TABLE and sys.stdout.isatty() and not raw and not template:
                write(TITLES + "\n")
            skipped = await _print(reader, show, limit, skip_damage=skip_damage)
        if skipped:
            note(f"warning: left out for damage: {counted(skipped, 'record')}")

    call(server, output, verb)


async def _print(reader: Reader, show: Show, limit: int | None, *, skip_damage: bool) -> int:
    """Shows `limit` records, or all; returns how many were left out for damage."""
    undecoded = 0
    async for batch in reader.batches():
        try:
            records = batch.records()
        except DataLossError:
            if not skip_damage:
                raise
            undecoded += batch.end_offset - batch.first_offset
            continue
        if limit is not None:
            records, limit = records[:limit], limit - len(records)
        show(records)
        flush()
        if limit is not None and limit <= 0:
            break
    return reader.skipped_count + undecoded


def say_zone(option: str, given: str | None, place: Place | None) -> None:
    """Says on stderr what a time without a zone was taken for."""
    if isinstance(place, Moment) and place.assumed_utc:
        note(f"{option} {given} names no zone and means {show_time(place.ms)} (UTC)")


def _show(template: str | None, *, full: bool, raw: bool, output: Output) -> Show:
    """Returns what writes records; typer.BadParameter for options that contradict."""
    if raw + (template is not None) + (output is Output.JSON) > 1:
        raise typer.BadParameter("of --raw, --format and -o json, only one")
    if raw:
        return _show_raw
    if template is not None:
        with_fields = line_template(template, full=full)
        return lambda records: write("".join(map(with_fields, records)))
    if output is Output.JSON:
        return lambda records: write("".join(f"{record_to_json(each)}\n" for each in records))
    return lambda records: write("".join(f"{record_line(each, full=full)}\n" for each in records))


def _show_raw(records: Sequence[Record]) -> None:
    write_bytes(b"".join((record.value or b"") + b"\n" for record in records))


def _chosen(
    topic: str, statuses: Sequence[PartitionStatus], wanted: Sequence[int] | None
) -> list[PartitionStatus]:
    if unknown := sorted(set(wanted or ()) - {each.partition for each in statuses}):
        message = f"{topic} has no partition {unknown[0]}; it has 0 to {len(statuses) - 1}"
        raise NotFoundError("PARTITION_NOT_FOUND", message, topic=topic, partition=unknown[0])
    return [each for each in statuses if not wanted or each.partition in wanted]


def _check_offsets(place: Place, stop: int | Moment | None, partition_count: int) -> None:
    """Raises InvalidError for an offset that would mean another record in each partition."""
    if partition_count > 1 and (isinstance(place, int) or isinstance(stop, int)):
        message = f"an offset is of one partition, and {partition_count} are read: say which (-p)"
        raise InvalidError("INVALID_ARGUMENT", message)


def _start(place: Place) -> str | int | Timestamp:
    return Timestamp(place.ms) if isinstance(place, Moment) else place


def _last(chosen: Sequence[PartitionStatus], count: int) -> dict[int, int]:
    """Returns where the last `count` records of each partition begin."""
    return {
        each.partition: max(each.log_start_offset, each.high_watermark - count) for each in chosen
    }
