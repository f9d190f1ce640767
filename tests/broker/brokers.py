"""A broker without a server, and what tests of it say again and again."""

import asyncio
import dataclasses
from contextlib import asynccontextmanager

from logbroker.broker.broker import open_broker
from logbroker.broker.fetch import FetchSpec
from logbroker.config import LimitsConfig, LogConfig
from logbroker.errors import UnavailableError
from logbroker.record.batch import Batch
from logbroker.record.columns import Columns, decode_records, encode_batch
from logbroker.record.record import Header
from logbroker.storage.high_watermark import HighWatermark
from logbroker.storage.memory import MemoryEngine, MemoryPartitionLog
from logbroker.testing.clock import ManualClock
from logbroker.topic.topic import TopicSettings

SMALL = LimitsConfig(
    record_bytes=1_000,
    batch_bytes=66_536,
    header_count=3,
    header_bytes=100,
    connection_bytes=66_536,
    in_flight_bytes=66_536,
)


@asynccontextmanager
async def broker_on(engine=None, clock=None, *, limits=None, defaults=None):
    """Yields a broker in memory; its engine, to restart it from, is `broker.engine`."""
    clock = clock or ManualClock()
    engine = engine or MemoryEngine(clock)
    async with open_broker(
        engine, clock, defaults=defaults or LogConfig(), limits=limits or LimitsConfig()
    ) as broker:
        broker.engine, broker.clock = engine, clock
        yield broker


@asynccontextmanager
async def topic_on(*args, partition_count=1, **kwargs):
    """Yields a broker with the topic `a`."""
    async with broker_on(*args, **kwargs) as broker:
        await broker.create_topic("a", partition_count, TopicSettings())
        yield broker


def batch_of(*values, keys=None, headers=(), **of_batch):
    """Returns the values as a batch; `headers` are of its first record."""
    rows = [(0, [Header(name, value) for name, value in headers])] if headers else ()
    columns = Columns(list(values), keys, None, rows)
    return encode_batch(columns, **{"now_ms": 5, **of_batch})


async def fetched(broker, topic="a", partition=0, **spec):
    """Returns all responses of a fetch that ends."""
    found = broker.fetch(FetchSpec(topic=topic, partition=partition, **spec))
    return [response async for response in found]


def batches_in(broker, responses, topic="a", partition=0):
    """Returns the batches of responses."""
    seed = broker.get_topic(topic).partition(partition).seed
    batches = []
    for response in responses:
        at = 0
        while at < len(response.batches):
            batches.append(Batch.decode(response.batches, seed, at))
            at += batches[-1].header.size_bytes
    return batches


async def records_of(broker, topic="a", partition=0, **spec):
    """Returns the records a fetch gives."""
    responses = await fetched(broker, topic, partition, **spec)
    batches = batches_in(broker, responses, topic, partition)
    return [record for batch in batches for record in decode_records(batch, partition)]


async def values_of(broker, topic="a", partition=0, **spec):
    """Returns the values of the records a fetch gives."""
    return [record.value for record in await records_of(broker, topic, partition, **spec)]


class SlowLog(MemoryPartitionLog):
    """A log whose batches are on disk, and read, only when `flush` is called."""

    def __init__(self, partition, clock):
        super().__init__(partition, clock)
        self._pending = []
        self.failure = ""

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
        for future, _ in self._pending:
            if not future.done():
                future.set_exception(UnavailableError("STORAGE_FAILED", "fsync failed"))


class SlowEngine(MemoryEngine):
    """Its partitions of topics, but not its journals, are slow."""

    async def open(self, partition, config):
        key = partition.topic, partition.partition
        if not partition.topic.startswith("__") and key not in self._logs:
            self._logs[key] = SlowLog(partition, self._clock)
        return await super().open(partition, config)
