"""`group watch`: lag and age as they change.

On a terminal one table that is renewed in place; elsewhere lines, each with its time; with
`-o json` an object for each look.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Annotated, NamedTuple

import typer
from rich.console import Console
from rich.live import Live

from logbroker.cli.command import DEFAULT_SERVER, OutputOption, ServerOption, call
from logbroker.cli.group_view import (
    PROGRESS_COLUMNS,
    SUMMARY_COLUMNS,
    description_fields,
    progress_row,
    summary_fields,
    summary_row,
)
from logbroker.cli.moment import show_time
from logbroker.cli.output import Output, flush, rich_table, write_json, write_table
from logbroker.cli.units import duration_ms
from logbroker.client.client import Client
from logbroker.client.group_status import GroupDescription, GroupSummary
from logbroker.clock import SystemClock
from logbroker.topic.names import check_name

SHOWN = ("committed", "high watermark", "lag", "age", "leased", "waiting", "parked", "failed")
COLUMNS = ("topic", "partition", *SHOWN, "settled/s", "waits for")
Rows = Sequence[tuple[str, ...]]


class Look(NamedTuple):
    """What is seen at one time: of one group, or of all."""

    now_ms: int
    seen: GroupDescription | list[GroupSummary]


def watch(
    group: Annotated[
        str | None,
        typer.Argument(metavar="[GROUP]", help="Its partitions. Without one: all groups."),
    ] = None,
    interval: Annotated[
        int,
        typer.Option(
            "--interval",
            "-i",
            metavar="DURATION",
            parser=duration_ms,
            help="How long from look to look.",
        ),
    ] = "1s",  # type: ignore[assignment]  # the parser reads it
    count: Annotated[
        int | None,
        typer.Option("--count", "-c", min=1, metavar="N", help="End after so many looks."),
    ] = None,
    server: ServerOption = DEFAULT_SERVER,
    output: OutputOption = Output.TABLE,
) -> None:
    """Watch lag and age, of one group by partition or of all groups, until interrupted."""
    clock = SystemClock()

    async def look(client: Client) -> Look:
        if group is None:
            return Look(clock.now_ms(), await client.admin.list_groups())
        return Look(clock.now_ms(), await client.admin.get_group(check_name(group)))

    async def loop(client: Client, show: Callable[[Look], None]) -> None:
        done, next_ms = 0, clock.monotonic_ms()
        while True:
            show(await look(client))
            done += 1
            if done == count:
                return
            next_ms = max(next_ms + interval, clock.monotonic_ms())
            await clock.wait_until(next_ms)

    async def verb(client: Client) -> None:
        if output is Output.JSON:
            await loop(client, _show_json)
        elif sys.stdout.isatty():
            table, console = Table(), Console(file=sys.stdout)
            with Live(console=console, auto_refresh=False) as live:
                await loop(
                    client,
                    lambda seen: live.update(rich_table(*table.of(seen)), refresh=True),
                )
        else:
            await loop(client, Lines().show)

    call(server, output, verb)


class Table:
    """Turns looks into rows, and remembers the one before: how much was settled since."""

    def __init__(self) -> None:
        self._before_ms = 0
        self._committed: dict[tuple[str, int], int] = {}

    def of(self, look: Look) -> tuple[tuple[str, ...], Rows]:
        """Returns the columns and the rows of a look."""
        if isinstance(look.seen, list):
            return SUMMARY_COLUMNS, [summary_row(one) for one in look.seen]
        rows, committed = [], dict[tuple[str, int], int]()
        took_ms = max(look.now_ms - self._before_ms, 1)
        for progress in look.seen.progress:
            place = progress.topic, progress.partition
            by_name = dict(zip(PROGRESS_COLUMNS, progress_row(progress), strict=True))
            settled = "-"
            if progress.committed_offset is not None:
                committed[place] = progress.committed_offset
                if place in self._committed:
                    change = progress.committed_offset - self._committed[place]
                    settled = f"{change * 1_000 / took_ms:.0f}"
            shown = [by_name[name] for name in SHOWN]
            rows.append((place[0], str(place[1]), *shown, settled, by_name["waits for"]))
        self._before_ms, self._committed = look.now_ms, committed
        return COLUMNS, rows


class Lines:
    """Writes looks as lines, under one row of titles."""

    def __init__(self) -> None:
        self._table = Table()
        self._is_first = True

    def show(self, look: Look) -> None:
        """Writes the rows of a look, each with its time."""
        columns, rows = self._table.of(look)
        time = show_time(look.now_ms)
        write_table(("time", *columns), [(time, *row) for row in rows], has_titles=self._is_first)
        self._is_first = False
        flush()


def _show_json(look: Look) -> None:
    time = {"time_ms": str(look.now_ms)}
    if isinstance(look.seen, list):
        write_json(time | {"groups": [summary_fields(one) for one in look.seen]})
    else:
        write_json(time | description_fields(look.seen))
    flush()
