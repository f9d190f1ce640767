"""An engine that keeps everything in memory, for tests. A verified fake.

It passes the same contract as the file engine. It keeps what is not trimmed: there is no
retention, no rolling, and nothing to be durable, so appends are complete at once.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Sequence

from logbroker.clock import Clock
from logbroker.config import LogConfig
from logbroker.errors import LogbrokerError
from logbroker.record.batch import Batch
from logbroker.record.columns import first_offset_at
from logbroker.record.partition_id import PartitionId
from logbroker.storage import refusals
from logbroker.storage.engine import Bounds, EngineStats, LogStats, NeededFrom, Run
from logbroker.storage.failures import Failures
from logbroker.storage.high_watermark import HighWatermark


class MemoryPartitionLog:
    """One partition: its batches in a list."""

    def __init__(self, partition: PartitionId, clock: Clock) -> None:
        self.partition = partition
        self._clock = clock
        self._seed = partition.seed
        self._batches: list[Batch] = []
        self._base_offsets: list[int] = []
        self._log_start_offset = 0
        self._append_time_ms = 0
        self._mark = HighWatermark(0)
        self._refusal: LogbrokerError | None = None

    def append(self, batch: Batch, *, expected_offset: int | None = None) -> asyncio.Future[Batch]:
        """Takes the batch; the awaitable that gives it as stamped is complete."""
        self._check_open()
        next_offset = self._mark.offset
        if expected_offset is not None and expected_offset != next_offset:
            raise refusals.unexpected_offset(self.partition, expected_offset, next_offset)
        self._append_time_ms = max(self._clock.now_ms(), self._append_time_ms)
        stamped = batch.stamped(base_offset=next_offset, append_time_ms=self._append_time_ms)
        self._batches.append(stamped)
        self._base_offsets.append(next_offset)
        self._mark.advance(stamped.header.next_offset)
        appended = asyncio.get_running_loop().create_future()
        appended.set_result(stamped)
        return appended

    async def read(self, offset: int, max_bytes: int) -> Run:
        """Returns whole batches, from the one that holds `offset`; none at the high watermark."""
        self._check_open()
        self._check_bounds(offset)
        if offset == self._mark.offset:
            return Run(b"", offset)
        first = bisect_right(self._base_offsets, offset) - 1
        last, size = first, 0
        while last < len(self._batches):
            size += self._batches[last].header.size_bytes
            if size > max_bytes and last > first:
                break
            last += 1
        found = self._batches[first:last]
        run = b"".join([batch.encode(self._seed) for batch in found])
        return Run(run, found[-1].header.next_offset)

    async def find(self, timestamp_ms: int) -> int | None:
        """Returns the first offset, in log order, of a record that late; None if there is none."""
        self._check_open()
        found = (
            first_offset_at(batch, timestamp_ms, self._log_start_offset) for batch in self._batches
        )
        return next((offset for offset in found if offset is not None), None)

    async def trim(self, offset: int) -> None:
        """Raises the log start offset to `offset`; drops the batches that lie before it whole."""
        self._check_open()
        if offset > self._mark.offset:
            raise refusals.out_of_range(self.partition, offset, self.bounds())
        self._log_start_offset = max(offset, self._log_start_offset)
        while self._batches and self._batches[0].header.next_offset <= self._log_start_offset:
            del self._batches[0], self._base_offsets[0]

    def wait_beyond(self, offset: int) -> asyncio.Future[None]:
        """Returns a future, done once the high watermark is greater than `offset`."""
        return self._mark.wait_beyond(offset)

    def call_beyond(self, offset: int, callback: Callable[[], None]) -> None:
        """Calls back once the high watermark is greater than `offset`, or never will be."""
        self._mark.call_beyond(offset, callback)

    def bounds(self) -> Bounds:
        """Returns the three offsets."""
        self._check_open()
        return Bounds(self._log_start_offset, self._mark.offset, self._mark.offset)

    def stats(self) -> LogStats:
        """Returns what the log tells of itself."""
        size = sum(batch.header.size_bytes for batch in self._batches)
        return LogStats(size_bytes=size, segment_count=1)

    def refuse(self, error: LogbrokerError) -> None:
        """Makes every call from now on, and all that wait, raise this error."""
        self._refusal = error
        self._mark.fail(error)

    def reopened(self) -> "MemoryPartitionLog":
        """Returns a log of the same bytes that refuses nothing."""
        log = MemoryPartitionLog(self.partition, self._clock)
        log._batches, log._base_offsets = self._batches, self._base_offsets
        log._log_start_offset = self._log_start_offset
        log._append_time_ms = self._append_time_ms
        log._mark.advance(self._mark.offset)
        return log

    def _check_open(self) -> None:
        if self._refusal:
            raise self._refusal.again()

    def _check_bounds(self, offset: int) -> None:
        if not self._log_start_offset <= offset <= self._mark.offset:
            raise refusals.out_of_range(self.partition, offset, self.bounds())


class MemoryEngine:
    """Partitions in a dict."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._logs: dict[tuple[str, int], MemoryPartitionLog] = {}
        self._is_closed = False
        self.failures = Failures()

    async def open(self, partition: PartitionId, config: LogConfig) -> MemoryPartitionLog:
        """Returns the partition's log, made if need be. `config` changes nothing here."""
        if self._is_closed:
            raise refusals.closed()
        key = partition.topic, partition.partition
        log = self._logs.get(key)
        if log is None:
            log = self._logs[key] = MemoryPartitionLog(partition, self._clock)
        if log.partition != partition:
            raise refusals.other_incarnation(partition, log.partition.topic_id)
        return log

    def partitions(self) -> Sequence[PartitionId]:
        """Returns what is there."""
        return [log.partition for log in self._logs.values()]

    def keep_needed(self, needed_from: NeededFrom | None) -> None:
        """Does nothing: there is no retention."""

    async def delete(self, partition: PartitionId) -> None:
        """Removes the partition; nothing if there is none of this incarnation."""
        key = partition.topic, partition.partition
        log = self._logs.get(key)
        if log and log.partition == partition:
            log.refuse(refusals.deleted(partition))
            del self._logs[key]

    async def close(self) -> None:
        """Wakes what waits with UnavailableError; `reopened` still has the bytes."""
        self._is_closed = True
        for log in self._logs.values():
            log.refuse(refusals.closed())

    def reopened(self) -> "MemoryEngine":
        """Returns an engine over the same partitions, as a restart would find them."""
        engine = MemoryEngine(self._clock)
        engine._logs = {key: log.reopened() for key, log in self._logs.items()}
        return engine

    def stats(self) -> EngineStats:
        """Returns what the engine tells of itself: there are no files."""
        return EngineStats()
