"""An engine in memory whose disk takes as long as the test says."""

import asyncio
import dataclasses
from functools import partial

from logbroker.errors import UnavailableError
from logbroker.storage.high_watermark import HighWatermark
from logbroker.storage.memory import MemoryEngine, MemoryPartitionLog


class SlowLog(MemoryPartitionLog):
    """A log whose batches are on disk, and read, only when `flush` is called."""

    def __init__(self, partition, clock):
        super().__init__(partition, clock)
        self._pending = []
        self.failure = ""
        self.on_failure = lambda: None

    def append(self, batch, *, expected_offset=None):
        if self.failure:
            raise UnavailableError(self.failure, "no more writes")
        mark = self._mark
        self._mark = HighWatermark(self.next_offset)
        appended = super().append(batch, expected_offset=expected_offset)
        self._mark = mark
        future = asyncio.get_running_loop().create_future()
        self._pending.append((future, appended.result()))
        return future

    @property
    def next_offset(self):
        return self._pending[-1][1].header.next_offset if self._pending else self._mark.offset

    def bounds(self):
        return super().bounds()._replace(next_offset=self.next_offset)

    def stats(self):
        return dataclasses.replace(super().stats(), failure=self.failure)

    def flush(self, count=1_000):
        """Makes the first of those that wait durable."""
        for _ in range(min(count, len(self._pending))):
            future, stamped = self._pending.pop(0)
            self._mark.advance(stamped.header.next_offset)
            if not future.done():
                future.set_result(stamped)

    def fail(self):
        """Fails the fsync: what waits is of unknown outcome, and nothing is written any more."""
        self.failure = "STORAGE_FAILED"
        self.on_failure()
        for future, _ in self._pending:
            if not future.done():
                future.set_exception(UnavailableError("STORAGE_FAILED", "fsync failed"))


class SlowEngine(MemoryEngine):
    """Its partitions of topics, but not its journals, are slow."""

    async def open(self, partition, config):
        key = partition.topic, partition.partition
        if not partition.topic.startswith("__") and key not in self._logs:
            log = self._logs[key] = SlowLog(partition, self._clock)
            log.on_failure = partial(self.failures.add, partition)
        return await super().open(partition, config)


class PausedLog(SlowLog):
    """A log whose disk is fast until it is paused."""

    is_paused = False

    def append(self, batch, *, expected_offset=None):
        appended = super().append(batch, expected_offset=expected_offset)
        if not self.is_paused:
            self.flush()
        return appended


class PausedEngine(MemoryEngine):
    """Its journal of groups is such a log."""

    async def open(self, partition, config):
        if partition.topic == "__groups" and (partition.topic, 0) not in self._logs:
            self.journal = self._logs[partition.topic, 0] = PausedLog(partition, self._clock)
        return await super().open(partition, config)
