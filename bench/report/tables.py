"""Tables in Markdown: what everyone reached, and our own bench."""

from collections.abc import Iterable, Sequence

from bench.report.amounts import amount, factor
from bench.report.comparison import Peer, Workload, peers_of
from bench.report.run import Row
from bench.report.systems import OURS, label_of

NOTHING = "-"
FAILED = "*failed*"


def table(
    head: Sequence[str], lines: Iterable[Sequence[str]], left: int = 1, *, right: int = 0
) -> str:
    """Returns a table of numbers, but for `left` columns before and `right` behind: text."""
    ruler = [":--" if at < left or at >= len(head) - right else "--:" for at in range(len(head))]
    return "\n".join(
        "| " + " | ".join(_cell(cell) for cell in line) + " |" for line in (head, ruler, *lines)
    )


def comparison_table(found: Sequence[Workload]) -> str:
    """Returns a line for each workload: our value, and theirs with the ratio."""
    whos = peers_of(found)
    lines = []
    for workload in found:
        peers = {peer.who: peer for peer in workload.peers}
        cells = [_peer(peers[who], workload.unit) if who in peers else NOTHING for who in whos]
        lines.append(
            [workload.title, _value(workload.value, workload.unit, workload.failed), *cells]
        )
    return table(["", label_of(OURS), *(label_of(who) for who in whos)], lines)


def own_table(rows: Sequence[Row]) -> str:
    """Returns a line for each row of our own bench, beside the row that it is compared with."""
    by_name = {row.name: row for row in rows}
    lines = []
    for row in rows:
        limit = by_name.get(row.limit or "")
        lines.append(
            [
                row.name,
                row.limit or "",
                amount(row.value, row.unit),
                amount(limit.value, limit.unit) if limit else "",
                "" if row.ratio is None else factor(row.ratio),
                goal_text(row.goal) if row.goal else "",
                _mark(row.met),
            ]
        )
    return table(["", "beside", "value", "of it", "ratio", "goal", ""], lines, left=2, right=1)


def own_counts(rows: Iterable[Row]) -> tuple[int, int]:
    """Returns how many goals were met and how many missed."""
    marks = [row.met for row in rows]
    return marks.count(True), marks.count(False)


def _value(value: float | None, unit: str, failed: bool) -> str:
    if value is None:
        return FAILED if failed else NOTHING
    return amount(value, unit)


def _peer(peer: Peer, unit: str) -> str:
    """Returns the value and the ratio, which is bold where logbroker is behind."""
    value = _value(peer.value, unit, peer.failed)
    if peer.ratio is None or peer.advantage is None:
        return value
    ratio = factor(peer.ratio)
    return f"{value} · **{ratio}**" if peer.advantage < 1 else f"{value} · {ratio}"


def goal_text(goal: str) -> str:
    """Returns a limit as people write it."""
    return goal.replace(">=", "≥").replace("<=", "≤")


def _mark(met: bool | None) -> str:
    return "" if met is None else "met" if met else "**missed**"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
