"""Running maximum timestamp to offset: where to begin looking for a time. Pure.

    an entry names a batch by its first offset, and the greatest timestamp before it in
    the segment; it exists where the offset index has one

Maxima never fall, so the first batch that reaches a timestamp lies at or behind the last
entry whose maximum is below it.
"""

from array import array
from bisect import bisect_left

MAGIC = b"LBTI"
NO_TIMESTAMP = -(1 << 63)
"""Below every timestamp: the maximum of no records."""


class TimeIndex:
    """The entries of one segment, both columns ascending."""

    __slots__ = ("maxima_ms", "offsets")

    def __init__(
        self, maxima_ms: "array[int] | None" = None, offsets: "array[int] | None" = None
    ) -> None:
        self.maxima_ms = array("q") if maxima_ms is None else maxima_ms
        self.offsets = array("q") if offsets is None else offsets

    def add(self, max_before_ms: int, offset: int) -> None:
        """Adds the entry of a batch behind all that have one."""
        assert not self.offsets or offset > self.offsets[-1]
        assert not self.maxima_ms or max_before_ms >= self.maxima_ms[-1]
        self.maxima_ms.append(max_before_ms)
        self.offsets.append(offset)

    def find(self, timestamp_ms: int) -> int | None:
        """Returns the offset of a batch at or before the first that reaches the timestamp."""
        at = max(bisect_left(self.maxima_ms, timestamp_ms) - 1, 0)
        return self.offsets[at] if self.offsets else None
