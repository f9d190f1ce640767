"""The scrub of one partition: its sealed segments, one at a time, against what is known of it.

What is found is known from then on as if a reader had met it, and told once. Index files
that are not what they should be are made anew; the log files are never changed.
"""

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext

import structlog

from logbroker.errors import LogbrokerError
from logbroker.storage.file.damage import KnownDamage
from logbroker.storage.file.disk import Disk
from logbroker.storage.file.flusher import Threads
from logbroker.storage.file.scrub_pace import ScrubPace
from logbroker.storage.file.segment import Segment
from logbroker.storage.file.segment_check import SegmentCheck
from logbroker.storage.file.segments import Segments

log = structlog.get_logger(__name__)


class LogScrub:
    """Of one FilePartitionLog."""

    def __init__(
        self,
        segments: Segments,
        known: KnownDamage,
        disk: Disk,
        threads: Threads,
        upkeep: asyncio.Lock,
    ) -> None:
        """`upkeep` is held for index files, for what is known, and where a file is mapped."""
        self._segments = segments
        self._known = known
        self._disk = disk
        self._threads = threads
        self._upkeep = upkeep

    def next_sealed(self, offset: int) -> Segment | None:
        """Returns the first sealed segment that begins at `offset` or behind it."""
        for segment in self._segments:
            is_sealed = segment is not self._segments.active and not segment.file.is_dirty
            if is_sealed and segment.base_offset >= offset:
                return segment
        return None

    def check_beginning(self) -> None:
        """Tells of offsets that should be there, before the first segment."""
        start = self._segments.log_start_offset
        segment, end = self._segments.holding(start)
        if segment is None:
            self._known.report(start, end)

    async def check(self, segment: Segment, pace: ScrubPace) -> bool:
        """Reads all of a sealed segment; returns False if it was removed meanwhile."""
        check = SegmentCheck(segment, self._disk)
        while check.found is None:
            await pace.wait_turn()
            if segment.file.is_removed:
                return False
            may_go_on: AbstractAsyncContextManager[None] = nullcontext()
            if check.is_last_a_scan:
                may_go_on = self._upkeep
            try:
                async with may_go_on:
                    pace.note(*await self._threads.run(check.step))
            except LogbrokerError:
                if segment.file.is_removed:
                    return False
                raise
        async with self._upkeep:
            if segment.file.is_removed:
                return False
            self._take(segment, check)
            if await self._threads.run(check.index_files_differ):
                await self._threads.run(segment.write_index_files, check.contents, self._disk)
        return True

    def _take(self, segment: Segment, check: SegmentCheck) -> None:
        found, before = check.found, set(segment.lost)
        assert found
        segment.note_scan(found, segment.next_offset)
        if segment.lost and segment.contents:
            segment.contents = check.contents
        if set(segment.lost) - before - segment.gaps:
            log.error("damage found", path=str(segment.file.path), lost=segment.lost)
        bad = [each for each in segment.lost if each not in segment.gaps]
        self._known.replace(segment.base_offset, segment.next_offset, bad)
