"""An engine in memory whose disk is as slow as the test says, and forgets what it has not got.

What is appended can be read, and is answered, once `flush` has taken it. `crash` ends the
broker: what was not flushed is gone, or there in part, as after a loss of power.
"""

from random import Random

from logbroker.storage import refusals
from logbroker.storage.memory import MemoryEngine
from tests.slow_engine import SlowLog


class ForgetfulLog(SlowLog):
    """A log that gives nothing which is not flushed."""

    @property
    def pending_count(self):
        """How many batches are not flushed."""
        return len(self._pending)

    async def read(self, offset, max_bytes):
        whole = self._batches
        end = self._mark.offset
        self._batches = [batch for batch in whole if batch.header.next_offset <= end]
        try:
            return await super().read(offset, max_bytes)
        finally:
            self._batches = whole

    def die(self, error):
        """Refuses everything from now on; what waits will never know."""
        for future, _ in self._pending:
            if not future.done():
                future.set_exception(error.again())
                future.exception()  # its owner may be gone, too
        self._pending.clear()
        self.refuse(error)

    def survivor(self, random: Random):
        """Returns the log as it is found after a crash."""
        ends = [self._mark.offset, *(stamped.header.next_offset for _, stamped in self._pending)]
        end = random.choice(ends)
        log = ForgetfulLog(self.partition, self._clock)
        log._batches = [batch for batch in self._batches if batch.header.next_offset <= end]
        log._base_offsets = self._base_offsets[: len(log._batches)]
        log._log_start_offset = self._log_start_offset
        log._append_time_ms = self._append_time_ms
        log._mark.advance(end)
        return log


class ForgetfulEngine(MemoryEngine):
    """All of its partitions are such logs, the journals too."""

    async def open(self, partition, config):
        key = partition.topic, partition.partition
        if key not in self._logs:
            self._logs[key] = ForgetfulLog(partition, self._clock)
        return await super().open(partition, config)

    @property
    def pending_count(self):
        """How many batches are not flushed."""
        return sum(log.pending_count for log in self._logs.values())

    def flush(self, random: Random | None = None):
        """Flushes what is pending, or, by chance, some of it."""
        for log in list(self._logs.values()):
            if log.pending_count:
                log.flush(random.randint(0, log.pending_count) if random else 1_000)

    def crash(self, random: Random):
        """Ends everything, and returns the engine of the next start."""
        engine = ForgetfulEngine(self._clock)
        engine._logs = {key: log.survivor(random) for key, log in self._logs.items()}
        self._is_closed = True
        for log in self._logs.values():
            log.die(refusals.closed())
        return engine

    def reopened(self):
        """Returns an engine over the same partitions, all of them flushed."""
        self.flush()
        return self.crash(Random(0))
