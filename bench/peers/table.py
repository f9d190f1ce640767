"""The results for people: under each kind of work who did it, and how far apart they are."""

from collections.abc import Iterable, Sequence
from typing import Any

from bench.peers.rows import Row, level_of

Found = dict[str, Any]
REASON = 90
"""Characters of why something failed."""


def workload_table(
    title: str, rows: Sequence[Row], found: Sequence[Found], failed: dict[str, list[str]]
) -> str:
    """Returns a table: a line for each who did it or failed, with the ratios of ours to it."""
    values = {(one["what"], one["who"]): one for one in found if not one["their"]}
    pairs = {(one["what"], one["who"], one["their"]): one for one in found if one["their"]}
    ours = list(dict.fromkeys(row.who for row in rows if row.their))
    width = max((len(row.who) for row in rows), default=0)
    lines = [title]
    for what in dict.fromkeys(row.what for row in rows):
        lines += ["", f"  {what}"]
        for row in rows:
            if row.what == what and not row.their:
                one = values.get((what, row.who))
                beside = [(our, pairs.get((what, our, row.who))) for our in ours]
                text = _value(one) + _ratios(beside) if one else _failure(title, row, failed)
                lines.append(f"    {row.who:<{width}}  {text}".rstrip())
    return "\n".join(lines)


def goal_table(found: Iterable[Found]) -> str:
    """Returns a line for each goal: its limit, what was found, whether that meets it."""
    found = list(found)
    lines = ["Goals"]
    width = max((len(goal["goal"]) for goal in found), default=0)
    for goal in found:
        value = "-" if goal["value"] is None else f"{goal['value']:.3g}"
        their = f"  ({goal['their']})" if "best peer" in goal["goal"] and goal["their"] else ""
        lines.append(f"  {goal['goal']:<{width}}  {value:>8}  {_word(goal['met'])}{their}")
    met = [goal["met"] for goal in found]
    return "\n".join(
        [*lines, f"  met: {met.count(True)}, missed: {met.count(False)}, "
         f"not measured: {met.count(None)}"]
    )  # fmt: skip


def number(value: float) -> str:
    """Returns a value with as many digits as say something."""
    digits = 0 if value >= 1_000 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}"


def _value(one: Found) -> str:
    least, most = min(one["samples"]), max(one["samples"])
    spread = f"{number(least)} to {number(most)}" if len(one["samples"]) > 1 else ""
    return f"{number(one['value']):>12} {one['unit']:<9} {spread:<24}"


def _ratios(beside: Iterable[tuple[str, Found | None]]) -> str:
    return "   ".join(
        f"{our} {pair['ratio']:.2f} x" + (f" ({pair['goal']}: {_word(pair['met'])})"
                                         if pair["goal"] else "")
        for our, pair in beside if pair
    )  # fmt: skip


def _word(is_met: bool | None) -> str:
    return {True: "met", False: "MISSED", None: "not measured"}[is_met]


def _failure(title: str, row: Row, failed: dict[str, list[str]]) -> str:
    for name, errors in failed.items():
        what, _, who = name.rpartition(", ")
        if errors and who == row.who and is_reason(what, row.what, title):
            return f"failed: {' '.join(errors[-1].split())[:REASON]}"
    return "not measured"


def is_reason(failed: str, what: str, title: str) -> bool:
    """Tells whether what failed would have given the value of `what`.

    One measurement may give several values: it is named by how theirs begin, or by the title.
    A server that does not start, or a topic that cannot be filled, gives none at all.
    """
    levels = {level_of(failed), level_of(what)} - {None}
    if len(levels) > 1:
        return False
    return f"{what}, ".startswith(f"{failed}, ") or failed.startswith((title, "start, ", "fill "))
