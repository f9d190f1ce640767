"""How often each unsettled record was delivered to its group. Pure.

`begun` is what was delivered once at least
`again` counts the deliveries of an offset beyond the first: few have any
"""

from collections.abc import Iterable, Sequence

from logbroker.group.offset_counts import CountedRun, OffsetCounts
from logbroker.record.offset_ranges import OffsetRanges, Range

TIDY_FROM = 64
"""Fewer runs than this are not worth tidying."""


class Deliveries:
    """Grows by `add`; what is settled may be forgotten, and may be remembered."""

    __slots__ = ("_tidy_from", "again", "begun")

    def __init__(self, runs: Iterable[tuple[int, int, int]] = ()) -> None:
        told = list(runs)
        self.begun = OffsetRanges([(first, end) for first, end, _ in told])
        self.again = OffsetCounts((first, end, n - 1) for first, end, n in told if n > 1)
        self._tidy_from = TIDY_FROM

    def add(self, ranges: Sequence[Range]) -> None:
        """Takes note that the ranges are delivered once more."""
        for first, end in self.begun.add_all(ranges):
            self.again.add(first, end)

    def at(self, offset: int) -> int:
        """Returns how often this record was delivered."""
        return 1 + self.again.at(offset) if offset in self.begun else 0

    def runs(self, first: int, end: int) -> list[CountedRun]:
        """Returns how often the records from `first` up to `end` were delivered, zeros too."""
        found: list[CountedRun] = []
        for start, stop in self.begun.within(first, end):
            if first < start:
                found.append(CountedRun(first, start, 0))
            found += [CountedRun(low, high, 1 + n) for low, high, n in self.again.runs(start, stop)]
            first = stop
        if first < end:
            found.append(CountedRun(first, end, 0))
        return found

    def told(self, first: int, end: int, settled: OffsetRanges) -> list[CountedRun]:
        """Returns how often the records were delivered that are not settled, without zeros."""
        begun, found = self.begun.copy(), list[CountedRun]()
        begun.remove_all(settled.ranges())
        for start, stop in begun.within(first, end):
            found += self.runs(start, stop)
        return found

    def forget(self, committed: int, settled: OffsetRanges) -> None:
        """Drops what is below the committed offset and, where that is worth it, what is settled."""
        self.begun.drop_below(committed)
        self.again.drop_below(committed)
        if len(self.again) > self._tidy_from:
            self.again = OffsetCounts(
                (start, stop, number)
                for first, end, number in self.again.runs(committed, self.again.end)
                if number
                for start, stop in settled.gaps(first, end)
            )
            self._tidy_from = 2 * len(self.again) + TIDY_FROM

    def __len__(self) -> int:
        return len(self.begun.edges) + len(self.again)
