"""One partition: segments in order, at most one of them active; the six verbs.

    log_start_offset <= high_watermark <= next_offset
    `synced` readers never see beyond what is on the disk

A write happens at once, on the event loop: the page cache takes it faster than a thread
could be woken. What waits for the disk, fdatasync above all, runs in threads.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

import structlog

from logbroker.config import Durability, LogConfig
from logbroker.errors import ExhaustedError, LogbrokerError, NotFoundError
from logbroker.record.batch import HEADER, Batch, BatchHeader
from logbroker.record.partition_id import PartitionId
from logbroker.storage import refusals
from logbroker.storage.engine import Bounds, LogStats, NeededFrom, Run
from logbroker.storage.file.contents import Contents
from logbroker.storage.file.damage import KnownDamage
from logbroker.storage.file.log_flush import LogFlush
from logbroker.storage.file.log_reader import LogReader
from logbroker.storage.file.log_scrub import LogScrub
from logbroker.storage.file.log_upkeep import LogUpkeep
from logbroker.storage.file.machine import Machine
from logbroker.storage.file.opening import Opened
from logbroker.storage.file.segment import Segment
from logbroker.storage.file.segments import Segments
from logbroker.storage.high_watermark import HighWatermark

log = structlog.get_logger(__name__)


class FilePartitionLog:
    """Made by FileEngine."""

    def __init__(
        self,
        machine: Machine,
        directory: Path,
        partition: PartitionId,
        config: LogConfig,
        opened: Opened,
        on_failure: Callable[[], None],
    ) -> None:
        """`on_failure` is called once it takes no more writes."""
        self.partition = partition
        self.config = config
        self._disk, self._clock, self._files, self._threads, self._reader = machine
        self._directory = directory
        self._seed = partition.seed
        checkpoint = opened.checkpoint
        self._segments = Segments(
            opened.segments,
            log_start_offset=checkpoint.log_start_offset,
            next_offset=checkpoint.next_offset,
            append_time_ms=checkpoint.append_time_ms,
            is_appendable=opened.is_appendable,
        )
        self._mark = HighWatermark(checkpoint.next_offset)
        self._log_flush = LogFlush(
            machine,
            directory,
            partition,
            self._segments,
            self._mark,
            check=self._check_disk,
            on_failure=self._flush_failed,
            on_sealed=self._finish_sealed,
        )
        self._flusher = self._log_flush.flusher
        self._upkeep = LogUpkeep(
            machine,
            directory,
            partition,
            self._segments,
            self._mark,
            self._flusher.want,
            is_start_saved=opened.is_start_saved,
        )
        self._known_damage = KnownDamage(partition)
        self._log_reader = LogReader(
            partition,
            self._segments,
            self._mark,
            self._reader,
            self._disk,
            self._threads,
            self._upkeep.lock,
            self._known_damage,
            self._check_open,
        )
        self.scrub = LogScrub(
            self._segments, self._known_damage, self._disk, self._threads, self._upkeep.lock
        )
        self._flush_timer: asyncio.Task[None] | None = None
        self._is_index_saved = opened.is_index_saved
        self._is_checkpoint_saved = opened.is_checkpoint_saved
        self._torn_bytes = opened.torn_bytes
        self._on_failure = on_failure
        self._failure: LogbrokerError | None = None
        """A failed disk: refuses writes, until the partition is opened again."""
        self._refusal: LogbrokerError | None = None
        """Deleted, or closed: refuses everything."""

    # The six verbs

    def append(self, batch: Batch, *, expected_offset: int | None = None) -> asyncio.Future[Batch]:
        """Writes the batch now; the future gives it as stamped once it is durable."""
        if self._refusal or self._failure:
            self._refuse()
        segments, config, header = self._segments, self.config, batch.header
        next_offset = segments.next_offset
        if expected_offset is not None and expected_offset != next_offset:
            raise refusals.unexpected_offset(self.partition, expected_offset, next_offset)
        append_time_ms = self._clock.now_ms()
        if append_time_ms < segments.append_time_ms:
            append_time_ms = segments.append_time_ms
        segment = segments.active
        size = HEADER.size + header.records_bytes
        if segment is None or not segment.has_room(size, append_time_ms, config):
            segment = self._roll()
        if segment.file.failure:
            self._fail(segment.file.failure)
            self._refuse()
        stamped = Batch(BatchHeader(next_offset, append_time_ms, *header[2:]), batch.records)
        try:
            segment.append(stamped, self._files, self._disk, config)
        except ExhaustedError as error:
            raise refusals.disk_full(self.partition, error) from error
        segments.append_time_ms = append_time_ms
        segments.next_offset = segment.next_offset
        self._is_index_saved = False
        self._flusher.note_write()
        if config.durability is Durability.SYNCED:
            return self._flusher.wait_flushed(stamped)
        self._mark.advance(segment.next_offset)
        if self._flush_timer is None:
            self._flush_timer = self._threads.start(self._flush_later())
        written = asyncio.get_running_loop().create_future()
        written.set_result(stamped)
        return written

    async def read(self, offset: int, max_bytes: int) -> Run:
        """Returns whole batches, from the one that holds `offset`; none at the high watermark."""
        return await self._log_reader.read(offset, max_bytes)

    async def find(self, timestamp_ms: int) -> int | None:
        """Returns the first offset, in log order, of a record that late; None if there is none."""
        self._check_open()
        return await self._log_reader.find(timestamp_ms)

    async def trim(self, offset: int) -> None:
        """Raises the log start offset to `offset`, durably; segments before it go."""
        async with self._upkeep.lock:
            self._check_open()
            if offset > self._mark.offset:
                raise refusals.out_of_range(self.partition, offset, self.bounds())
            if offset > self._segments.log_start_offset:
                await self._upkeep.save_checkpoint(offset)
                self._segments.log_start_offset = offset
                await self._upkeep.drop_segments()

    def wait_beyond(self, offset: int) -> asyncio.Future[None]:
        """Returns a future, done once the high watermark is greater than `offset`."""
        return self._mark.wait_beyond(offset)

    def call_beyond(self, offset: int, callback: Callable[[], None]) -> None:
        """Calls back once the high watermark is greater than `offset`, or never will be."""
        self._mark.call_beyond(offset, callback)

    def bounds(self) -> Bounds:
        """Returns the three offsets."""
        if self._refusal:
            raise self._refusal.again()
        segments = self._segments
        return Bounds(segments.log_start_offset, self._mark.offset, segments.next_offset)

    def stats(self) -> LogStats:
        """Returns what the log tells of itself."""
        return LogStats(
            size_bytes=self._segments.size_bytes,
            segment_count=len(self._segments),
            damaged=self.damaged,
            torn_bytes=self._torn_bytes,
            failure=self._failure.reason if self._failure else "",
        )

    # What the engine asks of it

    @property
    def damaged(self) -> tuple[tuple[int, int], ...]:
        """Offsets that are lost, as far as anyone has noticed, as half-open ranges."""
        return self._known_damage.ranges(self._segments.log_start_offset)

    async def keep_house(self, needed_from: NeededFrom | None) -> None:
        """Seals the active segment if it is old; applies retention, once it is known what stays."""
        async with self._upkeep.lock:
            if self._refusal or self._failure:
                return
            now_ms = self._clock.now_ms()
            active = self._segments.active
            if active and active.is_old(now_ms, self.config):
                self._segments.seal()
                self._flusher.want()
            if not self._upkeep.is_start_saved:
                await self._upkeep.save_start()
            if needed_from:
                await self._upkeep.retain(self.config, now_ms, needed_from)

    async def delete(self) -> None:
        """Makes every call, and all that wait, fail from now on; touches no file any more."""
        async with self._upkeep.lock:
            self._stop(refusals.deleted(self.partition))
            for segment in self._segments:
                self._files.remove(segment.file)

    async def close(self) -> bool:
        """Makes all durable. Returns whether the next start needs to scan nothing."""
        self._stop(refusals.closed(), is_flushed=True)
        await self._flusher.want()
        async with self._upkeep.lock:
            is_clean = not self._failure
            if is_clean:
                try:
                    await self._save_all()
                except LogbrokerError as error:
                    log.warning(
                        "partition not closed cleanly",
                        reason=error.reason,
                        error=str(error),
                        **self.partition.log_fields(),
                    )
                    is_clean = False
            for segment in self._segments:
                self._files.remove(segment.file)
        return is_clean

    # Writing

    def _refuse(self) -> None:
        error = self._refusal or self._failure
        assert error
        raise error.again()

    def _roll(self) -> Segment:
        """Returns a new active segment, which begins at the next offset."""
        if self._segments.active:
            self._segments.seal()
        segment = Segment(self._directory, self._segments.next_offset, self._seed)
        segment.contents = Contents(segment.base_offset)
        self._files.descriptor(segment.file, create=True)
        self._log_flush.has_new_names = True
        self._segments.begin(segment)
        return segment

    async def _flush_later(self) -> None:
        await self._clock.wait_until(self._clock.monotonic_ms() + self.config.flush_interval_ms)
        self._flush_timer = None
        self._flusher.want()

    async def _finish_sealed(self) -> None:
        """Saves what sealed segments leave behind. If it cannot, a restart makes up for it."""
        async with self._upkeep.lock:
            if self._refusal or self._failure or not self._segments.sealing:
                return
            try:
                start, upkeep = self._segments.log_start_offset, self._upkeep
                await upkeep.save_checkpoint(start, upkeep.sealed_files())
            except LogbrokerError as error:
                log.warning(
                    "sealed segments not noted", error=str(error), **self.partition.log_fields()
                )

    def _flush_failed(self, error: LogbrokerError) -> None:
        if not isinstance(self._refusal, NotFoundError):  # deleted meanwhile
            self._fail(error)

    def _fail(self, error: LogbrokerError) -> None:
        if not self._failure:
            self._failure = refusals.storage_failed(self.partition, error)
            log.error(
                "storage failed", error=str(error), **error.details, **self.partition.log_fields()
            )
            self._flusher.fail(self._failure)
            self._on_failure()

    # The end

    def _stop(self, error: LogbrokerError, *, is_flushed: bool = False) -> None:
        self._refusal = error
        self._mark.fail(error)
        if self._flush_timer:
            self._flush_timer.cancel()
            self._flush_timer = None
        if not is_flushed:
            self._flusher.fail(error)

    async def _save_all(self) -> None:
        """Leaves the directory as a start likes to find it, when all is quiet."""
        hints = self._upkeep.sealed_files()
        if active := self._segments.active:
            active.cut_spare(self._files, self._disk)
            async with self._threads.sync_slot:
                await self._log_flush.sync(active)
            if not self._is_index_saved:
                hints |= active.index_files()
        if hints or not (self._is_checkpoint_saved and self._upkeep.is_start_saved):
            await self._upkeep.save_checkpoint(self._segments.log_start_offset, hints)

    def _check_disk(self) -> None:
        if self._failure:
            raise self._failure.again()

    def _check_open(self) -> None:
        if self._refusal:
            raise self._refusal.again()
