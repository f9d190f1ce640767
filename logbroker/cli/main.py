"""The command tree.

serve                                                run a broker
topic create|list|describe|update|grow|delete|trim   topics
produce, fetch                                       records in, records out
group create|list|describe|update|reset|delete|watch groups
consume                                              records as a member of a group
explain                                              why a record is not delivered
dlq list|show|redrive|redrives|cancel|resolve|copy   what groups failed at
broker describe                                      version, limits, counts
log dump|verify|repair                               any file in a data directory
"""

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer

from logbroker.cli.broker_log import LogLevel, configure_log
from logbroker.cli.output import INTERRUPTED, USAGE, flush, note, use_utf8, write
from logbroker.cli.serve import serve

EXIT_CODES = (
    "Exit codes: 0 done, 1 refused or failed, 2 not understood, 130 interrupted, "
    "141 the reader of the output went away."
)
UsageError: type[Exception] = typer.BadParameter.__bases__[0]
"""What typer raises for every mistake in a command line; it exports this class of it alone."""


def command_tree(arguments: Sequence[str]) -> typer.Typer:
    """Returns all commands; but `serve` alone where it is asked for.

    The others need the client, rich tables and much else, which takes as long to import as a
    broker takes to start.
    """
    app = typer.Typer(
        name="logbroker",
        help="A log broker that is also a work queue: commands for people and scripts.",
        epilog=EXIT_CODES,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(begin)
    app.command()(serve)
    if arguments[:1] != ["serve"]:
        from logbroker.cli.client_commands import add_to

        add_to(app)
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        write(f"logbroker {version('logbroker')}\n")
        raise typer.Exit


def begin(
    _version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version."),
    ] = False,
) -> None:
    """Prepares what all commands need: what libraries log goes to stderr."""
    configure_log(LogLevel.WARNING, as_json=False)


def run(arguments: Sequence[str]) -> int:
    """Runs one command and returns its exit code."""
    try:
        app = command_tree(arguments)
        code = app(list(arguments), prog_name="logbroker", standalone_mode=False)
        flush()
    except typer.Exit as ended:
        return ended.exit_code
    except typer.Abort:
        return INTERRUPTED
    except UsageError as error:
        _show_usage(error)
        return USAGE
    return code if isinstance(code, int) else 0


def main() -> None:
    """The command `logbroker`."""
    use_utf8()
    sys.exit(run(list(map(_as_utf8, sys.argv[1:]))))


def _as_utf8(argument: str) -> str:
    """Returns an argument as the bytes that were typed, read as UTF-8 in every locale."""
    return os.fsencode(argument).decode("utf-8", "surrogateescape")


def _show_usage(error: Exception) -> None:
    context = getattr(error, "ctx", None)
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    message = message.removeprefix("Invalid value: ")  # of no option in particular
    if message.startswith("Usage:"):  # no command at all: the message is the help
        sys.stderr.write(message + "\n")
        return
    note(f"error: {message}")
    if context is not None:
        note(f"help:  {context.command_path} --help")
