"""Offset to position: where in a segment to begin looking. Sparse, rebuildable. Pure.

an entry names the first offset and the position of one batch
there is an entry for the first batch, and for the first one behind any damage
between entries that follow each other lie INTERVAL_BYTES, or one batch more
batches behind the last entry are recalled one by one, in memory only: readers that keep up
with a log of small batches begin where they want to, and walk over none
"""

from array import array
from bisect import bisect_right

MAGIC = b"LBOI"
INTERVAL_BYTES = 4_096


class OffsetIndex:
    """The entries of one segment, both columns ascending."""

    __slots__ = ("_recent_offsets", "_recent_positions", "offsets", "positions")

    def __init__(
        self, offsets: "array[int] | None" = None, positions: "array[int] | None" = None
    ) -> None:
        self.offsets = array("q") if offsets is None else offsets
        self.positions = array("q") if positions is None else positions
        self._recent_offsets: list[int] = []
        self._recent_positions: list[int] = []

    def is_due(self, position: int) -> bool:
        """Returns whether the batch at this position should get an entry."""
        return not self.positions or position - self.positions[-1] >= INTERVAL_BYTES

    def add(self, offset: int, position: int) -> None:
        """Adds the entry of a batch behind all that have one."""
        assert not self.offsets or offset > self.offsets[-1]
        self.offsets.append(offset)
        self.positions.append(position)
        if self._recent_offsets:
            self._recent_offsets, self._recent_positions = [], []

    def recall(self, offset: int, position: int) -> None:
        """Takes note of a batch that gets no entry: less than INTERVAL_BYTES behind the last."""
        self._recent_offsets.append(offset)
        self._recent_positions.append(position)

    def find(self, offset: int) -> tuple[int, int] | None:
        """Returns first offset and position of the last batch known that begins by `offset`."""
        recent = self._recent_offsets
        if recent and offset >= recent[0]:
            at = bisect_right(recent, offset) - 1
            return recent[at], self._recent_positions[at]
        at = bisect_right(self.offsets, offset) - 1
        return (self.offsets[at], self.positions[at]) if at >= 0 else None

    def after(self, offset: int) -> int | None:
        """Returns the first offset behind `offset` that has an entry; None if there is none."""
        at = bisect_right(self.offsets, offset)
        return self.offsets[at] if at < len(self.offsets) else None
