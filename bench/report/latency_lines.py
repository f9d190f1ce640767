"""Draws distributions of times: which part of them is below which, slow ends stretched.

Both axes are logarithmic: the time, and the part that is slower. So 99 %, 99.9 % and 99.99 %
are equally far apart.
"""

from collections.abc import Sequence
from typing import Any

from bench.report.amounts import duration
from bench.report.canvas import NOTE_SIZE, QUIET, WIDTH_IN, Canvas
from bench.report.plan import LatencyChart
from bench.report.run import Quantiles
from bench.report.systems import label_of, look_of, rank_of

PARTS = {2.0: "50 %", 10.0: "90 %", 1e2: "99 %", 1e3: "99.9 %", 1e4: "99.99 %"}
"""Labels by 1 / (1 - part)."""
COLUMNS = 2
PANEL_IN = 2.75
TOP_IN, ABOVE_IN, BELOW_IN = 0.85, 0.35, 0.6
LEFT_IN, BETWEEN_IN, RIGHT_IN = 0.85, 0.85, 0.25


def draw_lines(chart: LatencyChart) -> Canvas:
    """Returns the drawn chart."""
    rows = -(-len(chart.panels) // COLUMNS)
    absent = (*(f"{label_of(who)} (failed)" for who in chart.failed), *chart.absent)
    each_in = ABOVE_IN + PANEL_IN + BELOW_IN
    canvas = Canvas(TOP_IN + rows * each_in + (0.3 if absent else 0.05), chart.title)
    width_in = (WIDTH_IN - LEFT_IN - BETWEEN_IN - RIGHT_IN) / COLUMNS
    times = [time for lines in chart.panels.values() for q in lines.values() for _, time in q]
    first: dict[str, Any] = {}
    for at, (what, lines) in enumerate(chart.panels.items()):
        left = LEFT_IN + (at % COLUMNS) * (width_in + BETWEEN_IN)
        top = TOP_IN + at // COLUMNS * each_in + ABOVE_IN
        axes = canvas.axes(left, top, width_in, PANEL_IN)
        _draw_panel(axes, what, lines, times, is_first=at % COLUMNS == 0)
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            first.setdefault(label, handle)
    ordered = sorted({who for lines in chart.panels.values() for who in lines}, key=rank_of)
    canvas.legend({label_of(who): first[label_of(who)] for who in ordered})
    canvas.note_absent(absent)
    return canvas


def _draw_panel(
    axes: Any, what: str, lines: dict[str, Quantiles], times: Sequence[float], *, is_first: bool
) -> None:
    for who, quantiles in lines.items():
        _draw_line(axes, who, quantiles)
    axes.set_xscale("log")
    axes.set_yscale("log")
    last = max(_stretched(part) for q in lines.values() for part, _ in q if part < 1)
    axes.set_xlim(1, max(10.0, last) * 1.05)
    above_0 = [time for time in times if time > 0]
    axes.set_ylim(min(above_0) / 1.3, max(above_0) * 1.3)
    axes.set_xticks(list(PARTS), list(PARTS.values()))
    axes.set_xlim(1, max(10.0, last) * 1.05)
    axes.yaxis.set_major_formatter(lambda seconds, _: _whole(seconds))
    axes.yaxis.set_minor_formatter(lambda _seconds, _: "")
    axes.tick_params(which="both", labelsize=NOTE_SIZE, colors=QUIET)
    axes.tick_params(axis="x", which="minor", length=0)
    axes.grid(visible=True)
    axes.set_title(what, fontsize=NOTE_SIZE + 1, weight="bold", loc="left")
    axes.set_xlabel("part of all times (log scale of the rest)", fontsize=NOTE_SIZE, color=QUIET)
    if is_first:
        axes.set_ylabel("not longer than (log scale)", fontsize=NOTE_SIZE, color=QUIET)


def _draw_line(axes: Any, who: str, quantiles: Quantiles) -> None:
    look = look_of(who)
    points = [(_stretched(part), time) for part, time in quantiles if part < 1 and time > 0]
    is_ours = look is look_of("logbroker")
    axes.plot(
        [x for x, _ in points],
        [y for _, y in points],
        look.dash,
        color=look.colour,
        marker=look.marker or None,
        markevery=max(1, len(points) // 8),
        markersize=5,
        lw=2.8 if is_ours else 1.6,
        zorder=4 if is_ours else 3,
        label=label_of(who),
    )


def _whole(seconds: float) -> str:
    """Returns the time at a tick, a power of ten: `10 ms`."""
    number, _, unit = duration(seconds).partition(" ")
    return f"{float(number):g} {unit}"


def _stretched(part: float) -> float:
    return 1 / (1 - part)
