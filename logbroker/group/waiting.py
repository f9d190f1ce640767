"""Records that wait for their back-off. Pure.

Times are rounded up to ticks, so that many that wait share one bucket of ranges, wake
together and cost little: some 50 bytes a record.
"""

from logbroker.group.deadlines import Deadlines
from logbroker.record.offset_ranges import OffsetRanges, Range

TICK_MS = 10


class Waiting:
    """Offsets, and when each is due."""

    def __init__(self) -> None:
        self.offsets = OffsetRanges()
        self._buckets: dict[int, OffsetRanges] = {}
        """By tick."""
        self._ticks = Deadlines()

    def add(self, first: int, end: int, due_ms: int) -> None:
        """Lets the range wait until this time (monotonic)."""
        tick = -(-due_ms // TICK_MS)
        bucket = self._buckets.get(tick)
        if bucket is None:
            bucket = self._buckets[tick] = OffsetRanges()
            self._ticks.set(tick, tick * TICK_MS)
        bucket.add(first, end)
        self.offsets.add(first, end)

    def remove(self, first: int, end: int) -> None:
        """Forgets what of the range waits."""
        if not self.offsets.meets(first, end):
            return
        self.offsets.remove(first, end)
        for tick, bucket in list(self._buckets.items()):
            bucket.remove(first, end)
            if not bucket:
                del self._buckets[tick]
                self._ticks.drop(tick)

    def finish(self, now_ms: int) -> list[Range]:
        """Forgets all that is due, and returns it."""
        found = self.due(now_ms)
        for tick in self._ticks.due(now_ms):
            del self._buckets[tick]
            self._ticks.drop(tick)
        for first, end in found:
            self.offsets.remove(first, end)
        return found

    def due(self, now_ms: int) -> list[Range]:
        """Returns what need not wait any more."""
        found = OffsetRanges()
        for tick in self._ticks.due(now_ms):
            for first, end in self._buckets[tick].ranges():
                found.add(first, end)
        return found.ranges()

    def next_ms(self) -> int | None:
        """Returns when something is due next; None if nothing waits."""
        return self._ticks.next_ms()

    def due_ms(self, offset: int) -> int | None:
        """Returns until when this record waits; None if it does not."""
        return next(
            (tick * TICK_MS for tick, bucket in self._buckets.items() if offset in bucket), None
        )
