"""The axis of ratios: logarithmic, the better side right of 1, room for what is written beside."""

import math
from collections.abc import Iterable
from typing import Any

from bench.report.canvas import BEHIND, NOTE_SIZE, QUIET
from bench.report.systems import OURS, look_of

AXIS = (
    "how many times as good logbroker is, log scale\n"
    "(rates: logbroker / the other; times, memory and disk: the other / logbroker)"
)
AHEAD, BEHIND_TEXT = "logbroker ahead →", "← logbroker behind"
NARROWEST = (0.5, 2.0)
NARROW_IN = 0.45
"""Between two labels of the scale."""


class RatioAxis:
    """Limits for some ratios on an axis of some inches, with room for text at both ends."""

    def __init__(self, ratios: Iterable[float], width_in: float, text_in: float) -> None:
        found = list(ratios)
        inside = [ratio for ratio in found if 0 < ratio < math.inf]
        self._low = min([NARROWEST[0], *inside])
        self._high = max([NARROWEST[1], *inside])
        text_left = text_in if any(ratio < 1 for ratio in found) else 0.0
        decades = math.log10(self._high / self._low)
        self._decade_in = (width_in - text_in - text_left) / decades
        self._ends = (
            self._low / 10 ** (text_left / self._decade_in),
            self._high * 10 ** (text_in / self._decade_in),
        )

    def place(self, ratio: float) -> float:
        """Returns where a ratio is drawn: 0 and infinity at the ends."""
        return min(max(ratio, self._low), self._high)

    def apply(self, axes: Any) -> None:
        """Gives axes the scale, its labels, the line at 1, and the sides' names."""
        axes.set_xscale("log")
        axes.set_xlim(*self._ends)
        ticks = _ticks(self._low, self._high, self._decade_in)
        axes.set_xticks(ticks, [f"{tick:g}x" for tick in ticks])
        axes.minorticks_off()
        axes.tick_params(axis="x", labeltop=True, top=True, colors=QUIET, labelsize=NOTE_SIZE)
        axes.grid(visible=True, axis="x")
        axes.axvspan(self._ends[0], 1, color=BEHIND, zorder=0, lw=0)
        axes.axvline(1, color=look_of(OURS).colour, lw=2.2, zorder=3)
        axes.set_xlabel(AXIS, fontsize=NOTE_SIZE, color=QUIET)

    def name_sides(self, axes: Any, above_points: float) -> None:
        """Writes above the axes which side is which."""
        style = {"fontsize": NOTE_SIZE, "weight": "bold", "va": "bottom"}
        for side, what, colour in (
            (-1, BEHIND_TEXT, QUIET),
            (1, AHEAD, look_of(OURS).colour),
        ):
            axes.annotate(
                what,
                (1, 1),
                (8 * side, above_points),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                ha="left" if side > 0 else "right",
                color=colour,
                annotation_clip=False,
                **style,
            )


def _ticks(low: float, high: float, decade_in: float) -> list[float]:
    """Returns 1, 2, 5, 10 and so on; where they would be narrow the powers of ten alone."""
    steps = (1, 2, 5) if decade_in * math.log10(2) >= NARROW_IN else (1,)
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [float(f"{step * 10.0**exponent:.0e}") for exponent in exponents for step in steps]
    return [tick for tick in found if low * 0.99 <= tick <= high * 1.01]
