"""Draws the ratios of a section: a block for each workload, a bar for each of the others."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from bench.report.amounts import amount, factor
from bench.report.canvas import MARGIN_IN, NOTE_SIZE, QUIET, WIDTH_IN, Canvas
from bench.report.comparison import Peer, Workload
from bench.report.plan import RatioChart
from bench.report.ratio_axis import RatioAxis
from bench.report.systems import OURS, label_of, look_of, system_of

LINE_IN = 0.215
GAP = 0.45
"""Between two workloads, in lines."""
TOP_IN, BOTTOM_IN, RIGHT_IN = 0.95, 0.8, 0.25
CHAR_IN = 0.083
TEXT_IN = 1.5
"""What is written beside a bar."""


class Line(NamedTuple):
    """One line of the chart, at its height; a workload's name where there is no peer."""

    at: float
    workload: Workload
    peer: Peer | None


def draw_bars(chart: RatioChart) -> Canvas:
    """Returns the drawn chart."""
    lines = list(_lines(chart))
    height_in = (lines[-1].at + 1) * LINE_IN
    canvas = Canvas(TOP_IN + height_in + BOTTOM_IN + (0.2 if chart.absent else 0), chart.title)
    peers = [line.peer for line in lines if line.peer]
    left_in = 0.35 + CHAR_IN * max(len(label_of(peer.who)) for peer in peers)
    width_in = WIDTH_IN - left_in - RIGHT_IN
    axes = canvas.axes(left_in, TOP_IN, width_in, height_in)
    axis = RatioAxis((p.advantage for p in peers if p.advantage is not None), width_in, TEXT_IN)
    axis.apply(axes)
    axis.name_sides(axes, above_points=19)
    axes.set_ylim(lines[-1].at + 0.6, -0.5)
    for line in lines:
        if line.peer:
            _draw_peer(axes, axis, line.at, line.workload, line.peer)
        else:
            _draw_name(axes, line.at, line.workload, (MARGIN_IN - left_in) / width_in)
    named = [line for line in lines if line.peer]
    axes.set_yticks([n.at for n in named], [label_of(n.peer.who) for n in named if n.peer])
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0, labelsize=NOTE_SIZE + 0.5)
    canvas.note_absent(chart.absent)
    return canvas


def _lines(chart: RatioChart) -> Iterator[Line]:
    at = 0.0
    for workload in chart.workloads:
        yield Line(at, workload, None)
        for peer in workload.peers:
            at += 1
            yield Line(at, workload, peer)
        at += 1 + GAP


def _draw_name(axes: Any, at: float, workload: Workload, left: float) -> None:
    """Writes the workload over the line at 1; `left` is where the chart begins, of the width."""
    ours = "failed" if workload.value is None else amount(workload.value, workload.unit)
    style = {"transform": axes.get_yaxis_transform(), "va": "center", "weight": "bold", "zorder": 4}
    axes.axhspan(at - 0.5 - GAP, at + 0.48, color="white", zorder=3.5, lw=0)
    axes.text(left, at, workload.title, fontsize=NOTE_SIZE + 0.5, **style)
    axes.text(
        1,
        at,
        f"{label_of(OURS)}: {ours}",
        ha="right",
        color=look_of(OURS).colour,
        fontsize=NOTE_SIZE + 0.5,
        **style,
    )


def _draw_peer(axes: Any, axis: RatioAxis, at: float, workload: Workload, peer: Peer) -> None:
    if peer.advantage is None:
        return _write(axes, 1, at, _why_not(workload, peer), is_right=True)
    place = axis.place(peer.advantage)
    is_tool = peer.who != system_of(peer.who)
    axes.barh(
        at,
        place - 1,
        left=1,
        height=0.78,
        color=look_of(peer.who).colour,
        edgecolor="white",
        hatch="////" if is_tool else "",
        zorder=2,
    )
    theirs = "" if peer.value is None else amount(peer.value, workload.unit)
    text = f"{factor(peer.advantage)}x  ({theirs})"
    return _write(axes, place, at, text, is_right=peer.advantage >= 1, is_read=True)


def _why_not(workload: Workload, peer: Peer) -> str:
    if peer.value is not None:
        return f"no ratio ({amount(peer.value, workload.unit)})"
    return "failed" if peer.failed else "not measured"


def _write(
    axes: Any, x: float, at: float, text: str, *, is_right: bool, is_read: bool = False
) -> None:
    axes.annotate(
        text,
        (x, at),
        (5 if is_right else -5, 0),
        textcoords="offset points",
        va="center",
        ha="left" if is_right else "right",
        fontsize=NOTE_SIZE,
        color="black" if is_read else QUIET,
        style="normal" if is_read else "italic",
        zorder=4,
    )
