"""What the benches write down, as values: a run side by side, and one of our own.

A row of a run side by side is named `<what>, <who>`, and one that compares two of them
`<what>, <our> / <their>`; its limit is then the row `<what>, <their>`. Both forms come from
`bench/peers/rows.py`. Rows of our own bench have names of any form.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from bench.report.fields import Fields, UnreadableError, items, load, named, number, text, truth

BESIDE = " / "


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measured value. The goal is of the ratio, and of the value where there is no limit."""

    name: str
    value: float
    unit: str
    limit: str | None = None
    ratio: float | None = None
    goal: str | None = None
    met: bool | None = None
    samples: tuple[float, ...] = ()

    @property
    def what(self) -> str:
        """Returns the workload, in a run side by side."""
        return self.name.rpartition(", ")[0]

    @property
    def who(self) -> str:
        """Returns who did it, or both who are compared, in a run side by side."""
        return self.name.rpartition(", ")[2]

    @property
    def is_pair(self) -> bool:
        """Tells whether it compares two."""
        return BESIDE in self.who


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The rows of one kind of workload."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What logbroker wants to reach at a workload, and whether it did."""

    text: str
    what: str
    our: str
    their: str | None
    """None where the goal is of our value alone; of the best of all it names that one."""
    limit: str
    value: float | None
    """The ratio, or our value; None where one was not measured."""
    unit: str
    met: bool | None


Quantiles = tuple[tuple[float, float], ...]
"""Pairs of a part, 0 to 1, and the seconds that this part of all times does not exceed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run side by side."""

    machine: str
    date: str
    rounds: int
    scale: str | None = None
    """How much was measured; None where the run does not say it."""
    levels: dict[str, dict[str, str]]
    """What makes an answer durable, by system and level."""
    goals: tuple[Goal, ...] = ()
    versions: dict[str, str]
    sections: tuple[Section, ...]
    skipped: tuple[str, ...] = ()
    """What is not installed: `<title>: <why>`."""
    failed: dict[str, tuple[str, ...]]
    """Messages by `<what>, <who>`, one for each time it failed."""
    distributions: dict[str, Quantiles]
    """By `<what>, <who>`."""
    again: tuple[str, ...] = ()
    """What was measured again later, with its date: `<title> (<date>)`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRun:
    """A run of our own bench."""

    rows: tuple[Row, ...]
    written: datetime
    """When the file was: it says no other time."""


def read_run(path: Path) -> Run:
    """Returns a run side by side; raises UnreadableError that names what is missing."""
    fields = Fields(load(path), "")
    return Run(
        machine=fields.text("machine"),
        date=fields.text("date"),
        rounds=round(fields.number("rounds")),
        scale=fields.maybe("scale", text),
        levels=fields.maybe("levels", _levels) or {},
        goals=fields.maybe("goals", _goals) or (),
        versions=fields.named("versions", text),
        sections=fields.items("sections", _section),
        skipped=fields.maybe("skipped", _texts) or (),
        failed=fields.maybe("failed", _failures) or {},
        distributions=fields.maybe("distributions", _distributions) or {},
    )


def measured_again(run: Run, later: Run) -> Run:
    """Returns the run with all that a later one has of the same workloads in place of its own.

    UnreadableError where they are not of the same machine, scale and versions.
    """
    same = (run.machine, run.scale, run.versions) == (later.machine, later.scale, later.versions)
    if not same:
        raise UnreadableError("what was measured again is of another machine, scale or version")
    anew = {section.title: section for section in later.sections}
    goals = {goal.text: goal for goal in later.goals}
    gone = {row.name for section in run.sections if section.title in anew for row in section.rows}
    failed = {name: messages for name, messages in run.failed.items() if name not in gone}
    known = {section.title for section in run.sections}
    return replace(
        run,
        sections=tuple(anew.get(section.title, section) for section in run.sections),
        goals=tuple(goals.get(goal.text, goal) for goal in run.goals),
        failed=failed | later.failed,
        distributions=run.distributions | later.distributions,
        again=(*run.again, *(f"{title} ({later.date})" for title in anew if title in known)),
    )


def read_own_run(path: Path) -> OwnRun:
    """Returns a run of our own bench; raises UnreadableError that names what is missing."""
    rows = items(load(path), "rows", _row)
    return OwnRun(rows=rows, written=datetime.fromtimestamp(path.stat().st_mtime, UTC))


def _section(value: object, place: str) -> Section:
    fields = Fields(value, place)
    return Section(title=fields.text("title"), rows=fields.items("rows", _row))


def _goals(value: object, place: str) -> tuple[Goal, ...]:
    return items(value, place, _goal)


def _goal(value: object, place: str) -> Goal:
    fields = Fields(value, place)
    return Goal(
        text=fields.text("goal"),
        what=fields.text("what"),
        our=fields.text("who"),
        their=fields.maybe("their", text),
        limit=fields.text("limit"),
        value=fields.maybe("value", number),
        unit=fields.text("unit"),
        met=fields.maybe("met", truth),
    )


def _levels(value: object, place: str) -> dict[str, dict[str, str]]:
    return named(value, place, _level_texts)


def _level_texts(value: object, place: str) -> dict[str, str]:
    return named(value, place, text)


def _row(value: object, place: str) -> Row:
    fields = Fields(value, place)
    return Row(
        name=fields.text("name"),
        value=fields.number("value"),
        unit=fields.text("unit"),
        limit=fields.maybe("limit", text),
        ratio=fields.maybe("ratio", number),
        goal=fields.maybe("goal", text),
        met=fields.maybe("met", truth),
        samples=fields.maybe("samples", _numbers) or (),
    )


def _numbers(value: object, place: str) -> tuple[float, ...]:
    return items(value, place, number)


def _texts(value: object, place: str) -> tuple[str, ...]:
    return items(value, place, text)


def _failures(value: object, place: str) -> dict[str, tuple[str, ...]]:
    return named(value, place, _texts)


def _distributions(value: object, place: str) -> dict[str, Quantiles]:
    return named(value, place, _quantiles)


def _quantiles(value: object, place: str) -> Quantiles:
    return items(value, place, _quantile)


def _quantile(value: object, place: str) -> tuple[float, float]:
    found = _numbers(value, place)
    if len(found) != 2:
        raise UnreadableError(f"{place} must be a part and a time")
    return found[0], found[1]
