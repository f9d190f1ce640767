"""The goals of a run in a small table: a line for each workload, and who was beaten by enough."""

from collections.abc import Sequence

from bench.report.amounts import amount, factor
from bench.report.comparison import title_of
from bench.report.run import Goal
from bench.report.systems import label_of
from bench.report.tables import goal_text, table

BEST = "the best peer"
"""Ends the text of a goal against whoever is best."""


def goal_counts(goals: Sequence[Goal]) -> str:
    """Returns how many were met, missed, and not measured."""
    marks = [goal.met for goal in goals]
    met, missed, unknown = (marks.count(mark) for mark in (True, False, None))
    rest = f", not measured: {unknown}" if unknown else ""
    return f"Goals met: {met}, missed: {missed}{rest}."


def goals_table(goals: Sequence[Goal]) -> str:
    """Returns a line for each workload that has goals."""
    groups: dict[str, list[Goal]] = {}
    for goal in goals:
        groups.setdefault(title_of(goal.what, goal.our), []).append(goal)
    lines = [
        [title, _limits(group), *(_reached(group, met) for met in (True, False, None))]
        for title, group in groups.items()
    ]
    return table(["", "goal", "met", "missed", "not measured"], lines, left=5)


def _limits(group: Sequence[Goal]) -> str:
    """Returns `≥ 1.5 x Kafka; ≥ 2 x the others`: each limit with those that it is for."""
    limits: dict[str, list[str]] = {}
    for goal in group:
        limits.setdefault(goal.limit, []).append(_against(goal))
    most = max(limits, key=lambda limit: len(limits[limit]))
    parts = []
    for limit, whos in limits.items():
        is_many = limit == most and len(whos) > 1
        others = "the others" if len(limits) > 1 else "each"
        against = others if is_many else ", ".join(who for who in whos if who)
        parts.append(f"{goal_text(limit)} x {against}" if against else goal_text(limit))
    return "; ".join(parts)


def _against(goal: Goal) -> str:
    if goal.text.endswith(BEST):
        return BEST
    return label_of(goal.their) if goal.their else ""


def _reached(group: Sequence[Goal], met: bool | None) -> str:
    found = [_found(goal) for goal in group if goal.met is met]
    return ", ".join(f"**{part}**" if met is False else part for part in found)


def _found(goal: Goal) -> str:
    who = label_of(goal.their) if goal.their else ""
    if goal.value is None:
        return who or "logbroker"
    value = factor(goal.value) if goal.their else amount(goal.value, goal.unit)
    return f"{who} {value}".strip()
