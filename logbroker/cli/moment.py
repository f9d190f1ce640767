"""Where to start and stop reading, and times as people write them. Pure.

    earliest, latest             the bounds
    12345                        an offset
    2026-07-01T12:00:00+02:00    a time, ISO 8601; `Z` or an offset names its zone
    2026-07-01T12:00, 2026-07-01 the same without a zone: UTC, whatever zone the machine is in
    @1782900000000               a time, in ms since 1970
    -10m                         a time, so long before now

Times are printed in UTC with a `Z`; what is printed can be given back.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

import typer

from logbroker.cli.units import duration_ms

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
RULE = (
    "must be an offset such as 42, a time such as 2026-07-01T12:00:00Z (no zone: UTC), "
    "@1782900000000 (ms since 1970) or -10m (before now)"
)


class Moment(NamedTuple):
    """A time. `assumed_utc`: it was given without a zone."""

    ms: int
    assumed_utc: bool = False


Place = Literal["earliest", "latest"] | int | Moment


def parse_place(text: str, *, now_ms: int) -> Place:
    """Returns where reading starts; typer.BadParameter says what can be written."""
    match text.strip().lower():
        case "earliest":
            return "earliest"
        case "latest":
            return "latest"
    return parse_stop(text, now_ms=now_ms, rule=f"must be earliest, latest or {RULE[8:]}")


def parse_stop(text: str, *, now_ms: int, rule: str = RULE) -> int | Moment:
    """Returns the offset or time that reading stops before; typer.BadParameter otherwise."""
    given = text.strip()
    if re.fullmatch(r"[0-9]{1,19}", given):
        return int(given)
    if re.fullmatch(r"@-?[0-9]{1,19}", given):
        return Moment(int(given[1:]))
    if re.fullmatch(r"-[0-9].*[a-z]", given):
        return Moment(now_ms - duration_ms(given[1:]))
    try:
        time = datetime.fromisoformat(given)
    except ValueError:
        raise typer.BadParameter(f"{text!r} {rule}") from None
    if time.tzinfo is None:
        return Moment((time.replace(tzinfo=UTC) - EPOCH) // MILLISECOND, assumed_utc=True)
    return Moment((time - EPOCH) // MILLISECOND)


def show_time(ms: int) -> str:
    """Returns the time in UTC, `2026-07-01T12:00:00.000Z`; `@ms` outside the years 1 to 9999."""
    try:
        time = EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return f"@{ms}"
    return time.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
