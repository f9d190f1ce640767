"""A section of a run as workloads: one of ours, and beside it everyone else at the same work."""

from collections.abc import Iterable
from dataclasses import dataclass

from bench.report.amounts import is_less_better
from bench.report.run import BESIDE, Row, Section
from bench.report.systems import LIMIT, OURS, is_ours, label_of, rank_of

LEVELS = ("synced", "written")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """What somebody else reached at a workload."""

    who: str
    value: float | None
    """None where it was not measured."""
    failed: bool
    """Some round failed; without a value, all did."""
    ratio: float | None
    """logbroker / this one; None where one of both is not known, or this one is 0."""
    advantage: float | None
    """How many times as good logbroker is: the ratio, or of times and sizes its inverse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One line of a comparison."""

    what: str
    unit: str
    our: str
    value: float | None
    """What `our` reached; None where it was not measured."""
    failed: bool
    peers: tuple[Peer, ...]

    @property
    def title(self) -> str:
        """Returns the workload, and which of our ways if there are several."""
        return title_of(self.what, self.our)

    @property
    def level(self) -> str:
        """Returns the level of durability; empty where there is none."""
        return level_of(self.what)


def workloads(section: Section, failed: Iterable[str]) -> list[Workload]:
    """Returns the workloads of a section; `failed` has names as `<what>, <who>`."""
    rows = {row.name for row in section.rows}
    failures = [_split(name) for name in failed]
    found = []
    for what in dict.fromkeys(row.what for row in section.rows):
        own = {row.who: row for row in section.rows if row.what == what and not row.is_pair}
        trouble = {who for of, who in failures if _is_of(of, what, section.title)}
        whos = sorted({*own, *trouble}, key=rank_of)
        theirs = [who for who in whos if not is_ours(who)]
        unit = next(row.unit for row in section.rows if row.what == what)
        for our in [who for who in whos if is_ours(who)] or [OURS]:
            mine = own.get(our)
            found.append(
                Workload(
                    what=what,
                    unit=unit,
                    our=our,
                    value=mine.value if mine else None,
                    failed=our in trouble,
                    peers=tuple(
                        _peer(
                            who,
                            own.get(who),
                            mine,
                            is_paired=_pair(what, our, who) in rows,
                            failed=who in trouble,
                        )
                        for who in theirs
                    ),
                )
            )
    return found


def title_of(what: str, our: str) -> str:
    """Returns a workload, and which of our ways if it is not the plain one."""
    way = our.removeprefix(OURS).strip()
    return f"{what} ({way})" if way else what


def peers_of(found: Iterable[Workload]) -> list[str]:
    """Returns everyone who is beside us in any of them, in the order of all reports."""
    return sorted({peer.who for workload in found for peer in workload.peers}, key=rank_of)


def rivals(workload: Workload) -> list[Peer]:
    """Returns the peers without the bare limit, which nobody can beat."""
    return [peer for peer in workload.peers if peer.who != LIMIT]


def gap_count(found: Iterable[Workload]) -> int:
    """Returns how many values are missing because their measurement failed."""
    gaps = set()
    for workload in found:
        if workload.failed and workload.value is None:
            gaps.add((workload.what, workload.our))
        for peer in workload.peers:
            if peer.failed and peer.value is None:
                gaps.add((workload.what, peer.who))
    return len(gaps)


def level_of(what: str) -> str:
    """Returns the level of durability that a workload names; empty if none."""
    return next((part for part in reversed(what.split(", ")) if part in LEVELS), "")


def failure_label(name: str) -> str:
    """Returns what failed and at whom: `Kafka: publish 100 B, synced`."""
    what, who = _split(name)
    return f"{label_of(who)}: {what}"


def unstarted(failed: str) -> str:
    """Returns whose server did not start, and at which level: `Kafka, synced`; else nothing."""
    what, who = _split(failed)
    start, _, level = what.partition(", ")
    return f"{label_of(who)}, {level}" if start == "start" and level in LEVELS else ""


def _peer(who: str, theirs: Row | None, mine: Row | None, *, is_paired: bool, failed: bool) -> Peer:
    ratio = mine.value / theirs.value if is_paired and mine and theirs and theirs.value else None
    return Peer(
        who=who,
        value=theirs.value if theirs else None,
        failed=failed,
        ratio=ratio,
        advantage=None if ratio is None or theirs is None else _advantage(ratio, theirs.unit),
    )


def _advantage(ratio: float, unit: str) -> float:
    if not is_less_better(unit):
        return ratio
    return 1 / ratio if ratio else float("inf")


def _pair(what: str, our: str, their: str) -> str:
    return f"{what}, {our}{BESIDE}{their}"


def _split(name: str) -> tuple[str, str]:
    what, _, who = name.rpartition(", ")
    return what, who


def _is_of(failed: str, what: str, title: str) -> bool:
    """Tells whether what failed would have given the value of `what`.

    One measurement gives several values: the name it failed under is the first part of theirs,
    or the section's title. What is read may fail to be filled before. Where both name a level,
    it is the same.
    """
    if level_of(failed) and level_of(what) and level_of(failed) != level_of(what):
        return False
    measured = failed.removeprefix("fill to ")
    return f"{what}, ".startswith(f"{measured}, ") or failed.startswith(title)
