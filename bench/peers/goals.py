"""What logbroker wants to reach beside each of the others, and whether it did.

A goal is a row of its own: what it is of, against whom, the limit, and what was found. Where
the limit is the best of all, there is one row for all of them, with that one named.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from bench.peers.rows import BESIDE, Row, level_of, name_of
from bench.rows import AtLeast, AtMost, Samples

BEST = AtMost(1)
"""Of every peer, so of the best."""
Found = dict[str, Any]


def goals(workload: str, rows: Iterable[Row], samples: Samples) -> list[Found]:
    """Returns the goals among the rows of a workload; `met` is None where one was not measured."""
    aimed = [row for row in rows if row.goal]
    of_best = [row for row in aimed if row.their and _is_of_best(row)]
    found = [_goal(workload, row, samples) for row in aimed if row not in of_best]
    whats = dict.fromkeys(row.what for row in of_best)
    best = [[row for row in of_best if row.what == what] for what in whats]
    return [*found, *(_best(workload, group, samples) for group in best)]


def _is_of_best(row: Row) -> bool:
    return isinstance(row.goal, AtMost) and row.goal == BEST


def _goal(workload: str, row: Row, samples: Samples) -> Found:
    value = _ratio(row, samples) if row.their else _value(row, samples)
    return _entry(workload, row, row.their, value, _text(row))


def _best(workload: str, rows: Sequence[Row], samples: Samples) -> Found:
    """Returns the goal against whoever is best; not met if the best was not measured."""
    ratios = {row.their: ratio for row in rows if (ratio := _ratio(row, samples)) is not None}
    best = max(ratios, key=lambda their: ratios[their], default="")
    text = f"{rows[0].what}: at most that of the best peer"
    return _entry(workload, rows[0], best, ratios.get(best), text)


def _entry(workload: str, row: Row, their: str, value: float | None, text: str) -> Found:
    assert row.goal
    return {
        "goal": text,
        "workload": workload,
        "what": row.what,
        "who": row.who,
        "their": their or None,
        "row": name_of(row.what, f"{row.who}{BESIDE}{their}" if their else row.who),
        "level": level_of(row.what),
        "limit": str(row.goal),
        "value": None if value is None else float(f"{value:.4g}"),
        "unit": "ratio" if row.their else row.unit,
        "met": None if value is None else row.goal.is_met(value),
    }


def _text(row: Row) -> str:
    assert row.goal
    least = "at least" if isinstance(row.goal, AtLeast) else "at most"
    number = f"{row.goal.number:g}"
    who = row.who if row.who != "logbroker" else ""
    what = f"{row.what}, {who}" if who else row.what
    return f"{what}: {least} {number} x {row.their}" if row.their else f"{what}: {least} {number}"


def _value(row: Row, samples: Samples) -> float | None:
    name = name_of(row.what, row.who)
    return samples.value(name) if samples.of(name) else None


def _ratio(row: Row, samples: Samples) -> float | None:
    ours = _value(row, samples)
    theirs = samples.value(row.limit) if samples.of(row.limit) else 0
    return None if ours is None or not theirs else ours / theirs
