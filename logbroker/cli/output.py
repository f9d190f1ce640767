"""What commands write: tables for people, JSON for programs, errors for both.

    stdout    the answer: a table or lines, or with `-o json` one JSON object a line
    stderr    everything else: notes, progress, errors

Bytes are the same in every locale: UTF-8, and JSON in ASCII. Bold titles are for
terminals alone. What others have named or written passes through `safe` before a terminal
sees it. A reader that goes away (`| head -1`) ends the command quietly, with code 141.
"""

import io
import json
import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from logbroker.cli.table import Table
from logbroker.cli.text import safe
from logbroker.errors import LogbrokerError

FAILED = 1
USAGE = 2
INTERRUPTED = 130
PIPE_CLOSED = 141


class Output(StrEnum):
    """How the answer is written."""

    TABLE = "table"
    JSON = "json"


def use_utf8() -> None:
    """Makes this process write UTF-8 with plain line ends, whatever its locale says.

    And all of it: under PYTHONUNBUFFERED Python drops the rest of a write that was cut short.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")
    if isinstance(sys.stdout, io.TextIOWrapper) and isinstance(sys.stdout.buffer, io.RawIOBase):
        sys.stdout = open(  # noqa: SIM115  # it stays open
            sys.stdout.fileno(), "w", encoding="utf-8", errors="backslashreplace", newline="\n",
            closefd=False,
        )  # fmt: skip


def write(text: str) -> None:
    """Writes to stdout. Ends the command if nobody reads it any more."""
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        _end_quietly()


def write_bytes(data: bytes) -> None:
    """Writes bytes to stdout, as they are."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
    except BrokenPipeError:
        _end_quietly()


def flush() -> None:
    """Lets the reader have what was written."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _end_quietly()


def write_json(value: Any) -> None:
    """Writes one line of JSON, in ASCII."""
    write(json.dumps(value) + "\n")


def write_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    has_titles: bool = True,
    optional: Sequence[str] = (),
) -> None:
    """Writes rows under the names of their columns.

    On a terminal that is too narrow, without those of the `optional` columns that say nothing.
    """
    table = Table.of(columns, rows)
    if not sys.stdout.isatty():
        write("".join(f"{line}\n" for line in table.lines()[0 if has_titles else 1 :]))
        return
    console = Console(file=sys.stdout)
    titles, *others = table.without_empty(optional, console.width).lines()
    if has_titles:
        console.print(Text(titles, style="bold"), soft_wrap=True)
    write("".join(f"{line}\n" for line in others))


def write_fields(fields: dict[str, str]) -> None:
    """Writes one thing: each field on a line, its name before it."""
    width = max(map(len, fields), default=0)
    for name, value in fields.items():
        write(f"{name.ljust(width)}  {safe(value)}".rstrip() + "\n")


def note(text: str) -> None:
    """Writes a line to stderr."""
    sys.stderr.write(safe(text) + "\n")
    sys.stderr.flush()


def counted(count: int, noun: str) -> str:
    """Returns `1 record`, `2 records`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def write_error(error: LogbrokerError, output: Output, hint: str = "") -> None:
    """Writes the error to stderr: `error: MESSAGE (REASON)`, or an object with its reason."""
    if output is Output.JSON:
        fields = {
            "reason": error.reason,
            "message": str(error),
            "details": error.details,
            "may_retry": error.may_retry,
            "no_effect": error.no_effect,
        }
        note(json.dumps({"error": fields}))
        return
    note(f"error: {error} ({error.reason})")
    if hint:
        note(hint)


def _end_quietly() -> NoReturn:
    """Ends the command without a word; what is still buffered goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    raise typer.Exit(PIPE_CLOSED)
