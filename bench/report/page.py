"""The page: what was measured on what, remarks, goals, every section, and our own bench."""

from collections.abc import Iterable, Sequence

from bench.report.comparison import LEVELS, failure_label, gap_count
from bench.report.goals import goal_counts, goals_table
from bench.report.plan import Chapter, LatencyChart, Overview, RatioChart, chapters, overview
from bench.report.run import OwnRun, Run
from bench.report.systems import label_of, rank_of
from bench.report.tables import (
    comparison_table,
    own_counts,
    own_table,
    table,
)

CHARTS = "charts"
"""The directory of the charts, beside the page."""
HEAD = """\
# Results

Made by `python -m bench.report`, which overwrites this file: remarks go into `REMARKS.md`, beside
it. How it is measured: [README.md](README.md)."""
DURABILITY = """\
Two levels of durability: `synced`, every answer waits until the record is on the disk; `written`,
the fastest setting of each system that still answers. Systems are compared at the same level."""
READING = """\
Rates are records a second. Behind each value stands the ratio logbroker / that system: of rates
above 1 is better, of times, memory and disk below 1. **Bold**: logbroker is behind. The charts
have the better side on the right throughout. `-`: does not do that, or was not measured."""


def page(run: Run, own: OwnRun | None, remarks: str) -> str:
    """Returns the text of the page; `own` and `remarks` may be nothing."""
    found = chapters(run)
    parts = [HEAD, _about(run), DURABILITY, *_levels(run)]
    if remarks.strip():
        parts += ["## Remarks", remarks.strip()]
    parts += ["## Side by side", *_goals(run, found), *_overview(overview(run, found)), READING]
    for chapter in found:
        parts += _chapter(chapter)
    parts += _not_measured(run)
    if own:
        parts += _own(own)
    return "\n\n".join(parts) + "\n"


def _about(run: Run) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    scale = f", {run.scale}" if run.scale else ""
    again = [["measured again, later", "; ".join(run.again)]] if run.again else []
    return table(
        ["", ""],
        [
            ["machine", run.machine],
            ["date", run.date],
            ["measured", f"medians of {_rounds(run)} interleaved rounds{scale}"],
            *again,
            ["versions", versions],
            ["not installed", "; ".join(run.skipped) or "nothing"],
        ],
        left=2,
    )


def _goals(run: Run, found: Sequence[Chapter]) -> list[str]:
    gaps = gap_count(workload for chapter in found for workload in chapter.workloads)
    failed = f" Values that are missing because a measurement failed: {gaps}." if gaps else ""
    if not run.goals:
        return [f"This run has no goals.{failed}"]
    return [f"{goal_counts(run.goals)}{failed}", goals_table(run.goals)]


def _levels(run: Run) -> list[str]:
    lines = [
        [label_of(who), *(texts.get(level, "does not have it") for level in LEVELS)]
        for who, texts in sorted(run.levels.items(), key=lambda item: rank_of(item[0]))
    ]
    return [table(["", *LEVELS], lines, left=3)] if lines else []


def _rounds(run: Run) -> str:
    """Returns how many values a median is of: what is slow may have had fewer rounds."""
    counts = {len(row.samples) for section in run.sections for row in section.rows} - {0}
    least, most = min(counts, default=run.rounds), max(counts, default=run.rounds)
    return str(most) if least == most else f"{least} to {most}"


def _overview(chart: Overview) -> list[str]:
    if not chart.bands:
        return []
    return [_picture(chart, "every ratio of the run, right of 1 where logbroker is ahead")]


def _chapter(chapter: Chapter) -> list[str]:
    if not chapter.workloads:
        return [f"### {chapter.title}", "Nothing was measured."]
    return [
        f"### {chapter.title}",
        *(_picture(chart, "logbroker beside each of the others") for chart in chapter.ratios),
        *(_picture(chart, "percentiles of the times") for chart in chapter.latencies),
        comparison_table(chapter.workloads),
    ]


def _picture(chart: RatioChart | LatencyChart | Overview, what: str) -> str:
    return f"![{chart.title}: {what}]({CHARTS}/{chart.file})"


def _not_measured(run: Run) -> list[str]:
    lines = [
        f"- {failure_label(name)}: failed {len(messages)} {_times(messages)}, last with "
        f"`{_one_line(messages[-1])}`"
        for name, messages in run.failed.items()
        if messages
    ]
    return ["### What failed", "\n".join(lines)] if lines else []


def _times(messages: Sequence[str]) -> str:
    return "time" if len(messages) == 1 else "times"


def _one_line(message: str) -> str:
    text = " ".join(message.replace("`", "'").split())
    return text if len(text) <= 300 else f"{text[:297]}..."


def _own(own: OwnRun) -> list[str]:
    met, missed = own_counts(own.rows)
    rounds = max((len(row.samples) for row in own.rows), default=0)
    return [
        "## Our own bench",
        f"logbroker beside bare limits of the same machine (`make bench`), measured "
        f"{own.written:%Y-%m-%d}, medians of {rounds} rounds. Goals met: {met}, missed: {missed}.",
        own_table(own.rows),
    ]


def chart_files(run: Run) -> Iterable[RatioChart | LatencyChart | Overview]:
    """Returns all charts that the page shows."""
    found = chapters(run)
    whole = overview(run, found)
    if whole.bands:
        yield whole
    for chapter in found:
        yield from chapter.ratios
        yield from chapter.latencies
