"""Draws a chart of the plan into a file."""

from pathlib import Path

from bench.report.latency_lines import draw_lines
from bench.report.plan import LatencyChart, Overview, RatioChart
from bench.report.ratio_bars import draw_bars
from bench.report.ratio_dots import draw_dots


def draw(chart: RatioChart | LatencyChart | Overview, path: Path) -> None:
    """Writes a PNG."""
    match chart:
        case RatioChart():
            canvas = draw_bars(chart)
        case LatencyChart():
            canvas = draw_lines(chart)
        case Overview():
            canvas = draw_dots(chart)
    canvas.save(path)
