"""A small number for each offset, kept as runs of equal ones: deliveries, redrives. Pure.

`starts` ascends strictly; `counts[i]` holds from `starts[i]` up to `starts[i + 1]`, neighbours
differ, and the last one is 0. Offsets before the first start have 0 too.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from logbroker.record.offset_ranges import OffsetRanges


class CountedRun(NamedTuple):
    """Offsets side by side that have the same number."""

    first: int
    end: int
    number: int


class OffsetCounts:
    """Counts, of which few differ from their neighbours."""

    __slots__ = ("counts", "starts")

    def __init__(self, runs: Iterable[tuple[int, int, int]] = ()) -> None:
        self.starts: list[int] = []
        self.counts: list[int] = []
        for first, end, count in runs:
            self.add(first, end, count)

    def add(self, first: int, end: int, count: int = 1) -> None:
        """Raises the number of each offset from `first` up to `end` by `count`."""
        start, stop = self._split(first), self._split(end)
        for at in range(start, stop):
            self.counts[at] += count
        self._merge(stop)
        self._merge(start)

    def clear(self, first: int, end: int) -> None:
        """Sets the number of each offset from `first` up to `end` to 0."""
        start, stop = self._split(first), self._split(end)
        for at in range(start, stop):
            self.counts[at] = 0
        for at in range(stop, start - 1, -1):
            self._merge(at)

    def at(self, offset: int) -> int:
        """Returns the number of this offset."""
        at = bisect_right(self.starts, offset)
        return self.counts[at - 1] if at else 0

    def nonzero(self, first: int, end: int) -> OffsetRanges:
        """Returns what from `first` up to `end` has another number than 0."""
        if not self.starts:
            return OffsetRanges()
        return OffsetRanges([(low, high) for low, high, n in self.runs(first, end) if n])

    def runs(self, first: int, end: int) -> list[CountedRun]:
        """Returns the numbers from `first` up to `end`, zeros too."""
        found = []
        at = bisect_right(self.starts, first)
        while first < end:
            stop = min(self.starts[at], end) if at < len(self.starts) else end
            found.append(CountedRun(first, stop, self.counts[at - 1] if at else 0))
            first, at = stop, at + 1
        return found

    def drop_below(self, offset: int) -> None:
        """Forgets the numbers of the offsets below this one."""
        starts = self.starts
        if len(starts) > 1 and starts[1] <= offset:
            at = bisect_right(starts, offset) - 1
            del starts[:at], self.counts[:at]
        if starts and starts[0] < offset:
            starts[0] = offset
        if starts and not self.counts[0]:
            del starts[0], self.counts[0]

    @property
    def end(self) -> int:
        """Returns the offset from which on all numbers are 0."""
        return self.starts[-1] if self.starts else 0

    def __len__(self) -> int:
        return len(self.starts)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, OffsetCounts)
            and self.starts == other.starts
            and self.counts == other.counts
        )

    __hash__ = None  # type: ignore[assignment]  # it changes

    def _split(self, offset: int) -> int:
        at = bisect_left(self.starts, offset)
        if at == len(self.starts) or self.starts[at] != offset:
            self.counts.insert(at, self.counts[at - 1] if at else 0)
            self.starts.insert(at, offset)
        return at

    def _merge(self, at: int) -> None:
        if self.counts[at] == (self.counts[at - 1] if at else 0):
            del self.starts[at], self.counts[at]
