"""The files of a partition beside those that are written: its checkpoint, and what may go.

The checkpoint says where the log begins before the segments before that are removed. Where
the disk has no room for it, the last of those files stays, empty, and its name says it.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import structlog

from logbroker.config import LogConfig
from logbroker.errors import ExhaustedError, LogbrokerError
from logbroker.record.partition_id import PartitionId
from logbroker.storage.engine import NeededFrom
from logbroker.storage.file import paths
from logbroker.storage.file.checkpoint import Checkpoint
from logbroker.storage.file.machine import Machine
from logbroker.storage.file.retention import Kept, expired_count, without_needed
from logbroker.storage.file.segment import Segment
from logbroker.storage.file.segments import Segments
from logbroker.storage.high_watermark import HighWatermark

log = structlog.get_logger(__name__)


class LogUpkeep:
    """Of one FilePartitionLog. Whoever calls it holds `lock`."""

    def __init__(
        self,
        machine: Machine,
        directory: Path,
        partition: PartitionId,
        segments: Segments,
        mark: HighWatermark,
        want_flush: Callable[[], object],
        *,
        is_start_saved: bool,
    ) -> None:
        self._disk, _, self._files, self._threads, self._reader = machine
        self._directory = directory
        self._partition = partition
        self._segments = segments
        self._mark = mark
        self._want_flush = want_flush
        self.lock = asyncio.Lock()
        """Held by what changes the checkpoint, or files other than the active segment's."""
        self.is_start_saved = is_start_saved
        """Whether the checkpoint says where the log begins. Not so where the disk was full."""

    async def retain(self, config: LogConfig, now_ms: int, needed_from: NeededFrom) -> None:
        """Removes the segments whose time is over, or which are beyond the size to keep."""
        count = await self._expired_count(config, now_ms, needed_from)
        while count:
            gone = self._segments.first(count)
            if gone[-1] is self._segments.active:
                self._segments.seal()
                self._want_flush()
            start = max(gone[-1].next_offset, self._segments.log_start_offset)
            is_saved = await self._has_saved_start(start)
            if not is_saved and len(self._segments) == count:
                count -= 1  # the last one alone says which offset is the next
                continue
            still = await self._expired_count(config, now_ms, needed_from)
            if still >= count:
                break
            count = still  # meanwhile somebody has come to need some of it
            if is_saved and not count:
                await self.save_checkpoint(self._segments.log_start_offset)
        else:
            return
        self._segments.log_start_offset = start
        self.is_start_saved = is_saved
        size = sum(segment.size_bytes for segment in gone)
        await self.drop_segments()
        if not self.is_start_saved:
            await self.save_start()
        log.info(
            "retention removed segments",
            count=len(gone),
            size_bytes=size,
            log_start_offset=start,
            **self._partition.log_fields(),
        )

    async def _has_saved_start(self, start: int) -> bool:
        """Notes where the log will begin; False where that finds no room. Raises if nothing goes.

        A full disk must not keep retention from making room.
        """
        try:
            await self.save_checkpoint(start)
        except ExhaustedError:
            if len(self._segments) == 1:
                raise
            return False
        return True

    async def save_start(self) -> None:
        """Notes where the log begins, once there is room: or a restart calls the rest lost."""
        try:
            await self.save_checkpoint(self._segments.log_start_offset)
        except ExhaustedError as error:
            log.warning("log start not noted", error=str(error), **self._partition.log_fields())

    def _mark_start(self, segment: Segment, start: int) -> None:
        """Makes a file that goes say where the log begins: that needs no room. For a thread."""
        mark = paths.segment_path(self._directory, start, paths.START)
        try:
            segment.rename(mark, self._disk)
            self._disk.sync_directory(self._directory)
            self._disk.empty(mark)
        except LogbrokerError as error:
            log.warning("log start not marked", error=str(error), **self._partition.log_fields())
            with suppress(LogbrokerError):  # or at the next start
                self._disk.unlink(mark)

    async def _expired_count(self, config: LogConfig, now_ms: int, needed_from: NeededFrom) -> int:
        """Returns how many segments may go; none of them has what is not durable yet."""
        if not len(self._segments) or not (config.retention_ms or config.retention_bytes):
            return 0
        if config.retention_ms:
            for segment in self._segments:
                time_ms = await self._last_append_time_ms(segment)
                if time_ms is not None and now_ms - time_ms <= config.retention_ms:
                    break
        kept = [
            Kept(segment.size_bytes, self._known_time_ms(segment), segment.next_offset)
            for segment in self._segments
        ]
        count = expired_count(kept, config, now_ms)
        if count and (offset := needed_from(self._partition)) is not None:
            count = without_needed(count, kept, config, now_ms, offset)
        gone = self._segments.first(count)
        return sum(segment.next_offset <= self._mark.offset for segment in gone)

    async def _last_append_time_ms(self, segment: Segment) -> int | None:
        is_known = (
            segment is self._segments.active or segment.contents or segment.last_append_time_ms
        )
        if not is_known:
            await self._reader.load(segment)
        return self._known_time_ms(segment)

    def _known_time_ms(self, segment: Segment) -> int | None:
        if segment.contents and not segment.contents.is_empty:
            return segment.contents.last_append_time_ms
        return segment.last_append_time_ms

    async def drop_segments(self) -> None:
        """Removes the segments that lie before the log start offset; marks that, if need be."""
        gone = self._segments.take_before_start()
        for segment in gone:  # whoever reads or flushes one knows, before its file is another's
            self._files.remove(segment.file)
            self._reader.drop(segment)
            if segment in self._segments.sealing:
                self._segments.sealing.remove(segment)
        if gone and not self.is_start_saved:
            start = self._segments.log_start_offset
            await self._threads.run(self._mark_start, gone[-1], start)
        for segment in gone:
            await self._threads.run(segment.remove, self._disk)

    async def save_checkpoint(
        self, log_start_offset: int, hints: dict[Path, bytes] | None = None
    ) -> None:
        """Writes the checkpoint durably, and index files beside it."""
        files = {self._directory / paths.CHECKPOINT: self._checkpoint(log_start_offset).encode()}
        await self._threads.run(self._disk.write_files, self._directory, files, hints)
        if not self.is_start_saved:
            self.is_start_saved = True
            await self._threads.run(self._remove_marks)

    def _remove_marks(self) -> None:
        try:
            for name in self._disk.names(self._directory):
                if paths.start_of(name) is not None:
                    self._disk.unlink(self._directory / name)
        except LogbrokerError as error:
            log.warning("log start mark left", error=str(error), **self._partition.log_fields())

    def _checkpoint(self, log_start_offset: int) -> Checkpoint:
        return Checkpoint(
            topic=self._partition.topic,
            topic_id=self._partition.topic_id,
            partition=self._partition.partition,
            log_start_offset=log_start_offset,
            next_offset=max(self._segments.durable_offset, log_start_offset),
            append_time_ms=self._segments.append_time_ms,
        )

    def sealed_files(self) -> dict[Path, bytes]:
        """Returns the index files of what is sealed and synced; from now on they are written."""
        files: dict[Path, bytes] = {}
        for segment in [one for one in self._segments.sealing if not one.file.is_dirty]:
            self._segments.sealing.remove(segment)
            files |= segment.index_files()
            self._reader.keep(segment)
        return files
