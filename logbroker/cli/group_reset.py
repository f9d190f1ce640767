"""`group reset`: moves a group to another place in a topic.

earliest, latest      the bounds
42                    an offset, of one partition
+100, -100            so many records on from the committed offset, or back
2026-07-01T12:00Z     a time, written as for `fetch --from`; -10m is a time too
"""

import re
from typing import Annotated

import typer

from logbroker.cli.command import (
    DEFAULT_SERVER,
    GroupArgument,
    OutputOption,
    ServerOption,
    TopicArgument,
    call,
)
from logbroker.cli.moment import Moment, parse_place, show_time
from logbroker.cli.output import Output, counted, note, write, write_json, write_table
from logbroker.client.client import Client
from logbroker.client.group_admin import Place as ResetPlace
from logbroker.client.group_status import OffsetReset, Shift
from logbroker.client.partition_stream import Timestamp
from logbroker.clock import SystemClock
from logbroker.errors import InvalidError
from logbroker.topic.names import check_name

FORCE_HINT = "stop its members first, or do it all the same with --force: they lose their leases"
COLUMNS = ("topic", "partition", "from", "to", "change")

ForceOption = Annotated[
    bool,
    typer.Option("--force", help="Although members are attached: they lose their leases."),
]


def reset(
    group: GroupArgument,
    topic: TopicArgument,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="PLACE",
            help="earliest, latest, an offset (of one partition), +N or -N records from where "
            "the group is, or a time: 2026-07-01T12:00:00+02:00 (no zone: UTC), @MS, or -10m.",
        ),
    ],
    partition: Annotated[
        list[int] | None,
        typer.Option(
            "--partition", "-p", min=0, metavar="N", help="Only this one. May be repeated."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be.")] = False,
    force: ForceOption = False,
    server: ServerOption = DEFAULT_SERVER,
    output: OutputOption = Output.TABLE,
) -> None:
    """Move a group to another place in a topic: back to see records again, or on to skip some.

    What it leaves behind on the way back is delivered again; on the way on it counts as settled.
    """
    place = parse_reset(to, now_ms=SystemClock().now_ms())
    if isinstance(place, Moment) and place.assumed_utc:
        note(f"--to {to} names no zone and means {show_time(place.ms)} (UTC)")
    target: ResetPlace = Timestamp(place.ms) if isinstance(place, Moment) else place
    numbers = sorted(set(partition or ()))

    async def verb(client: Client) -> list[OffsetReset]:
        check_name(group)
        if isinstance(target, int) and len(numbers) != 1:
            count = (await client.admin.get_topic(check_name(topic))).topic.partition_count
            if len(numbers) or count > 1:
                message = f"an offset is of one partition of {count}: say which (-p)"
                raise InvalidError("INVALID_ARGUMENT", message)
        return await client.admin.reset_offsets(
            group, check_name(topic), target, partitions=numbers, force=force, dry_run=dry_run
        )

    _show(call(server, output, verb, GROUP_IN_USE=FORCE_HINT), output, dry_run=dry_run)


def parse_reset(text: str, *, now_ms: int) -> str | int | Moment | Shift:
    """Returns where to; typer.BadParameter says what can be written."""
    given = text.strip()
    if re.fullmatch(r"[+-][0-9]{1,18}", given):
        return Shift(int(given))
    try:
        return parse_place(given, now_ms=now_ms)
    except typer.BadParameter as error:
        rule = str(error).replace("must be", "must be +N or -N (records from where it is),", 1)
        raise typer.BadParameter(rule) from None


def _show(resets: list[OffsetReset], output: Output, *, dry_run: bool) -> None:
    if output is Output.JSON:
        for one in resets:
            write_json(
                {
                    "topic": one.topic,
                    "partition": one.partition,
                    "from_offset": None if one.from_offset is None else str(one.from_offset),
                    "to_offset": str(one.to_offset),
                    "dry_run": dry_run,
                }
            )
        return
    rows = []
    for topic, partition, start, end in resets:
        change = "-" if start is None else f"{end - start:+d}"
        shown = "none" if start is None else str(start)
        rows.append((topic, str(partition), shown, str(end), change))
    write_table(COLUMNS, rows)
    moved = sum(one.from_offset != one.to_offset for one in resets)
    changes = [one.to_offset - one.from_offset for one in resets if one.from_offset is not None]
    back, on = -sum(min(change, 0) for change in changes), sum(max(change, 0) for change in changes)
    did, and_so = ("would move", " (--dry-run: nothing was changed)") if dry_run else ("moved", "")
    of = f"{moved} of {counted(len(resets), 'partition')}"
    unknown = f", {len(resets) - len(changes)} from none" if len(changes) < len(resets) else ""
    write(f"{did} {of}: {counted(back, 'record')} back, {on} on{unknown}{and_so}\n")
