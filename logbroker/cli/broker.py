"""`broker describe`: what a broker is, and how it is."""

from typing import Any

import typer

from logbroker.cli.command import DEFAULT_SERVER, OutputOption, ServerOption, call
from logbroker.cli.moment import show_time
from logbroker.cli.output import Output, write, write_fields, write_json, write_table
from logbroker.cli.units import show_age, show_duration, show_size
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
    groups: Any = stats.pop("groups")
    write_fields(about | limits | {name: _text_of(name, value) for name, value in stats.items()})
    if groups:
        write("\n")
        rows = [tuple(_text_of(name, group[name]) for name in GROUP_FIELDS) for group in groups]
        write_table(tuple(GROUP_FIELDS.values()), rows)


GROUP_FIELDS = {
    "group": "group",
    "member_count": "members",
    "lag": "lag",
    "age_ms": "age",
    "leased_count": "leased",
    "waiting_count": "waiting",
    "blocked_count": "blocked",
    "parked_count": "parked",
    "failure_count": "failures",
    "dead_letter_count": "dead letters",
    "discarded_count": "discarded",
    "expired_unsettled_count": "expired",
    "skipped_count": "skipped",
    "reset_count": "resets",
}
"""Of a group, and how they are called for people."""


def _json_of(name: str, value: object) -> Any:
    """Returns the value with int64 as strings; counts of things that are open fit a number."""
    match value:
        case dict():
            return {reason: str(count) for reason, count in value.items()}
        case list() if name == "groups":
            return [{field: _group_json_of(field, one[field]) for field in one} for one in value]
        case int() if name.endswith(("_ms", "_bytes")) or name.startswith(INT64_COUNTS):
            return str(value)
        case _:
            return value


def _group_json_of(name: str, value: object) -> object:
    is_int64 = isinstance(value, int) and name not in ("member_count", "partition_count")
    return str(value) if is_int64 else value


INT64_COUNTS = ("appended_", "duplicate_", "scrub")


def _text_of(name: str, value: object) -> str:
    match value:
        case dict():
            return ", ".join(f"{reason} {count}" for reason, count in value.items()) or "none"
        case list():
            return ", ".join(map(str, value)) or "none"
        case int() if name == "age_ms":
            return show_age(value)
        case int() if name.endswith("_time_ms"):
            return show_time(value) if value else "never"
        case int() if name.endswith("_ms"):
            return show_duration(value)
        case int() if name.endswith("_bytes"):
            return show_size(value)
        case _:
            return str(value)
