"""The scrub: reads all sealed segments again, now and then, slowly, to find what went bad.

    a pass goes over the partitions by name, and in each over its segments in order
    the next one is due `scrub_interval_ms` after the end of the last, also over restarts
    a pass that a stop interrupts goes on where it was

It runs on the event loop and reads in threads; nothing waits for it.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import structlog

from logbroker.clock import Clock
from logbroker.config import StorageConfig
from logbroker.errors import LogbrokerError
from logbroker.storage.file import paths
from logbroker.storage.file.disk import Disk, lacks_descriptor
from logbroker.storage.file.flusher import Threads
from logbroker.storage.file.log_scrub import LogScrub
from logbroker.storage.file.scrub_note import ScrubNote
from logbroker.storage.file.scrub_pace import ScrubPace
from logbroker.storage.file.segment import Segment

SAVE_EVERY_MS = 60_000
MANY = 256
"""After so many partitions others get their turn, also where there is nothing to read."""

log = structlog.get_logger(__name__)


class Scrubbed(Protocol):
    """What this asks of a partition's log."""

    scrub: LogScrub


class Place(Protocol):
    """Where a partition's log is, once it is opened."""

    @property
    def log(self) -> Scrubbed | None: ...


class Scrub:
    """Of one engine. `segment_count`, `total_bytes` and `failure_count` are since its start."""

    def __init__(
        self,
        config: StorageConfig,
        clock: Clock,
        disk: Disk,
        threads: Threads,
        places: Mapping[tuple[str, int], Place],
    ) -> None:
        self.segment_count = 0
        self.failure_count = 0
        self._config = config
        self._clock = clock
        self._disk = disk
        self._threads = threads
        self._places = places
        self._pace = ScrubPace(clock, max(config.scrub_bytes_per_second, 1))
        self._path = config.data_dir / paths.SCRUB
        self._note = _read_note(disk, self._path)
        self._is_saved = True
        self._saved_ms = clock.monotonic_ms()

    @property
    def total_bytes(self) -> int:
        """How much was read."""
        return self._pace.total_bytes

    @property
    def finished_time_ms(self) -> int:
        """When the last whole pass ended; 0: never."""
        return self._note.finished_time_ms

    async def run(self) -> None:
        """Makes a pass whenever one is due, until it is cancelled."""
        if not self._config.scrub_bytes_per_second:
            return
        while True:
            await self._wait_check()
            if self._note.is_due(self._clock.now_ms(), self._config.scrub_interval_ms):
                await self._pass()

    def save(self) -> None:
        """Keeps how far it has come, without waiting for the disk."""
        if self._is_saved:
            return
        try:
            self._disk.write_files(self._path.parent, {}, hints={self._path: self._note.encode()})
        except LogbrokerError as error:
            log.warning("scrub not noted", reason=error.reason, error=str(error))
        self._is_saved, self._saved_ms = True, self._clock.monotonic_ms()

    async def _wait_check(self) -> None:
        await self._clock.wait_until(self._clock.monotonic_ms() + self._config.check_interval_ms)

    async def _pass(self) -> None:
        begun_count, begun_failures = self.segment_count, self.failure_count
        begin = self._note.topic, self._note.partition
        for number, key in enumerate(sorted(self._places)):
            if number % MANY == 0:
                await asyncio.sleep(0)
            if key >= begin:
                await self._scrub_partition(key, self._note.offset if key == begin else 0)
        self._note = ScrubNote(finished_time_ms=self._clock.now_ms())
        if count := self.segment_count - begun_count:
            failures = self.failure_count - begun_failures
            log.info("scrub finished", segment_count=count, failure_count=failures)
            self._is_saved = False
            await self._threads.run(self.save)

    async def _scrub_partition(self, key: tuple[str, int], offset: int) -> None:
        while (found := self._next(key, offset)) is not None:
            scrub, segment = found
            offset = segment.base_offset + 1
            try:
                is_checked = await scrub.check(segment, self._pace)
            except LogbrokerError as error:
                if lacks_descriptor(error):
                    await self._wait_check()
                    offset = segment.base_offset
                    continue
                self._note_failure(segment.file.path, error)
                continue
            if is_checked:
                self.segment_count += 1
                await self._go_on(key, segment)

    def _next(self, key: tuple[str, int], offset: int) -> tuple[LogScrub, Segment] | None:
        place = self._places.get(key)
        if place is None or place.log is None:
            return None
        scrub = place.log.scrub
        if not offset:
            scrub.check_beginning()
        segment = scrub.next_sealed(offset)
        return (scrub, segment) if segment else None

    def _note_failure(self, path: Path, error: LogbrokerError) -> None:
        self.failure_count += 1
        log.error("segment not readable", path=str(path), reason=error.reason, error=str(error))

    async def _go_on(self, key: tuple[str, int], segment: Segment) -> None:
        topic, partition = key
        self._note = ScrubNote(
            finished_time_ms=self._note.finished_time_ms,
            topic=topic,
            partition=partition,
            offset=segment.base_offset + 1,
        )
        self._is_saved = False
        if self._clock.monotonic_ms() - self._saved_ms >= SAVE_EVERY_MS:
            await self._threads.run(self.save)


def _read_note(disk: Disk, path: Path) -> ScrubNote:
    try:
        return ScrubNote.decode(disk.read_file(path) or b"")
    except LogbrokerError as error:
        log.warning("scrub begins anew", reason=error.reason, error=str(error))
        return ScrubNote()
