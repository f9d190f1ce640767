"""`dlq redrive|redrives|cancel`: dead letters are given back to the group that failed at them.

A redrive is a job of the broker: it goes on whether or not anybody watches. `redrive` watches
it, with a bar on a terminal, until all are available to the group again; `--detach` does not.
"""

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from logbroker.cli.command import (
    DEFAULT_SERVER,
    GroupArgument,
    OutputOption,
    ServerOption,
    call,
)
from logbroker.cli.dead_letter_options import (
    BlockedOption,
    KeyOption,
    LimitOption,
    OffsetsOption,
    PartitionOption,
    ReasonOption,
    SinceOption,
    SourceTopicArgument,
    UntilOption,
    Wanted,
)
from logbroker.cli.dead_letter_view import (
    REDRIVE_COLUMNS,
    found_fields,
    redrive_fields,
    redrive_row,
)
from logbroker.cli.output import Output, counted, note, write, write_json, write_table
from logbroker.client.client import Client
from logbroker.client.dead_letter_admin import RedriveInfo
from logbroker.clock import SystemClock
from logbroker.errors import UnavailableError
from logbroker.topic.names import check_name

LOOK_MS = 200
"""How often a running redrive is looked at."""


def start(
    group: GroupArgument,
    topic: SourceTopicArgument,
    partition: PartitionOption = None,
    offsets: OffsetsOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    reason: ReasonOption = "",
    key: KeyOption = None,
    limit: LimitOption = 0,
    blocked: BlockedOption = False,
    rate: Annotated[
        float,
        typer.Option(
            "--rate", min=0, metavar="N", help="So many a second; 0: as the group takes them."
        ),
    ] = 0,
    detach: Annotated[
        bool, typer.Option("--detach", help="Do not wait: print the redrive's id and end.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say how many that would be.")
    ] = False,
    server: ServerOption = DEFAULT_SERVER,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make dead letters available to their group again. No other group sees them."""
    if dry_run and detach:
        raise typer.BadParameter("of --dry-run and --detach, only one")
    wanted = Wanted(group, topic, partition, offsets, since, until, reason, key, limit, blocked)
    wanted.say_zones()

    async def verb(client: Client) -> RedriveInfo:
        which = await wanted.filter(client)
        redrive = await client.admin.start_redrive(which, records_per_second=rate, dry_run=dry_run)
        return redrive if dry_run or detach else await until_ended(client, redrive)

    redrive = call(server, output, verb)
    if output is Output.JSON:
        write_json((found_fields if dry_run else redrive_fields)(redrive) | {"dry_run": dry_run})
        return
    letters = counted(redrive.selected_count, wanted.noun)
    if not redrive.selected_count:
        wanted.say_none("is parked")
    if dry_run:
        write(f"would redrive {letters}\n")
    elif detach:
        write(f"started {redrive.redrive_id}: {letters}\n")
    else:
        _write_end(redrive)


def list_redrives(
    group: GroupArgument,
    server: ServerOption = DEFAULT_SERVER,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the redrives of a group, newest first, with what became of their records."""

    async def verb(client: Client) -> list[RedriveInfo]:
        return await client.admin.list_redrives(check_name(group))

    redrives = call(server, output, verb)
    if output is Output.JSON:
        for redrive in redrives:
            write_json(redrive_fields(redrive))
        return
    rows = list(map(redrive_row, redrives))
    write_table(REDRIVE_COLUMNS, rows, optional=("parked again", "resolved"))


def cancel(
    redrive_id: Annotated[str, typer.Argument(metavar="ID", help="Of the redrive.")],
    server: ServerOption = DEFAULT_SERVER,
    output: OutputOption = Output.TABLE,
) -> None:
    """End a redrive. What it has made available stays so."""

    async def verb(client: Client) -> RedriveInfo:
        return await client.admin.cancel_redrive(redrive_id)

    redrive = call(server, output, verb)
    if output is Output.JSON:
        write_json(redrive_fields(redrive))
    else:
        _write_end(redrive)


async def until_ended(client: Client, redrive: RedriveInfo) -> RedriveInfo:
    """Returns the redrive once it has ended."""
    clock = SystemClock()
    try:
        with _progress(redrive.selected_count) as show:
            while redrive.state == "running":
                show(redrive.redriven_count)
                await clock.wait_until(clock.monotonic_ms() + LOOK_MS)
                redrive = await client.admin.get_redrive(redrive.redrive_id)
    except asyncio.CancelledError:
        note(f"the redrive goes on; end it with: logbroker dlq cancel {redrive.redrive_id}")
        raise
    except UnavailableError:
        see = f"logbroker dlq redrives {redrive.filter.group}"
        note(f"redrive {redrive.redrive_id} goes on when the broker is back; see: {see}")
        raise
    return redrive


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """Yields what to call with the count so far; shown on a terminal."""
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    columns = (TextColumn("redriving"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("redriving", total=total)
        yield lambda count: progress.update(task, completed=count)


def _write_end(redrive: RedriveInfo) -> None:
    noun = "blocked record" if redrive.filter.blocked else "dead letter"
    letters = counted(redrive.selected_count, noun)
    since = f"{redrive.resolved_count} settled since, {redrive.parked_again_count} failed again"
    done = f"{redrive.redriven_count} of {letters} given back to {redrive.filter.group}: {since}"
    write(f"{redrive.redrive_id} {redrive.state}: {done}\n")
