"""What every command that talks to a broker does around its verb.

It connects, calls, and turns errors into lines and exit codes:

    0     done
    1     refused by the broker, or failed
    2     the command was not understood
    130   interrupted (Ctrl-C)
    141   whoever read the output went away
"""

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar

import typer

from logbroker.cli.output import FAILED, Output, write_error
from logbroker.client.client import Client
from logbroker.errors import InvalidError, LogbrokerError, UnavailableError

T = TypeVar("T")

DEFAULT_SERVER = "127.0.0.1:9470"
CONNECT_S = 5
HINTS = {
    "UNREACHABLE": "start one with: logbroker serve   (or say where it is: --server HOST:PORT)",
    "GROUP_NOT_FOUND": "see what there is: logbroker group list",
    "DAMAGED_BATCH": "read on behind it with --from {next_offset}, or with --skip-damage",
    "REDRIVE_RUNNING": "end that one first with: logbroker dlq cancel {redrive_id}",
}
"""By reason: what to do about it."""
ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")


def _check_server(server: str) -> str:
    if not ADDRESS.fullmatch(server):
        raise typer.BadParameter(f"{server!r} must be HOST:PORT, such as {DEFAULT_SERVER}")
    return server


ServerOption = Annotated[
    str,
    typer.Option(
        "--server",
        envvar="LOGBROKER_SERVER",
        metavar="HOST:PORT",
        help="The broker to talk to.",
        callback=_check_server,
    ),
]
OutputOption = Annotated[
    Output,
    typer.Option("--output", "-o", help="A table for people, or JSON for programs."),
]
TopicArgument = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")]
GroupArgument = Annotated[str, typer.Argument(metavar="GROUP", help="The group's name.")]


@contextmanager
def reporting(output: Output, server: str = "", hints: Mapping[str, str] = HINTS) -> Iterator[None]:
    """Turns an error of logbroker, or of a file, into a line on stderr and exit code 1."""
    try:
        yield
    except LogbrokerError as error:
        hint = hints.get(error.reason, "") if server else ""
        write_error(error, output, _filled_in(hint, error))
        raise typer.Exit(FAILED) from error
    except OSError as error:
        message = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        write_error(InvalidError("INVALID_ARGUMENT", message), output)
        raise typer.Exit(FAILED) from error


def call(
    server: str,
    output: Output,
    verb: Callable[[Client], Coroutine[Any, Any, T]],
    **hints: str,
) -> T:
    """Returns what `verb` does with a client; reports its errors and ends the command.

    `hints` say, by reason, what to do about an error of this command.
    """
    with reporting(output, server, HINTS | hints):
        return asyncio.run(_call(server, verb))


def _filled_in(hint: str, error: LogbrokerError) -> str:
    """Returns the hint with the error's details; nothing where it needs one there is not."""
    try:
        return hint.format(**error.details)
    except KeyError:
        return ""


async def _call(server: str, verb: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
    await _check_reachable(server)
    async with Client(server) as client:
        return await verb(client)


async def _check_reachable(server: str) -> None:
    """Raises UNREACHABLE at once where nothing listens: people should not wait to hear that."""
    host, _, port = server.rpartition(":")
    try:
        async with asyncio.timeout(CONNECT_S):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except (OSError, OverflowError, UnicodeError) as error:
        message = f"no broker answers at {server}"
        raise UnavailableError("UNREACHABLE", message, address=server) from error
    writer.close()
