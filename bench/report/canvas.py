"""What all charts share: fonts, sizes, the colour of what is behind, and the way to a file.

Only this file and those that draw on it know matplotlib, which the extra `report` installs.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

WIDTH_IN = 9.0
MARGIN_IN = 0.15
DPI = 100
COLOURS = 192
STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.edgecolor": "#888888",
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.7,
    "hatch.linewidth": 0.6,
}
BEHIND = "#F1F1F1"
"""Behind the side where logbroker is behind."""
QUIET = "#555555"
TITLE_SIZE = 12.5
NOTE_SIZE = 9


class Canvas:
    """A figure of the common width. Places are in inches, from its top left."""

    def __init__(self, height_in: float, title: str) -> None:
        self.height_in = height_in
        with rc_context(STYLE):
            self.figure = Figure(figsize=(WIDTH_IN, height_in), dpi=DPI)
            self._agg = FigureCanvasAgg(self.figure)
            self.text(MARGIN_IN, 0.28, title, size=TITLE_SIZE, weight="bold")

    def axes(self, left: float, top: float, width: float, height: float) -> Any:
        """Returns new axes."""
        size = (width / WIDTH_IN, height / self.height_in)
        bottom = 1 - (top + height) / self.height_in
        with rc_context(STYLE):
            return self.figure.add_axes((left / WIDTH_IN, bottom, *size))

    def text(self, left: float, top: float, what: str, **style: Any) -> None:
        """Writes; the place is that of the line's middle."""
        style.setdefault("va", "center")
        self.figure.text(left / WIDTH_IN, 1 - top / self.height_in, what, **style)

    def legend(self, handles: Mapping[str, Any]) -> None:
        """Names what is drawn, in one line below the title."""
        self.figure.legend(
            handles.values(),
            handles.keys(),
            loc="upper left",
            bbox_to_anchor=(MARGIN_IN / WIDTH_IN, 1 - 0.47 / self.height_in),
            ncols=max(1, len(handles)),
            frameon=False,
            fontsize=NOTE_SIZE,
            handletextpad=0.4,
            columnspacing=1.2,
            borderaxespad=0,
            borderpad=0,
        )

    def note_absent(self, whos: Sequence[str]) -> None:
        """Says in the last line who is not shown; nothing where all are."""
        if whos:
            text = "Not shown: " + "; ".join(whos)
            self.text(MARGIN_IN, self.height_in - 0.15, text, size=NOTE_SIZE, color=QUIET)

    def save(self, path: Path) -> None:
        """Writes a PNG of few colours, which is small: the same bytes for the same picture."""
        with rc_context(STYLE):
            self._agg.draw()
        picture = Image.frombytes("RGBA", self._agg.get_width_height(), self._agg.buffer_rgba())
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
