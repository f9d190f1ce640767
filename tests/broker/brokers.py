"""A broker without a server, and what tests of it say again and again."""

import asyncio
from contextlib import asynccontextmanager

from logbroker.broker.broker import open_broker
from logbroker.broker.fetch import FetchSpec
from logbroker.config import LimitsConfig, LogConfig
from logbroker.record.batch import Batch
from logbroker.record.columns import Columns, decode_records, encode_batch
from logbroker.record.record import Header
from logbroker.storage.memory import MemoryEngine
from logbroker.testing.clock import ManualClock
from logbroker.topic.topic import TopicSettings

START_MS = ManualClock().now_ms()

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


def numbered(sequence, *values, producer_id=7, producer_epoch=0):
    """Returns the values as a batch of an idempotent producer, as it sends it."""
    return batch_of(
        *(values or [b"x"]),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
    )


async def slow_log(broker):
    """Returns the log of partition 0 of `a`, for instance to decide when it is flushed."""
    return await broker.engine.open(
        broker.get_topic("a").partition(0), broker.get_topic("a").settings
    )


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


async def told_within(broker, member, within_ms):
    """Returns all that a member is told in this time: news, and deliveries or None."""
    told, end_ms = [], broker.clock.monotonic_ms() + within_ms
    while True:
        coming = asyncio.ensure_future(member.next())
        await broker.clock.advance(0)
        while not coming.done() and broker.clock.monotonic_ms() < end_ms:
            await broker.clock.advance(1)
        if not coming.done():
            coming.cancel()
            return told
        told.append(coming.result())


async def next_delivery(broker, member):
    """Returns the next delivery, while the clock goes on as it must."""
    while True:
        coming = asyncio.ensure_future(member.next())
        await broker.clock.advance(0)
        while not coming.done():
            await broker.clock.advance(10)
        _, found = coming.result()
        if found:
            return found
