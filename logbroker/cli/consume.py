"""`consume`: records of topics as a member of a group, settled once they are printed."""

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Annotated

import typer

from logbroker.cli.command import DEFAULT_SERVER, OutputOption, ServerOption, call
from logbroker.cli.fetch import say_zone
from logbroker.cli.group_options import OrderOption, given, place_now, settings_of
from logbroker.cli.output import Output, counted, flush, note, write, write_bytes
from logbroker.cli.record_json import delivered_to_json
from logbroker.cli.record_line import (
    DELIVERED_FIELDS,
    DELIVERED_TITLES,
    delivered_line,
    line_template,
)
from logbroker.client.client import Client
from logbroker.client.consumer import Consumer
from logbroker.client.delivered import Delivered
from logbroker.client.settlements import PendingSettlement
from logbroker.errors import ConflictError, NotFoundError
from logbroker.topic.names import check_name

Show = Callable[[Sequence[Delivered]], None]

INTERRUPTED_MS = 1_000
"""How long the broker has to answer after Ctrl-C; a second one ends at once."""
OUTSTANDING_RECORDS = 20_000
"""How many records may be delivered and not settled yet."""
HELD_RECORDS = 1_000_000
"""How many records may be delivered while none is settled: more than any group opens at once."""


def consume(
    topics: Annotated[
        list[str], typer.Argument(metavar="TOPIC", help="The topics to read, one or more.")
    ],
    group: Annotated[
        str,
        typer.Option(
            "--group", "-g", metavar="GROUP", help="The group; made if there is none yet."
        ),
    ],
    order: OrderOption = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="PLACE",
            help="Where a new group begins: earliest, latest, an offset, or a time as of fetch.",
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-F", help="Wait for more at the end.")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, metavar="N", help="Stop after this many records."),
    ] = None,
    no_settle: Annotated[
        bool,
        typer.Option("--no-settle", help="Give all back at the end: it is delivered again."),
    ] = False,
    client_id: Annotated[
        str,
        typer.Option("--client-id", metavar="NAME", help="By which people tell members apart."),
    ] = "logbroker consume",
    template: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="TEMPLATE",
            help=r"As of fetch; also {topic} {delivery_number} {failures} {redrives}.",
        ),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Do not cut long values.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="Values alone, byte for byte, each with a newline.")
    ] = False,
    server: ServerOption = DEFAULT_SERVER,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print records as a member of a group, and settle each once it is printed.

    Without --follow it ends when everything there was has been delivered to the group. In
    the orders `partition` and `key` that includes what waits to be tried again. Ctrl-C gives back
    what is not settled; a second one does not wait for that.
    """
    place = None if start is None else place_now(start)
    say_zone("--from", start, place)
    show = _show(template, full=full, raw=raw, output=output)
    settings = given(order=order, start=place)

    async def verb(client: Client) -> None:
        names = list(map(check_name, topics))
        is_new = place is not None and await _is_new(client, check_name(group))
        most = HELD_RECORDS if no_settle else OUTSTANDING_RECORDS
        consumer = client.consumer(
            check_name(group),
            names,
            order=order,
            settings=settings_of(settings) if is_new else None,
            auto_settle=False,
            follow=follow,
            client_id=client_id,
            max_outstanding_records=min(limit or most, most),
        )
        async with _joined(consumer):
            if output is Output.TABLE and sys.stdout.isatty() and not raw and not template:
                write(DELIVERED_TITLES + "\n")
            if no_settle:
                window = (await client.admin.get_group(group)).group.settings.max_unsettled
                await _print_held(consumer, show, limit, window)
            else:
                await _print_settled(consumer, show, limit)

    call(server, output, verb)


@asynccontextmanager
async def _joined(consumer: Consumer) -> AsyncIterator[None]:
    """Joins its group, and leaves it; after Ctrl-C it waits less long for a silent broker."""
    try:
        await consumer.open()
        yield
    except asyncio.CancelledError:
        await consumer.close(timeout_ms=INTERRUPTED_MS)
        raise
    finally:
        await consumer.close()


async def _print_settled(consumer: Consumer, show: Show, limit: int | None) -> None:
    """Shows `limit` records, or all, and settles what is shown."""
    pending: list[PendingSettlement] = []
    lost = 0
    async for batch in consumer.batches():
        records = batch.records()
        if limit is not None and len(records) >= limit:
            show(records[:limit])
            flush()
            pending += map(consumer.acknowledge, records[:limit])
            break
        show(records)
        flush()
        pending.append(consumer.acknowledge(batch))
        limit = None if limit is None else limit - len(records)
        open_ones = [one for one in pending if not one.done()]
        lost += await _lost([one for one in pending if one.done()])
        pending = open_ones
    await consumer.flush()
    lost += await _lost(pending)
    if lost:
        times = "time" if lost == 1 else "times"
        note(
            f"warning: the lease was over before what was printed was settled, {lost} {times}: "
            "it is delivered again"
        )


async def _print_held(consumer: Consumer, show: Show, limit: int | None, window: int) -> None:
    """Shows `limit` records, or all, and settles none: what is held goes back at the end."""
    held: Counter[tuple[str, int]] = Counter()
    async for batch in consumer.batches():
        records = batch.records()[:limit]
        show(records)
        flush()
        place = batch.topic, batch.partition
        held[place] += len(records)
        if limit is not None and (limit := limit - len(records)) <= 0:
            return
        if held[place] >= window:
            count = counted(window, "record")
            note(f"stopped: no more than {count} of a partition may be open (max_unsettled)")
            return


async def _lost(pending: Sequence[PendingSettlement]) -> int:
    """Returns how many of the answers came too late."""
    lost = 0
    for one in pending:
        try:
            await one
        except ConflictError:
            lost += 1
    return lost


async def _is_new(client: Client, group: str) -> bool:
    """Returns whether there is no such group; says of one there is that it goes on where it is."""
    try:
        await client.admin.get_group(group)
    except NotFoundError:
        return True
    note(
        f"--from has no effect: {group} exists and goes on from where it is; "
        "move it with: logbroker group reset"
    )
    return False


def _show(template: str | None, *, full: bool, raw: bool, output: Output) -> Show:
    """Returns what writes records; typer.BadParameter for options that contradict."""
    if raw + (template is not None) + (output is Output.JSON) > 1:
        raise typer.BadParameter("of --raw, --format and -o json, only one")
    if raw:
        return lambda records: write_bytes(
            b"".join((record.value or b"") + b"\n" for record in records)
        )
    if template is not None:
        with_fields = line_template(template, full=full, fields=DELIVERED_FIELDS)
        return lambda records: write("".join(map(with_fields, records)))
    if output is Output.JSON:
        return lambda records: write("".join(f"{delivered_to_json(one)}\n" for one in records))
    return lambda records: write("".join(f"{delivered_line(one, full=full)}\n" for one in records))
