"""Making durable what is written to a partition: one flush of it at a time.

What is sealed is cut to its size first; new files need their directory synced, too.
"""

from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from logbroker.errors import LogbrokerError
from logbroker.record.partition_id import PartitionId
from logbroker.storage.file.disk import lacks_descriptor
from logbroker.storage.file.flusher import Flusher
from logbroker.storage.file.machine import Machine
from logbroker.storage.file.segment import Segment
from logbroker.storage.file.segments import Segments
from logbroker.storage.high_watermark import HighWatermark

log = structlog.get_logger(__name__)


class LogFlush:
    """Of one FilePartitionLog. Raises the high watermark to where all is durable."""

    def __init__(
        self,
        machine: Machine,
        directory: Path,
        partition: PartitionId,
        segments: Segments,
        mark: HighWatermark,
        *,
        check: Callable[[], None],
        on_failure: Callable[[LogbrokerError], None],
        on_sealed: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        """`check` raises if no flush may be tried; `on_sealed` has what is sealed noted."""
        self._disk, self._clock, self._files, self._threads, _ = machine
        self._directory = directory
        self._partition = partition
        self._segments = segments
        self._mark = mark
        self._check = check
        self._on_failure = on_failure
        self._on_sealed = on_sealed
        self.flusher = Flusher(self._threads, self._flush)
        """Who waits for the next one."""
        self.has_new_names = False
        """Whether there are files that the directory does not durably have."""

    async def _flush(self) -> None:
        """Makes durable what is written now. The flusher calls it, one at a time."""
        self._check()
        target, sealed = self._segments.next_offset, list(self._segments.sealing)
        has_new_names, self.has_new_names = self.has_new_names, False
        try:
            for full in sealed:
                await self._cut_spare(full)
            for segment in (*sealed, self._segments.active):
                if segment:
                    await self.sync(segment)
            if has_new_names:
                await self._sync_names()
        except LogbrokerError as error:
            self._on_failure(error)
            raise
        self._segments.durable_offset = target
        if sealed:
            self._threads.start(self._on_sealed())
        if target > self._mark.offset:
            self._mark.advance(target)

    async def _sync_names(self) -> None:
        while True:
            try:
                await self._threads.sync(self._disk.sync_directory, self._directory)
                return
            except LogbrokerError as error:
                if not (lacks_descriptor(error) and self._files.close_one()):
                    raise

    async def _cut_spare(self, segment: Segment) -> None:
        """Cuts off what lies behind the last batch of a sealed segment.

        In a thread: while an fdatasync of much data runs, this waits for it.
        """
        if not segment.has_spare or segment.file.is_removed:
            return
        truncate = partial(self._disk.truncate, size=segment.size_bytes)
        try:
            with self._files.held(segment.file) as descriptor:
                await self._threads.sync(truncate, descriptor)
        except LogbrokerError as error:
            log.warning("spare room not cut", reason=error.reason, **self._partition.log_fields())
        else:
            segment.note_cut()

    async def sync(self, segment: Segment) -> None:
        """Makes durable what is written to a segment. Raises what its file once failed with."""
        file = segment.file
        if file.failure:
            raise file.failure
        if file.is_dirty and not file.is_removed:
            with self._files.held(file) as descriptor:
                written, begun_ns = file.written, self._clock.monotonic_ns()
                if self.flusher.is_brief:
                    self._disk.sync(descriptor)
                else:
                    await self._threads.sync(self._disk.sync, descriptor)
                self._threads.pace.note(self._clock.monotonic_ns() - begun_ns)
                file.synced = max(file.synced, written)
