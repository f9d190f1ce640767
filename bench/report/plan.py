"""Which charts a run gets, and what is in each. Nothing here draws."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bench.report.comparison import LEVELS, Workload, rivals, unstarted, workloads
from bench.report.run import Quantiles, Run, Section
from bench.report.systems import LOOKS, rank_of

MAX_BARS = 40
"""More than that are drawn in a chart for each level of durability."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioChart:
    """Bars: how many times as good logbroker is as each of the others."""

    file: str
    title: str
    workloads: tuple[Workload, ...]
    absent: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyChart:
    """Lines: which part of all times is below which, a panel for each workload."""

    file: str
    title: str
    panels: dict[str, dict[str, Quantiles]]
    """By workload and who."""
    failed: tuple[str, ...]
    """Who has no line in any panel because all failed."""
    absent: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Dots: every ratio of a run, a band for each section."""

    file: str
    title: str
    bands: dict[str, tuple[Workload, ...]]
    absent: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """A section of a run, with its charts."""

    title: str
    workloads: tuple[Workload, ...]
    ratios: tuple[RatioChart, ...]
    latencies: tuple[LatencyChart, ...]


def chapters(run: Run) -> list[Chapter]:
    """Returns the sections of a run, in its order."""
    return [_chapter(run, section) for section in run.sections]


def overview(run: Run, found: Sequence[Chapter]) -> Overview:
    """Returns the chart of all ratios."""
    bands = {chapter.title: _drawn(chapter.workloads) for chapter in found}
    return Overview(
        file="overview.png",
        title="All workloads at a glance",
        bands={title: band for title, band in bands.items() if band},
        absent=absent(run),
    )


def absent(run: Run) -> tuple[str, ...]:
    """Returns who is in no chart at all, or not at a level, and why; a missing tool is nobody."""
    shorts = {look.title: look.short for look in LOOKS.values()}
    titles = dict.fromkeys(line.partition(":")[0] for line in run.skipped)
    skipped = [
        f"{shorts.get(title, title)} (not installed)" for title in titles if "," not in title
    ]
    return (*skipped, *(f"{who} (did not start)" for who in map(unstarted, run.failed) if who))


def _chapter(run: Run, section: Section) -> Chapter:
    found = tuple(workloads(section, run.failed))
    return Chapter(
        title=section.title,
        workloads=found,
        ratios=tuple(_ratio_charts(run, section.title, _drawn(found))),
        latencies=tuple(_latency_charts(run, section, found)),
    )


def _drawn(found: Sequence[Workload]) -> tuple[Workload, ...]:
    """Returns those that have a ratio, or had one if nothing had failed."""
    return tuple(
        workload
        for workload in found
        if any(peer.advantage is not None or peer.failed for peer in workload.peers)
    )


def _ratio_charts(run: Run, title: str, drawn: tuple[Workload, ...]) -> list[RatioChart]:
    parts = {"": drawn}
    if sum(len(workload.peers) for workload in drawn) > MAX_BARS:
        parts = {
            level: tuple(workload for workload in drawn if workload.level == level)
            for level in ("", *LEVELS)
        }
    return [
        RatioChart(
            file=f"ratios-{_slug(title, level)}.png",
            title=f"{title}, {level}" if level else title,
            workloads=part,
            absent=absent(run),
        )
        for level, part in parts.items()
        if part
    ]


def _latency_charts(run: Run, section: Section, found: tuple[Workload, ...]) -> list[LatencyChart]:
    panels: dict[str, dict[str, Quantiles]] = {}
    for name, quantiles in run.distributions.items():
        what, _, who = name.rpartition(", ")
        if quantiles and any(row.what.startswith(f"{what}, ") for row in section.rows):
            panels.setdefault(what, {})[who] = quantiles
    if not panels:
        return []
    drawn = {who for lines in panels.values() for who in lines}
    failed = {peer.who for workload in found for peer in rivals(workload) if peer.failed}
    ordered = {what: dict(sorted(lines.items(), key=_rank)) for what, lines in panels.items()}
    return [
        LatencyChart(
            file=f"latencies-{_slug(section.title)}.png",
            title=section.title,
            panels=ordered,
            failed=tuple(sorted(failed - drawn, key=rank_of)),
            absent=absent(run),
        )
    ]


def _rank(line: tuple[str, Quantiles]) -> tuple[int, int, str]:
    return rank_of(line[0])


def _slug(*words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower()).strip("-")
