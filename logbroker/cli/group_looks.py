"""What `group watch` shows of looks at a group, or at all of them.

How many records a second were settled is what left the lag without coming to it: the high
watermark less the lag, so that records count that were settled out of their order. What
retention took away unsettled does not.
"""

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

from logbroker.cli.group_view import (
    PROGRESS_COLUMNS,
    SUMMARY_COLUMNS,
    progress_row,
    show_lag,
    summary_row,
)
from logbroker.cli.moment import show_time
from logbroker.cli.output import counted
from logbroker.cli.table import Table
from logbroker.cli.units import show_age
from logbroker.client.group_status import GroupDescription, GroupSummary

SHOWN = ("committed", "high watermark", "lag", "age", "leased", "waiting", "parked", "failed")
COLUMNS = ("topic", "partition", *SHOWN, "appended/s", "settled/s", "waits for")
OPTIONAL = (
    "failed", "parked", "waiting", "leased", "committed", "high watermark", "appended/s",
    "settled/s", "dead letters", "blocked", "order", "topics",
)  # fmt: skip
"""What a narrow terminal does without, first things first."""
Rows = Sequence[tuple[str, ...]]


class Look(NamedTuple):
    """What is seen at one time: of one group, or of all."""

    now_ms: int
    seen: GroupDescription | list[GroupSummary]


class Place(NamedTuple):
    """How far a group and a log were at the look before."""

    settled: int
    high_watermark: int


class Looks:
    """Turns looks into rows, and remembers the one before: what has changed since."""

    def __init__(self) -> None:
        self._before_ms = 0
        self._before: dict[tuple[str, int], Place] = {}

    def rows(self, look: Look) -> tuple[tuple[str, ...], Rows]:
        """Returns the columns and the rows of a look."""
        if isinstance(look.seen, list):
            return SUMMARY_COLUMNS, [summary_row(one) for one in look.seen]
        rows, places = [], dict[tuple[str, int], Place]()
        took_ms = max(look.now_ms - self._before_ms, 1)
        for one in look.seen.progress:
            place = one.topic, one.partition
            settled = one.high_watermark - one.lag - one.expired_unsettled_count
            now = places[place] = Place(settled, one.high_watermark)
            by_name = dict(zip(PROGRESS_COLUMNS, progress_row(one), strict=True))
            rates = _rates(self._before.get(place), now, took_ms)
            shown = [by_name[name] for name in SHOWN]
            rows.append((one.topic, str(one.partition), *shown, *rates, by_name["waits for"]))
        self._before_ms, self._before = look.now_ms, places
        return COLUMNS, rows


def _rates(before: Place | None, now: Place, took_ms: int) -> tuple[str, str]:
    """Returns records appended and settled a second; a reset backwards is no rate."""
    if before is None:
        return "-", "-"

    def rate(count: int) -> str:
        return f"{count * 1_000 / took_ms:.0f}" if count >= 0 else "-"

    return rate(now.high_watermark - before.high_watermark), rate(now.settled - before.settled)


class Screen:
    """What a terminal shows: as much of the last look as there is room for, the oldest first."""

    def __init__(self) -> None:
        self.silent_ms = 0
        """For how long the broker has not answered."""
        self._looks = Looks()
        self._title = ""
        self._columns: tuple[str, ...] = ()
        self._rows: Rows = ()
        self._oldest: list[int] = []

    def see(self, look: Look) -> None:
        """Takes a look."""
        self.silent_ms = 0
        self._columns, self._rows = self._looks.rows(look)
        seen = look.seen
        parts = seen if isinstance(seen, list) else seen.progress
        ages = [one.age_ms for one in parts]
        self._oldest = sorted(range(len(ages)), key=lambda at: -ages[at])
        time = show_time(look.now_ms)
        if isinstance(seen, list):
            self._title = f"{time}  {counted(len(seen), 'group')}"
        else:
            members = counted(len(seen.members), "member")
            self._title = f"{time}  {seen.group.group}: {show_lag(seen)}, {members}"

    def text(self, width: int, height: int) -> Text:
        """Returns what there is room for."""
        room = max(height - 4, 1)
        rows, more = self._rows, len(self._rows) - room
        if more > 0:
            rows = [rows[at] for at in self._oldest[:room]]
        titles, *lines = Table.of(self._columns, rows).narrowed(OPTIONAL, width).lines()
        if more > 0:
            lines.append(f"... and {more} more, none of them older")
        text = Text(self._title, no_wrap=True, overflow="ellipsis")
        if self.silent_ms:
            text.append(f"  NO ANSWER for {show_age(self.silent_ms)}", style="bold red")
        text.append("\n" + titles, style="bold")
        text.append("".join(f"\n{line}" for line in lines))
        return text
