"""What a partition has lost, as far as a reader or the scrub has noticed.

A range is told once, and forgotten when its bytes are good again, or gone by retention.
Nothing of it is kept over a restart: whoever comes by finds it again.
"""

from collections.abc import Sequence

import structlog

from logbroker.record.offset_ranges import OffsetRanges
from logbroker.record.partition_id import PartitionId

log = structlog.get_logger(__name__)


class KnownDamage:
    """Of one partition: offsets, as half-open ranges; those that touch are one."""

    def __init__(self, partition: PartitionId) -> None:
        self._ranges = OffsetRanges()
        self._names = {"topic": partition.topic, "partition": partition.partition}

    def report(self, first: int, end: int) -> None:
        """Tells of a range, unless all of it is known."""
        if first < end and not self._ranges.holds(first, end):
            self._ranges.add(first, end)
            log.error("data lost", offset=first, next_offset=end, **self._names)

    def replace(self, first: int, end: int, found: Sequence[tuple[int, int]]) -> None:
        """Takes `found` for all that is lost from `first` to `end`; tells what is new of it."""
        mended = OffsetRanges(self._ranges.within(first, end))
        for each in found:
            self.report(*each)
            mended.remove(*each)
        for good_first, good_end in mended.ranges():
            self._ranges.remove(good_first, good_end)
            log.info("damage gone", offset=good_first, next_offset=good_end, **self._names)

    def ranges(self, log_start_offset: int) -> tuple[tuple[int, int], ...]:
        """Returns what is known, from the log start offset on."""
        if self._ranges:
            self._ranges.drop_below(log_start_offset)
        return tuple(self._ranges.ranges())
