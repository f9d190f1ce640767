"""Rows: what is measured, what it is compared with, and what of that is a goal."""

from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple


class AtLeast(NamedTuple):
    """More is better."""

    number: float

    def is_met(self, found: float) -> bool:
        """Tells whether `found` reaches it."""
        return found >= self.number

    def __str__(self) -> str:
        return f">= {self.number:g}"


class AtMost(NamedTuple):
    """Less is better."""

    number: float

    def is_met(self, found: float) -> bool:
        """Tells whether `found` keeps to it."""
        return found <= self.number

    def __str__(self) -> str:
        return f"<= {self.number:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the table. The goal is of the ratio, and of the value where there is no limit."""

    name: str
    unit: str
    limit: str = ""
    """The name of the row it is compared with, of the same unit."""
    goal: AtLeast | AtMost | None = None


class Samples:
    """What was measured for each row, once a round."""

    def __init__(self) -> None:
        self._of: defaultdict[str, list[float]] = defaultdict(list)

    def add(self, name: str, value: float) -> None:
        """Takes the value of a row in this round."""
        self._of[name].append(value)

    def replace(self, name: str, value: float) -> None:
        """Takes a value that makes earlier ones obsolete."""
        self._of[name] = [value]

    def value(self, name: str) -> float:
        """Returns the median."""
        return median(self._of[name])

    def of(self, name: str) -> list[float]:
        """Returns all, by round."""
        return self._of[name]


def results(rows: list[Row], samples: Samples) -> list[dict[str, Any]]:
    """Returns what `latest.json` holds."""
    units = {row.name: row.unit for row in rows}
    assert len(units) == len(rows), "a name is given to one row"
    return [_result(row, units, samples) for row in rows]


def _result(row: Row, units: dict[str, str], samples: Samples) -> dict[str, Any]:
    assert not row.limit or units[row.limit] == row.unit, f"{row.name} has another unit"
    value = samples.value(row.name)
    ratio = value / samples.value(row.limit) if row.limit else None
    return {
        "name": row.name,
        "value": _rounded(value),
        "unit": row.unit,
        "limit": row.limit or None,
        "ratio": None if ratio is None else round(ratio, 3),
        "goal": str(row.goal) if row.goal else None,
        "met": row.goal.is_met(value if ratio is None else ratio) if row.goal else None,
        "samples": [_rounded(sample) for sample in samples.of(row.name)],
    }


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")
