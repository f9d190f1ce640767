"""Draws all ratios of a run: a band for each section, in it a lane of dots for each system."""

from textwrap import fill
from typing import Any

from bench.report.canvas import MARGIN_IN, NOTE_SIZE, QUIET, WIDTH_IN, Canvas
from bench.report.comparison import Workload, rivals
from bench.report.plan import Overview
from bench.report.ratio_axis import RatioAxis
from bench.report.systems import label_of, look_of, rank_of, system_of

LANE_IN = 0.15
GAP_LANES = 1.6
TOP_IN, BOTTOM_IN, LEFT_IN, RIGHT_IN = 1.3, 0.85, 2.75, 1.3


def draw_dots(chart: Overview) -> Canvas:
    """Returns the drawn chart."""
    bands = {title: _dots(band) for title, band in chart.bands.items()}
    systems = sorted({name for dots in bands.values() for name, _ in dots}, key=rank_of)
    lanes_in_band = max(3, len(systems))
    height_in = len(bands) * (lanes_in_band + GAP_LANES) * LANE_IN
    canvas = Canvas(TOP_IN + height_in + BOTTOM_IN, chart.title)
    width_in = WIDTH_IN - LEFT_IN - RIGHT_IN
    axes = canvas.axes(LEFT_IN, TOP_IN, width_in, height_in)
    axis = RatioAxis((ratio for dots in bands.values() for _, ratio in dots), width_in, 0.15)
    axis.apply(axes)
    axis.name_sides(axes, above_points=19)
    axes.set_ylim(len(bands) * (lanes_in_band + GAP_LANES), 0)
    axes.set_yticks([])
    for number, (title, dots) in enumerate(bands.items()):
        top = number * (lanes_in_band + GAP_LANES)
        middle = top + (lanes_in_band + GAP_LANES) / 2
        if number:
            axes.axhline(top, color="#BBBBBB", lw=0.7)
        for name, ratio in dots:
            lane = top + GAP_LANES / 2 + 0.5 + systems.index(name)
            _draw_dot(axes, axis.place(ratio), lane, name)
        count = _count(dots, chart.bands[title])
        _write_band(axes, middle, title, count, (MARGIN_IN - LEFT_IN) / width_in)
    canvas.legend({label_of(name): _draw_dot(axes, None, None, name) for name in systems})
    canvas.note_absent(chart.absent)
    return canvas


def _dots(band: tuple[Workload, ...]) -> list[tuple[str, float]]:
    return [
        (system_of(peer.who), peer.advantage)
        for workload in band
        for peer in rivals(workload)
        if peer.advantage is not None
    ]


def _draw_dot(axes: Any, ratio: float | None, lane: float | None, name: str) -> Any:
    """Returns what the legend names; nothing is seen where there is no place."""
    look = look_of(name)
    (dot,) = axes.plot(
        [] if ratio is None else ratio,
        [] if lane is None else lane,
        look.marker,
        color=look.colour,
        markeredgecolor="#333333",
        markeredgewidth=0.5,
        markersize=6.5,
        zorder=4,
        clip_on=False,
    )
    return dot


def _count(dots: list[tuple[str, float]], band: tuple[Workload, ...]) -> str:
    failed = sum(
        peer.value is None and peer.failed for workload in band for peer in rivals(workload)
    )
    ahead = sum(ratio >= 1 for _, ratio in dots)
    return f"ahead in\n{ahead} of {len(dots)}" + (f",\n{failed} failed" if failed else "")


def _write_band(axes: Any, middle: float, title: str, count: str, left: float) -> None:
    style = {"transform": axes.get_yaxis_transform(), "va": "center"}
    axes.text(left, middle, fill(title, 31), fontsize=NOTE_SIZE + 0.5, **style)
    axes.text(1.02, middle, count, fontsize=NOTE_SIZE, color=QUIET, **style)
