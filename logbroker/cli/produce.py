"""`produce`: lines, JSON or a whole file into a topic."""

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TransferSpeedColumn,
)

from logbroker.cli.command import (
    DEFAULT_SERVER,
    OutputOption,
    ServerOption,
    TopicArgument,
    call,
    reporting,
)
from logbroker.cli.drafts import Drafts, ParseBlock, json_of, keys_and_values_of, values_of
from logbroker.cli.lines import Block, Source, read_blocks
from logbroker.cli.output import Output, counted, note, write_json
from logbroker.cli.sending import Sending
from logbroker.client.client import Client
from logbroker.clock import SystemClock
from logbroker.record.record import Header
from logbroker.topic.names import check_name


class Format(StrEnum):
    """What the input is."""

    LINES = "lines"
    JSON = "json"
    FILE = "file"


class Input(NamedTuple):
    """Where records come from and how they are read."""

    source: Source
    total_bytes: int | None
    """None: not known."""
    parse: ParseBlock
    is_one_record: bool


def produce(
    topic: TopicArgument,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            help="Read this instead of stdin.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    format_: Annotated[
        Format,
        typer.Option(
            "--format",
            help="Each line a value; each line a record as JSON (as `fetch -o json` prints them); "
            "or the whole input as one value.",
        ),
    ] = Format.LINES,
    key: Annotated[
        str | None,
        typer.Option("--key", "-k", metavar="TEXT", help="The key of every record (lines, file)."),
    ] = None,
    key_separator: Annotated[
        str | None,
        typer.Option(
            "--key-separator", metavar="TEXT", help=r"Lines are key, this, value. \t is a tab."
        ),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header", "-H", metavar="NAME=VALUE", help="On every record. May be repeated."
        ),
    ] = None,
    partition: Annotated[
        int | None,
        typer.Option(
            "--partition", "-p", min=0, metavar="N", help="Instead of the one the key leads to."
        ),
    ] = None,
    ignore_partition: Annotated[
        bool,
        typer.Option("--ignore-partition", help="Let keys decide, whatever JSON lines say."),
    ] = False,
    codec: Annotated[
        str, typer.Option("--codec", metavar="NAME", help="Compress batches: none, gzip or zstd.")
    ] = "none",
    server: ServerOption = DEFAULT_SERVER,
    output: OutputOption = Output.TABLE,
) -> None:
    """Send records from stdin or a file, and wait until they are stored.

    Records go in the order of the lines. A malformed line, or one over a limit, ends the
    command with its number: the lines before it are stored, it and those behind it are not.
    """
    parse = _parser(format_, key, key_separator, _headers(header or []), ignore_partition)
    with reporting(output), _opened(file) as (source, total_bytes):
        given = Input(source, total_bytes, parse, format_ is Format.FILE)

        async def verb(client: Client) -> tuple[Sending, int]:
            clock = SystemClock()
            started_ms = clock.monotonic_ms()
            async with client.producer(check_name(topic), codec=codec) as producer:
                sending = Sending(producer)
                await _send(sending, given, partition, clock)
            return sending, clock.monotonic_ms() - started_ms

        sending, took_ms = call(server, output, verb)
    _show_summary(topic, sending, took_ms, output)


async def _send(sending: Sending, given: Input, partition: int | None, clock: SystemClock) -> None:
    with _progress(given.total_bytes) as progress:
        async for block in _blocks(given):
            drafts, bad = given.parse(block, clock.now_ms())
            for each in drafts:
                await sending.send(_at(each, partition))
            progress(block.size)
            if bad:
                await sending.refuse(bad)
        await sending.finish()


def _at(drafts: Drafts, partition: int | None) -> Drafts:
    return drafts if partition is None else drafts._replace(partition=partition)


async def _blocks(given: Input) -> AsyncIterator[Block]:
    if not given.is_one_record:
        async for block in read_blocks(given.source):
            yield block
        return
    parts = []
    while part := given.source.read(1 << 20):
        parts.append(part)
    data = b"".join(parts)
    yield Block(1, [data], len(data))


def _parser(
    format_: Format,
    key: str | None,
    separator: str | None,
    headers: tuple[Header, ...],
    ignore_partition: bool,
) -> ParseBlock:
    """Returns how the input becomes records; typer.BadParameter for options that contradict."""
    key_bytes = None if key is None else key.encode("utf-8", "surrogateescape")
    if format_ is Format.JSON:
        if key is not None or separator is not None or headers:
            raise typer.BadParameter("JSON lines bring their own keys and headers")
        return json_of(ignore_partition=ignore_partition)
    if separator is None:
        return values_of(key_bytes, headers)
    if format_ is Format.FILE or key is not None or not separator:
        raise typer.BadParameter("--key-separator is some text, for lines, and without --key")
    text = separator.replace("\\t", "\t")
    return keys_and_values_of(text.encode("utf-8", "surrogateescape"), headers)


def _headers(given: list[str]) -> tuple[Header, ...]:
    headers = []
    for each in given:
        name, separator, value = each.partition("=")
        if not separator or not name.isprintable():
            raise typer.BadParameter(f"--header {each!r} must be NAME=VALUE")
        headers.append(Header(name, value.encode("utf-8", "surrogateescape")))
    return tuple(headers)


@contextmanager
def _opened(file: Path | None) -> Iterator[tuple[Source, int | None]]:
    """Yields the input, unbuffered, and its size if that is known."""
    if file is None:
        stdin = sys.stdin.buffer
        yield getattr(stdin, "raw", stdin), None
        return
    with file.open("rb", buffering=0) as source:
        yield source, file.stat().st_size or None


@contextmanager
def _progress(total_bytes: int | None) -> Iterator[Callable[[int], None]]:
    """Yields what to call with the bytes done; shown on a terminal, unless one types there."""
    is_typed = total_bytes is None and sys.stdin.isatty()
    if is_typed or not sys.stderr.isatty():
        yield lambda size: None
        return
    columns = (
        TextColumn("sending"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("sending", total=total_bytes)
        yield lambda size: progress.advance(task, size)


def _show_summary(topic: str, sending: Sending, took_ms: int, output: Output) -> None:
    rate = sending.record_count * 1_000 / max(took_ms, 1)
    partitions = sorted(sending.partitions.items())
    if output is Output.JSON:
        write_json(
            {
                "topic": topic,
                "record_count": sending.record_count,
                "durability": sorted(sending.durabilities),
                "seconds": took_ms / 1_000,
                "records_per_second": round(rate, 1),
                "partitions": [
                    {
                        "partition": number,
                        "record_count": stored.record_count,
                        "first_offset": str(stored.first_offset),
                        "last_offset": str(stored.last_offset),
                    }
                    for number, stored in partitions
                ],
            }
        )
        return
    kept = f" ({', '.join(sorted(sending.durabilities))})" if sending.durabilities else ""
    note(
        f"{counted(sending.record_count, 'record')} stored{kept} in "
        f"{counted(len(partitions), 'partition')} of {topic}: "
        f"{took_ms / 1_000:.2f} s, {rate:.0f} records/s"
    )
