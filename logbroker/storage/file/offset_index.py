"""Offset to position: where in a segment to begin looking. Sparse, rebuildable. Pure.

an entry names the first offset and the position of one batch
there is an entry for the first batch, and for the first one behind any damage
between entries that follow each other lie INTERVAL_BYTES, or one batch more
"""

from array import array
from bisect import bisect_right

MAGIC = b"LBOI"
INTERVAL_BYTES = 4_096


class OffsetIndex:
    """The entries of one segment, both columns ascending."""

    __slots__ = ("offsets", "positions")

    def __init__(
        self, offsets: "array[int] | None" = None, positions: "array[int] | None" = None
    ) -> None:
        self.offsets = array("q") if offsets is None else offsets
        self.positions = array("q") if positions is None else positions

    def is_due(self, position: int) -> bool:
        """Returns whether the batch at this position should get an entry."""
        return not self.positions or position - self.positions[-1] >= INTERVAL_BYTES

    def add(self, offset: int, position: int) -> None:
        """Adds the entry of a batch behind all that have one."""
        assert not self.offsets or offset > self.offsets[-1]
        self.offsets.append(offset)
        self.positions.append(position)

    def find(self, offset: int) -> tuple[int, int] | None:
        """Returns offset and position of the last entry that is not beyond `offset`."""
        at = bisect_right(self.offsets, offset) - 1
        return (self.offsets[at], self.positions[at]) if at >= 0 else None

    def after(self, offset: int) -> int | None:
        """Returns the first offset behind `offset` that has an entry; None if there is none."""
        at = bisect_right(self.offsets, offset)
        return self.offsets[at] if at < len(self.offsets) else None
