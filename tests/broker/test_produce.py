"""What is refused, what is stored, and when an answer is given."""

import asyncio
import gzip
from dataclasses import replace

import pytest
from crc32c import crc32c
from slow_engine import SlowEngine

from logbroker.broker.produce import DUPLICATE_CHECK_MS
from logbroker.config import Durability
from logbroker.errors import (
    InvalidError,
    LogbrokerError,
    NotFoundError,
    PreconditionError,
    UnavailableError,
)
from logbroker.limits import RECORDS_PER_BATCH
from logbroker.record.batch import Batch
from logbroker.record.compression import Codec
from logbroker.record.receipt import Receipt
from logbroker.record.record import Header
from logbroker.testing.clock import ManualClock
from logbroker.topic.topic import TopicSettings
from logbroker.v1.records_pb2 import Records

from .brokers import (
    SMALL,
    START_MS,
    batch_of,
    broker_on,
    numbered,
    records_of,
    slow_log,
    topic_on,
    values_of,
)


def changed(batch, **fields):
    return Batch(batch.header._replace(**fields), batch.records)


def raw(records, count=1, codec=Codec.NONE, **fields):
    """Returns a batch of a Records message, or of bytes, as a producer of any kind sends it."""
    data = records if isinstance(records, bytes) else records.SerializeToString()
    return changed(Batch.unstamped(data, record_count=count, codec=codec), **fields)


def bomb(codec):
    """Returns 16 MiB of one record in a few kilobytes."""
    return batch_of(bytes(16 << 20), codec=codec)


GOOD = batch_of(b"x")

BAD = {
    "a wrong checksum": (changed(GOOD, records_crc=GOOD.header.records_crc ^ 1), "BAD_BATCH"),
    "a changed record": (Batch(GOOD.header, GOOD.records[:-1] + b"y"), "BAD_BATCH"),
    "a count too large": (changed(GOOD, record_count=2, offset_span=2), "BAD_BATCH"),
    "a count too small": (
        changed(batch_of(b"x", b"y"), record_count=1, offset_span=1),
        "BAD_BATCH",
    ),
    "no records": (raw(b"", count=0), "BAD_BATCH"),
    "more records than a batch may have": (
        changed(GOOD, record_count=RECORDS_PER_BATCH + 1, offset_span=RECORDS_PER_BATCH + 1),
        "BAD_BATCH",
    ),
    "a span that is not the count": (changed(GOOD, offset_span=5), "BAD_BATCH"),
    "a negative producer id": (changed(GOOD, producer_id=-1), "INVALID_ARGUMENT"),
    "an unknown codec": (changed(GOOD, attributes=3), "BAD_BATCH"),
    "an attribute that means nothing yet": (changed(GOOD, attributes=8), "BAD_BATCH"),
    "records that are no message": (raw(b"\xff\xff\xff"), "BAD_BATCH"),
    "records that are not gzip": (raw(b"plain", codec=Codec.GZIP), "BAD_BATCH"),
    "records that are not zstd": (raw(b"plain", codec=Codec.ZSTD), "BAD_BATCH"),
    "a cut gzip member": (raw(gzip.compress(b"\x0a\x01x")[:-1], codec=Codec.GZIP), "BAD_BATCH"),
    "a time that is not the greatest": (
        raw(Records(values=[b"x"], timestamps_ms=[7]), max_timestamp_ms=8),
        "BAD_BATCH",
    ),
    "keys for some": (raw(Records(values=[b"1", b"2"], keys=[b"k"]), 2), "BAD_BATCH"),
    "times for some": (raw(Records(values=[b"1", b"2"], timestamps_ms=[0]), 2), "BAD_BATCH"),
    "a null that is not empty": (raw(Records(values=[b"1"], null_values=[0])), "BAD_BATCH"),
    "a null of no record": (raw(Records(values=[b""], null_values=[1])), "BAD_BATCH"),
    "offsets of its own": (raw(Records(values=[b"1"], offset_deltas=[0])), "BAD_BATCH"),
    "a record over the limit": (batch_of(b"x" * 1_001), "RECORD_TOO_LARGE"),
    "a record over the limit by its key": (batch_of(b"x" * 1_000, keys=[b"k"]), "RECORD_TOO_LARGE"),
    "a batch over the limit": (batch_of(*[b"x" * 500] * 140), "BATCH_TOO_LARGE"),
    "a batch over the limit when decompressed": (
        batch_of(*[b"x" * 500] * 140, codec=Codec.GZIP),
        "BATCH_TOO_LARGE",
    ),
    "a gzip bomb": (bomb(Codec.GZIP), "BATCH_TOO_LARGE"),
    "a zstd bomb": (bomb(Codec.ZSTD), "BATCH_TOO_LARGE"),
    "too many headers": (batch_of(b"x", headers=[("h", b"")] * 4), "TOO_MANY_HEADERS"),
    "a header over the limit": (batch_of(b"x", headers=[("h", b"v" * 100)]), "HEADER_TOO_LARGE"),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_batch_is_refused_and_changes_nothing(name):
    batch, reason = BAD[name]
    batch = changed(batch, producer_id=batch.header.producer_id or 77)
    async with topic_on(limits=SMALL) as broker:
        await broker.produce("a", "", 0, GOOD)
        before = broker.stats(), broker.partition_statuses(broker.get_topic("a"))
        with pytest.raises(InvalidError) as raised:
            broker.produce("a", "", 0, batch)
        assert raised.value.reason == reason
        assert (broker.stats(), broker.partition_statuses(broker.get_topic("a"))) == before
        receipt = await broker.produce("a", "", 0, changed(GOOD, producer_id=77))
        assert (receipt.base_offset, receipt.duplicate) == (1, False), "no sequence was taken"


@pytest.mark.parametrize(
    "topic, topic_id, partition, expected, reason",
    [
        ("b", "", 0, None, "TOPIC_NOT_FOUND"),
        ("../b", "", 0, None, "INVALID_NAME"),
        ("__topics", "", 0, None, "INVALID_NAME"),
        ("a", "other", 0, None, "TOPIC_RECREATED"),
        ("a", "", 1, None, "PARTITION_NOT_FOUND"),
        ("a", "", -1, None, "PARTITION_NOT_FOUND"),
        ("a", "", 0, -1, "INVALID_OFFSET"),
        ("a", "", 0, 0, "UNEXPECTED_OFFSET"),
        ("a", "", 0, 2, "UNEXPECTED_OFFSET"),
    ],
)
async def test_a_bad_place_is_refused_and_changes_nothing(
    topic, topic_id, partition, expected, reason
):
    async with topic_on() as broker:
        await broker.produce("a", "", 0, GOOD)
        before = broker.stats()
        with pytest.raises(LogbrokerError) as raised:
            broker.produce(topic, topic_id, partition, changed(GOOD, producer_id=7), expected)
        assert raised.value.reason == reason
        assert broker.stats() == before
        receipt = await broker.produce("a", "", 0, changed(GOOD, producer_id=7), 1)
        assert (receipt.base_offset, receipt.duplicate) == (1, False)


async def test_an_unexpected_offset_names_the_next():
    async with topic_on() as broker:
        with pytest.raises(PreconditionError) as raised:
            broker.produce("a", "", 0, GOOD, 4)
        assert raised.value.details["next_offset"] == "0"


async def test_values_at_the_limit_are_stored():
    async with topic_on(limits=SMALL) as broker:
        for batch in (
            batch_of(b"x" * 1_000),
            batch_of(b"x" * 999, keys=[b"k"]),
            batch_of(*[b"x" * 990] * 60, b"x" * 1_000),
            batch_of(b"x", headers=[("h", b"v" * 99)] * 3),
            batch_of(*[b"x" * 990] * 60, codec=Codec.ZSTD),
        ):
            await broker.produce("a", "", 0, batch)


async def test_a_receipt_says_where_and_how_well():
    clock = ManualClock()
    async with broker_on(clock=clock) as broker:
        settings = TopicSettings(durability=Durability.WRITTEN)
        topic = await broker.create_topic("a", 2, settings)
        await broker.produce("a", "", 1, batch_of(b"1", b"2"))
        receipt = await broker.produce("a", topic.topic_id, 1, batch_of(b"3"))
        assert receipt == Receipt("a", topic.topic_id, 1, 2, 1, START_MS, Durability.WRITTEN)


async def test_records_come_back_as_they_were_produced():
    async with topic_on() as broker:
        headers = [("k", b"1"), ("k", b"2"), ("K", b""), ("пример", None)]
        batch = batch_of(None, b"", b"\xff", keys=[b"", None, b"k"], headers=headers)
        await broker.produce("a", "", 0, batch)
        one, two, three = await records_of(broker)
        assert (one.key, one.value, one.headers) == (b"", None, tuple(Header(*h) for h in headers))
        assert (two.key, two.value) == (None, b"")
        assert (three.offset, three.key, three.value) == (2, b"k", b"\xff")


async def test_an_answer_waits_until_the_batch_is_durable():
    async with topic_on(SlowEngine(ManualClock())) as broker:
        log = await slow_log(broker)
        receipts = [broker.produce("a", "", 0, batch_of(value)) for value in (b"1", b"2")]
        await asyncio.sleep(0)
        assert not any(receipt.done() for receipt in receipts)
        assert await values_of(broker) == [], "and nobody reads it"
        log.flush(1)
        assert (await receipts[0]).base_offset == 0
        assert not receipts[1].done()
        log.flush()
        assert (await receipts[1]).base_offset == 1


async def test_a_duplicate_waits_until_the_first_is_durable():
    async with topic_on(SlowEngine(ManualClock())) as broker:
        log = await slow_log(broker)
        first = broker.produce("a", "", 0, numbered(0, b"1", b"2"))
        again = broker.produce("a", "", 0, numbered(0, b"1", b"2"))
        await broker.clock.advance(5 * DUPLICATE_CHECK_MS)
        assert (first.done(), again.done()) == (False, False)
        log.flush()
        assert await again == (await first)._replace(duplicate=True)


async def test_a_duplicate_of_a_batch_that_failed_is_of_unknown_outcome_too():
    async with topic_on(SlowEngine(ManualClock())) as broker:
        log = await slow_log(broker)
        first = broker.produce("a", "", 0, numbered(0))
        again = broker.produce("a", "", 0, numbered(0))
        log.fail()
        await broker.clock.advance(DUPLICATE_CHECK_MS)
        for receipt in (first, again):
            with pytest.raises(UnavailableError) as raised:
                await receipt
            assert raised.value.reason == "STORAGE_FAILED"
        assert broker.stats().failed_partition_count == 1


async def test_a_duplicate_of_a_batch_whose_topic_is_deleted_is_told_so():
    async with topic_on(SlowEngine(ManualClock())) as broker:
        broker.produce("a", "", 0, numbered(0))
        again = broker.produce("a", "", 0, numbered(0))
        await asyncio.sleep(0)
        await broker.delete_topic("a", "")
        with pytest.raises(NotFoundError):
            await again


async def test_a_caller_who_gives_up_does_not_undo_the_append():
    async with topic_on(SlowEngine(ManualClock())) as broker:
        log = await slow_log(broker)
        broker.produce("a", "", 0, batch_of(b"1")).future.cancel()
        second = broker.produce("a", "", 0, batch_of(b"2"))
        log.flush()
        assert (await second).base_offset == 1
        assert await values_of(broker) == [b"1", b"2"]


async def test_the_crc_of_an_empty_batch_is_checked_too():
    empty = Batch.unstamped(b"\x0a\x00", record_count=1)
    assert empty.header.records_crc == crc32c(b"\x0a\x00")
    async with topic_on() as broker:
        await broker.produce("a", "", 0, empty)
        assert await values_of(broker) == [b""]


def test_limits_of_the_tests_are_the_least_that_belong_together():
    with pytest.raises(InvalidError):
        replace(SMALL, batch_bytes=SMALL.batch_bytes - 1)
