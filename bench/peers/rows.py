"""Rows that put logbroker beside others: what each of them reached, and the ratios.

`publish 100 B, synced, kafka` is what Kafka reached; `publish 100 B, synced, logbroker /
kafka` has logbroker's value again, with that one as its limit.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.peers.system import Level
from bench.rows import AtLeast, AtMost, Samples, results
from bench.rows import Row as PlainRow

Goal = AtLeast | AtMost | None
GoalOf = Callable[[str, str], Goal]
"""Of one of ours and one of theirs."""
BESIDE = " / "


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What somebody reached at some work, or what one of ours did beside one of theirs."""

    what: str
    who: str
    unit: str
    their: str = ""
    """Whom it is compared with."""
    goal: Goal = None
    """Of the ratio; of the value where it is compared with nobody."""

    @property
    def name(self) -> str:
        """Returns its name, which no other row has."""
        return name_of(self.what, f"{self.who}{BESIDE}{self.their}" if self.their else self.who)

    @property
    def limit(self) -> str:
        """Returns the name of the row that it is compared with; empty if there is none."""
        return name_of(self.what, self.their) if self.their else ""


def name_of(what: str, who: str) -> str:
    """Returns the name of the row of what somebody reached."""
    return f"{what}, {who}"


def level_of(what: str) -> Level | None:
    """Returns the level that some work names."""
    return next((level for level in Level if level in what.split(", ")), None)


def is_more_better(unit: str) -> bool:
    """Tells whether much of a unit is good: of rates, and of parts of a rate."""
    return unit in ("records/s", "%")


def no_goal(our: str, their: str) -> Goal:
    """Returns that there is none."""
    return None


def beside(
    what: str,
    unit: str,
    ours: Sequence[str],
    theirs: Iterable[str],
    goal: GoalOf = no_goal,
) -> list[Row]:
    """Returns a row for each, and one for each pair of ours and theirs."""
    theirs = list(theirs)
    rows = [Row(what=what, who=who, unit=unit) for who in (*ours, *theirs)]
    for our in ours:
        rows += [
            Row(what=what, who=our, unit=unit, their=their, goal=goal(our, their))
            for their in theirs
        ]
    return rows


def alone(what: str, unit: str, whos: Iterable[str], goal: Callable[[str], Goal]) -> list[Row]:
    """Returns a row for each, compared with nothing."""
    return [Row(what=what, who=who, unit=unit, goal=goal(who)) for who in whos]


def measured(rows: Iterable[Row], samples: Samples) -> list[dict[str, Any]]:
    """Returns what the file holds of the rows that have values: those of pairs have ours.

    What was not measured is left out, and so are ratios to nothing.
    """
    found = [row for row in rows if _is_measured(row, samples)]
    for row in found:
        if row.their:
            for value in samples.of(name_of(row.what, row.who)):
                samples.add(row.name, value)
    plain = [
        PlainRow(name=row.name, unit=row.unit, limit=row.limit, goal=row.goal) for row in found
    ]
    return [
        {
            **result,
            "what": row.what,
            "who": row.who,
            "their": row.their or None,
            "level": level_of(row.what),
            "higher_is_better": is_more_better(row.unit),
        }
        for row, result in zip(found, results(plain, samples), strict=True)
    ]


def _is_measured(row: Row, samples: Samples) -> bool:
    if not samples.of(name_of(row.what, row.who)):
        return False
    return not row.limit or bool(samples.of(row.limit) and samples.value(row.limit))
