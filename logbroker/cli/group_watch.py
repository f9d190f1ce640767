"""`group watch`: lag and age as they change.

On a terminal one screen that is renewed in place; elsewhere lines, each with its time; with
`-o json` an object for each look.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.live import Live

from logbroker.cli.command import DEFAULT_SERVER, OutputOption, ServerOption, call
from logbroker.cli.group_looks import Look, Looks, Screen
from logbroker.cli.group_view import description_fields, summary_fields
from logbroker.cli.moment import show_time
from logbroker.cli.output import Output, flush, write_json, write_table
from logbroker.cli.units import duration_ms
from logbroker.client.client import Client
from logbroker.clock import Clock, SystemClock
from logbroker.errors import LogbrokerError
from logbroker.topic.names import check_name

Show = Callable[[Look], None]
SILENCE_MS = 2_000
"""A broker that has not answered for so long is said not to answer."""


def watch(
    group: Annotated[
        str | None,
        typer.Argument(metavar="GROUP", help="Its partitions. Without one: all groups."),
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

    async def loop(client: Client, show: Show, say: Callable[[int], None]) -> None:
        done, next_ms = 0, clock.monotonic_ms()
        while True:
            show(await heard(look(client), clock, say))
            done += 1
            if done == count:
                return
            next_ms = max(next_ms + interval, clock.monotonic_ms())
            await clock.wait_until(next_ms)

    async def verb(client: Client) -> None:
        if sys.stdout.isatty() and output is not Output.JSON:
            console, screen = Console(file=sys.stdout), Screen()

            def draw() -> None:
                live.update(screen.text(console.width, console.height), refresh=True)

            def show(seen: Look) -> None:
                screen.see(seen)
                draw()

            def say(silent_ms: int) -> None:
                screen.silent_ms = silent_ms
                draw()

            with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
                await loop(client, show, say)
        else:
            write_look = _show_json if output is Output.JSON else Lines().show
            await loop(client, write_look, lambda _: None)

    call(server, output, verb)


async def heard(asked: Coroutine[Any, Any, Look], clock: Clock, say: Callable[[int], None]) -> Look:
    """Returns what was asked for; until then `say` hears for how long there is no answer."""
    began_ms = clock.monotonic_ms()
    failed: LogbrokerError | None = None

    async def tell() -> None:
        while True:
            await clock.wait_until(clock.monotonic_ms() + SILENCE_MS)
            say(clock.monotonic_ms() - began_ms)

    async with asyncio.TaskGroup() as tasks:
        telling = tasks.create_task(tell())
        try:
            return await asked
        except LogbrokerError as error:
            failed = error
        finally:
            telling.cancel()
    raise failed


class Lines:
    """Writes looks as lines, under one row of titles."""

    def __init__(self) -> None:
        self._looks = Looks()
        self._is_first = True

    def show(self, look: Look) -> None:
        """Writes the rows of a look, each with its time."""
        columns, rows = self._looks.rows(look)
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
