"""One partition: segments in order, at most one of them active; the six verbs.

    log_start_offset <= high_watermark <= next_offset
    batches up to durable_offset are on the disk; `synced` readers never see beyond it

A write happens at once, on the event loop: the page cache takes it faster than a thread
could be woken. What waits for the disk, fdatasync above all, runs in threads.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import structlog

from logbroker.clock import Clock
from logbroker.config import Durability, LogConfig
from logbroker.errors import ExhaustedError, LogbrokerError, NotFoundError
from logbroker.record.batch import HEADER, Batch, BatchHeader
from logbroker.record.partition_id import PartitionId
from logbroker.storage import refusals
from logbroker.storage.engine import Bounds, LogStats, NeededFrom, Run
from logbroker.storage.file import paths
from logbroker.storage.file.checkpoint import Checkpoint
from logbroker.storage.file.contents import Contents
from logbroker.storage.file.damage import KnownDamage
from logbroker.storage.file.disk import Disk, lacks_descriptor
from logbroker.storage.file.flusher import Flusher, Threads
from logbroker.storage.file.log_reader import LogReader
from logbroker.storage.file.log_scrub import LogScrub
from logbroker.storage.file.open_files import OpenFiles
from logbroker.storage.file.opening import Opened
from logbroker.storage.file.reader import SegmentReader
from logbroker.storage.file.retention import Kept, expired_count, without_needed
from logbroker.storage.file.segment import Segment
from logbroker.storage.file.segments import Segments
from logbroker.storage.high_watermark import HighWatermark

log = structlog.get_logger(__name__)


class Machine(NamedTuple):
    """What all partitions of an engine share."""

    disk: Disk
    clock: Clock
    files: OpenFiles
    threads: Threads
    reader: SegmentReader


class FilePartitionLog:
    """Made by FileEngine."""

    def __init__(
        self,
        machine: Machine,
        directory: Path,
        partition: PartitionId,
        config: LogConfig,
        opened: Opened,
    ) -> None:
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
            is_appendable=opened.is_appendable,
        )
        self._durable_offset = checkpoint.next_offset
        self._append_time_ms = checkpoint.append_time_ms
        self._mark = HighWatermark(checkpoint.next_offset)
        self._upkeep = asyncio.Lock()
        """Held by what changes the checkpoint, or files other than the active segment's."""
        self._known_damage = KnownDamage(partition)
        self._log_reader = LogReader(
            partition,
            self._segments,
            self._mark,
            self._reader,
            self._disk,
            self._threads,
            self._upkeep,
            self._known_damage,
            self._check_open,
        )
        self.scrub = LogScrub(
            self._segments, self._known_damage, self._disk, self._threads, self._upkeep
        )
        self._flusher = Flusher(self._threads, self._flush)
        self._flush_timer: asyncio.Task[None] | None = None
        self._sealing: list[Segment] = []
        """Sealed, and their index files not written yet."""
        self._has_new_names = False
        self._is_index_saved = opened.is_index_saved
        self._is_checkpoint_saved = opened.is_checkpoint_saved
        self._is_start_saved = True
        """Whether the checkpoint says where the log begins. Not so where the disk was full."""
        self._torn_bytes = opened.torn_bytes
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
        if append_time_ms < self._append_time_ms:
            append_time_ms = self._append_time_ms
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
        self._append_time_ms = append_time_ms
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
        async with self._upkeep:
            self._check_open()
            if offset > self._mark.offset:
                raise refusals.out_of_range(self.partition, offset, self.bounds())
            if offset > self._segments.log_start_offset:
                await self._save_checkpoint(offset)
                self._segments.log_start_offset = offset
                await self._drop_segments()

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

    async def keep_house(self, needed_from: NeededFrom) -> None:
        """Seals the active segment if it is old; applies retention."""
        async with self._upkeep:
            if self._refusal or self._failure:
                return
            now_ms = self._clock.now_ms()
            active = self._segments.active
            if active and active.is_old(now_ms, self.config):
                self._seal()
                self._flusher.want()
            if not self._is_start_saved:
                await self._save_start()
            await self._retain(now_ms, needed_from)

    async def delete(self) -> None:
        """Makes every call, and all that wait, fail from now on; touches no file any more."""
        async with self._upkeep:
            self._stop(refusals.deleted(self.partition))
            for segment in self._segments:
                self._files.remove(segment.file)

    async def close(self) -> bool:
        """Makes all durable. Returns whether the next start needs to scan nothing."""
        self._stop(refusals.closed(), is_flushed=True)
        await self._flusher.want()
        async with self._upkeep:
            is_clean = not self._failure
            if is_clean:
                try:
                    await self._save_all()
                except LogbrokerError as error:
                    log.warning(
                        "partition not closed cleanly",
                        reason=error.reason,
                        error=str(error),
                        **self._names(),
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
            self._seal()
        segment = Segment(self._directory, self._segments.next_offset, self._seed)
        segment.contents = Contents(segment.base_offset)
        self._files.descriptor(segment.file, create=True)
        self._has_new_names = True
        self._segments.begin(segment)
        return segment

    def _seal(self) -> None:
        """Ends the active segment. The next flush cuts it; its indexes are saved after that."""
        segment = self._segments.active
        assert segment
        assert segment.contents
        if segment.has_spare:
            segment.file.written += 1  # until it is cut there is something to flush
        segment.last_append_time_ms = segment.contents.last_append_time_ms
        segment.latest = None
        self._sealing.append(segment)
        self._segments.active = None

    async def _flush_later(self) -> None:
        await self._clock.wait_until(self._clock.monotonic_ms() + self.config.flush_interval_ms)
        self._flush_timer = None
        self._flusher.want()

    async def _flush(self) -> None:
        """Makes durable what is written now. The flusher calls it, one at a time."""
        if self._failure:
            raise self._failure.again()
        target, sealed = self._segments.next_offset, list(self._sealing)
        has_new_names, self._has_new_names = self._has_new_names, False
        try:
            for full in sealed:
                await self._cut_spare(full)
            for segment in (*sealed, self._segments.active):
                if segment:
                    await self._sync(segment)
            if has_new_names:
                await self._sync_names()
        except LogbrokerError as error:
            if not isinstance(self._refusal, NotFoundError):
                self._fail(error)
            raise
        self._durable_offset = target
        if sealed:
            self._threads.start(self._finish_sealed())
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
            log.warning("spare room not cut", reason=error.reason, **self._names())
        else:
            segment.note_cut()

    async def _sync(self, segment: Segment) -> None:
        file = segment.file
        if file.failure:
            raise file.failure
        if file.is_dirty and not file.is_removed:
            with self._files.held(file) as descriptor:
                written, begun_ns = file.written, self._clock.monotonic_ns()
                if self._flusher.is_brief:
                    self._disk.sync(descriptor)
                else:
                    await self._threads.sync(self._disk.sync, descriptor)
                self._threads.pace.note(self._clock.monotonic_ns() - begun_ns)
                file.synced = max(file.synced, written)

    async def _finish_sealed(self) -> None:
        """Saves what sealed segments leave behind. If it cannot, a restart makes up for it."""
        async with self._upkeep:
            if self._refusal or self._failure or not self._sealing:
                return
            try:
                await self._save_checkpoint(self._segments.log_start_offset, self._sealed_files())
            except LogbrokerError as error:
                log.warning("sealed segments not noted", error=str(error), **self._names())

    def _sealed_files(self) -> dict[Path, bytes]:
        """Returns the index files of what is sealed and synced; from now on they are written."""
        files: dict[Path, bytes] = {}
        for segment in [segment for segment in self._sealing if not segment.file.is_dirty]:
            self._sealing.remove(segment)
            files |= segment.index_files()
            self._reader.keep(segment)
        return files

    def _fail(self, error: LogbrokerError) -> None:
        if not self._failure:
            self._failure = refusals.storage_failed(self.partition, error)
            log.error("storage failed", error=str(error), **error.details, **self._names())
            self._flusher.fail(self._failure)

    # Upkeep

    async def _retain(self, now_ms: int, needed_from: NeededFrom) -> None:
        count = await self._expired_count(now_ms, needed_from)
        if not count:
            return
        gone = self._segments.first(count)
        if gone[-1] is self._segments.active:
            self._seal()
            self._flusher.want()
        start = max(gone[-1].next_offset, self._segments.log_start_offset)
        try:
            await self._save_checkpoint(start)
        except ExhaustedError:
            if len(self._segments) == count:
                raise
            self._is_start_saved = False  # a full disk must not keep retention from making room
        self._segments.log_start_offset = start
        size = sum(segment.size_bytes for segment in gone)
        await self._drop_segments()
        if not self._is_start_saved:
            await self._save_start()
        log.info(
            "retention removed segments",
            count=count,
            size_bytes=size,
            log_start_offset=start,
            **self._names(),
        )

    async def _save_start(self) -> None:
        """Notes where the log begins, once there is room: or a restart calls the rest lost."""
        try:
            await self._save_checkpoint(self._segments.log_start_offset)
        except ExhaustedError as error:
            log.warning("log start not noted", error=str(error), **self._names())

    async def _expired_count(self, now_ms: int, needed_from: NeededFrom) -> int:
        """Returns how many segments may go; none of them has what is not durable yet."""
        config = self.config
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
        if count and (offset := needed_from(self.partition)) is not None:
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

    async def _drop_segments(self) -> None:
        """Removes the segments that lie before the log start offset."""
        gone = self._segments.take_before_start()
        for segment in gone:
            self._files.remove(segment.file)
            self._reader.drop(segment)
            if segment in self._sealing:
                self._sealing.remove(segment)
            await self._threads.run(segment.remove, self._disk)

    async def _save_checkpoint(
        self, log_start_offset: int, hints: dict[Path, bytes] | None = None
    ) -> None:
        """Writes the checkpoint durably, and index files beside it."""
        files = {self._directory / paths.CHECKPOINT: self._checkpoint(log_start_offset).encode()}
        await self._threads.run(self._disk.write_files, self._directory, files, hints)
        self._is_start_saved = True

    def _checkpoint(self, log_start_offset: int) -> Checkpoint:
        return Checkpoint(
            topic=self.partition.topic,
            topic_id=self.partition.topic_id,
            partition=self.partition.partition,
            log_start_offset=log_start_offset,
            next_offset=max(self._durable_offset, log_start_offset),
            append_time_ms=self._append_time_ms,
        )

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
        hints = self._sealed_files()
        if active := self._segments.active:
            active.cut_spare(self._files, self._disk)
            async with self._threads.sync_slot:
                await self._sync(active)
            if not self._is_index_saved:
                hints |= active.index_files()
        if hints or not self._is_checkpoint_saved:
            await self._save_checkpoint(self._segments.log_start_offset, hints)

    def _check_open(self) -> None:
        if self._refusal:
            raise self._refusal.again()

    def _names(self) -> dict[str, str | int]:
        return {"topic": self.partition.topic, "partition": self.partition.partition}
