"""Rows that put logbroker beside others: what each of them reached, and the ratios.

`publish 100 B, synced, kafka` is what Kafka reached; `publish 100 B, synced, logbroker /
kafka` has logbroker's value again, with that one as its limit.
"""

from collections.abc import Callable, Iterable, Sequence

from bench.rows import AtLeast, AtMost, Row, Samples

Goal = AtLeast | AtMost | None
GoalOf = Callable[[str, str], Goal]
"""Of one of ours and one of theirs."""
BESIDE = " / "


def name_of(what: str, who: str) -> str:
    """Returns the name of the row of what somebody reached."""
    return f"{what}, {who}"


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
    rows = [Row(name=name_of(what, who), unit=unit) for who in (*ours, *theirs)]
    for our in ours:
        rows += [
            Row(
                name=f"{name_of(what, our)}{BESIDE}{their}",
                unit=unit,
                limit=name_of(what, their),
                goal=goal(our, their),
            )
            for their in theirs
        ]
    return rows


def alone(what: str, unit: str, whos: Iterable[str], goal: Callable[[str], Goal]) -> list[Row]:
    """Returns a row for each, compared with nothing."""
    return [Row(name=name_of(what, who), unit=unit, goal=goal(who)) for who in whos]


def measured(rows: list[Row], samples: Samples) -> list[Row]:
    """Returns the rows that have values, after those of pairs got ours.

    What was not measured is left out, and so are ratios to nothing.
    """
    for row in rows:
        our, is_pair, _ = row.name.partition(BESIDE)
        if is_pair and not samples.of(row.name):
            for value in samples.of(our):
                samples.add(row.name, value)
    names = {row.name for row in rows if samples.of(row.name)}
    limits = {"", *(name for name in names if samples.value(name))}
    return [row for row in rows if row.name in names and row.limit in limits]
