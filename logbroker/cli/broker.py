"""`broker describe`: what a broker is, and how it is."""

from typing import Any

import typer

from logbroker.cli.command import DEFAULT_SERVER, OutputOption, ServerOption, call
from logbroker.cli.output import Output, write_fields, write_json
from logbroker.cli.units import show_duration, show_size
from logbroker.client.admin import BrokerInfo
from logbroker.client.client import Client

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look at a broker.")


@app.callback()
def begin() -> None:
    """Look at a broker."""


@app.command()
def describe(server: ServerOption = DEFAULT_SERVER, output: OutputOption = Output.TABLE) -> None:
    """Show version and limits, and what the broker has counted since it started."""

    async def verb(client: Client) -> tuple[BrokerInfo, dict[str, object]]:
        return await client.admin.get_broker(), await client.admin.get_stats()

    info, stats = call(server, output, verb)
    if output is Output.JSON:
        limits = {name: str(value) for name, value in info.limits._asdict().items()}
        counted = {name: _json_of(name, value) for name, value in stats.items()}
        write_json({"version": info.version, "limits": limits, "stats": counted})
        return
    about = {"server": server, "version": info.version}
    limits = {
        f"limit {name}": _text_of(name, value) for name, value in info.limits._asdict().items()
    }
    write_fields(about | limits | {name: _text_of(name, value) for name, value in stats.items()})


def _json_of(name: str, value: object) -> Any:
    """Returns the value with int64 as strings; counts of things that are open fit a number."""
    match value:
        case dict():
            return {reason: str(count) for reason, count in value.items()}
        case int() if name.endswith(("_ms", "_bytes")) or name.startswith(INT64_COUNTS):
            return str(value)
        case _:
            return value


INT64_COUNTS = ("appended_", "duplicate_")


def _text_of(name: str, value: object) -> str:
    match value:
        case dict():
            return ", ".join(f"{reason} {count}" for reason, count in value.items()) or "none"
        case list():
            return ", ".join(map(str, value)) or "none"
        case int() if name.endswith("_ms"):
            return show_duration(value)
        case int() if name.endswith("_bytes"):
            return show_size(value)
        case _:
            return str(value)
