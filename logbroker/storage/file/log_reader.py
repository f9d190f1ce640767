"""Reading one partition: over its segments, around damage, by offset and by time.

Damage is found where somebody reads it: the segment is then scanned once, so that what is
lost, and where it goes on, is known.
"""

import asyncio
from collections.abc import Callable, Iterator

import structlog

from logbroker.errors import OffsetOutOfRangeError
from logbroker.record.batch import Batch
from logbroker.record.columns import first_offset_at
from logbroker.record.offset_ranges import OffsetRanges
from logbroker.record.partition_id import PartitionId
from logbroker.storage import refusals
from logbroker.storage.engine import Bounds, Run
from logbroker.storage.file.contents import Contents
from logbroker.storage.file.damage import KnownDamage
from logbroker.storage.file.disk import Disk
from logbroker.storage.file.flusher import Threads
from logbroker.storage.file.reader import SegmentReader
from logbroker.storage.file.segment import Segment
from logbroker.storage.file.segments import Segments
from logbroker.storage.high_watermark import HighWatermark

log = structlog.get_logger(__name__)

SEARCH_BYTES = 64 << 10
"""How much is read at a time when a timestamp is looked for."""


class Lost(Exception):
    """The offset asked for is damaged or missing, in a range that ends at `next_offset`."""

    def __init__(self, first_offset: int, next_offset: int, *, is_gap: bool = False) -> None:
        super().__init__(first_offset, next_offset)
        self.first_offset = first_offset
        self.next_offset = next_offset
        self.is_gap = is_gap
        """Whether there are no bad bytes: somebody dropped them."""


class LogReader:
    """The two reading verbs of a partition."""

    def __init__(
        self,
        partition: PartitionId,
        segments: Segments,
        mark: HighWatermark,
        reader: SegmentReader,
        disk: Disk,
        threads: Threads,
        upkeep: asyncio.Lock,
        known: KnownDamage,
        check_open: Callable[[], None],
    ) -> None:
        """`upkeep` is held while a segment's contents change; `check_open` raises if it must."""
        self._partition = partition
        self._segments = segments
        self._mark = mark
        self._reader = reader
        self._disk = disk
        self._threads = threads
        self._upkeep = upkeep
        self._known = known
        self._check_open = check_open

    def bounds(self) -> Bounds:
        """Returns the three offsets."""
        segments = self._segments
        return Bounds(segments.log_start_offset, self._mark.offset, segments.next_offset)

    async def read(self, offset: int, max_bytes: int) -> Run:
        """Returns whole batches, from the one that holds `offset`; none at the high watermark.

        Raises DataLossError, with the next good offset, where bytes are damaged or missing.
        """
        try:
            return await self._read(offset, max_bytes)
        except Lost as lost:
            pieces = [lost]
        while (end := pieces[-1].next_offset) < self._mark.offset:
            try:
                await self._read(end, 1)
                break
            except Lost as lost:
                pieces.append(lost)
        bad = OffsetRanges(
            (each.first_offset, each.next_offset) for each in pieces if not each.is_gap
        )
        for first, following in bad.ranges():
            self._known.report(first, following)
        raise refusals.damaged(self._partition, offset, end)

    async def find(self, timestamp_ms: int) -> int | None:
        """Returns the first offset, in log order, of a record that late; None if there is none.

        Damage is passed over: what is lost has no timestamp.
        """
        segments = self._segments
        offset = segments.log_start_offset
        while (offset := max(offset, segments.log_start_offset)) < self._mark.offset:
            segment, end = segments.holding(offset)
            contents = await self._contents(segment) if segment else None
            if segment and segment.file.is_removed:
                self._check_open()
                continue
            if contents and contents.max_timestamp_ms >= timestamp_ms:
                start = contents.times.find(timestamp_ms)
                found = await self._search(max(offset, start or 0), end, timestamp_ms)
                if found is not None:
                    return found
            offset = end
        return None

    async def _search(self, offset: int, end: int, timestamp_ms: int) -> int | None:
        while offset < min(end, self._mark.offset):
            try:
                run = await self._read(offset, SEARCH_BYTES)
            except Lost as lost:
                offset = lost.next_offset
                continue
            except OffsetOutOfRangeError:  # trimmed meanwhile
                offset = max(offset, self._segments.log_start_offset)
                continue
            for batch in _batches(run.batches, self._partition.seed):
                found = first_offset_at(batch, timestamp_ms, self._segments.log_start_offset)
                if found is not None:
                    return found
            offset = run.next_offset
        return None

    async def _read(self, offset: int, max_bytes: int) -> Run:
        min_bytes = 0
        examined: Segment | None = None
        while True:
            self._check_open()
            mark = self._mark.offset
            if not self._segments.log_start_offset <= offset <= mark:
                raise refusals.out_of_range(self._partition, offset, self.bounds())
            if offset == mark:
                return Run(b"", offset)
            segment, end = self._segments.holding(offset)
            if segment is None:
                raise Lost(offset, min(end, mark))
            latest = segment.latest
            if latest and latest.base_offset == offset and latest.next_offset <= mark:
                return Run(latest.data, latest.next_offset)
            if segment.contents is None:
                await self._contents(segment)
                continue
            if segment.lost and (lost := segment.lost_at(offset)):
                raise Lost(lost[0], min(lost[1], mark), is_gap=lost in segment.gaps)
            found = await self._reader.read(segment, offset, mark, max_bytes, min_bytes)
            if isinstance(found, Run):
                return found
            if segment.file.is_removed:
                continue
            if found:
                min_bytes = found
            elif segment is examined:
                raise Lost(offset, min(segment.next_known(offset), mark))
            else:
                await self._examine(segment, offset)
                examined = segment

    async def _contents(self, segment: Segment) -> Contents | None:
        """Returns what is in a segment; None if it is removed meanwhile."""
        if segment.contents is None:
            async with self._upkeep:
                if segment.contents is None and not segment.file.is_removed:
                    await self._reader.load(segment)
        return segment.contents

    async def _examine(self, segment: Segment, offset: int) -> None:
        """Looks for the damage at `offset`: it may be newer than what is known of the segment."""
        async with self._upkeep:
            is_known = segment.lost_at(offset) is not None
            if is_known or segment.file.is_removed or segment.contents is None:
                return
            size, next_offset = segment.size_bytes, segment.next_offset
            scanned = await self._threads.run(segment.examine, self._disk, size)
            segment.take_examined(scanned, size, next_offset)
            log.error("damage found", path=str(segment.file.path), lost=segment.lost)


def _batches(data: bytes | memoryview, seed: int) -> Iterator[Batch]:
    at = 0
    while at < len(data):
        batch = Batch.decode(data, seed, at)
        yield batch
        at += batch.header.size_bytes
