"""Produce: what is refused changes nothing; what is taken is answered when it is true."""

import asyncio
import gzip
import zlib
from dataclasses import replace

import pytest
from crc32c import crc32c
from slow_engine import SlowEngine

from logbroker.broker.produce import DUPLICATE_CHECK_MS, NewRecord
from logbroker.config import Durability, LimitsConfig
from logbroker.errors import (
    ConflictError,
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

from .brokers import SMALL, batch_of, broker_on, records_of, topic_on, values_of

START_MS = ManualClock().now_ms()


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


# Idempotent producers


def numbered(sequence, *values, producer_id=7, producer_epoch=0):
    return batch_of(
        *(values or [b"x"]),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
    )


async def test_a_repeated_batch_is_answered_with_its_first_offset_and_stored_once():
    async with topic_on() as broker:
        first = await broker.produce("a", "", 0, numbered(0, b"1", b"2"))
        await broker.produce("a", "", 0, numbered(2, b"3"))
        again = await broker.produce("a", "", 0, numbered(0, b"1", b"2"))
        assert again == first._replace(duplicate=True)
        assert await values_of(broker) == [b"1", b"2", b"3"]
        assert broker.stats().duplicate_batch_count == 1


async def test_a_repeated_batch_with_an_expected_offset_is_a_duplicate_too():
    async with topic_on() as broker:
        await broker.produce("a", "", 0, numbered(0), 0)
        assert (await broker.produce("a", "", 0, numbered(0), 0)).duplicate


async def test_a_gap_changes_nothing_and_the_producer_goes_on():
    async with topic_on() as broker:
        await broker.produce("a", "", 0, numbered(0, b"1"))
        with pytest.raises(ConflictError) as raised:
            broker.produce("a", "", 0, numbered(2, b"3"))
        assert raised.value.reason == "SEQUENCE_GAP"
        assert raised.value.details["expected_sequence"] == "1"
        for sequence, value in ((1, b"2"), (2, b"3")):
            await broker.produce("a", "", 0, numbered(sequence, value))
        assert await values_of(broker) == [b"1", b"2", b"3"]


async def test_an_unexpected_offset_takes_no_sequence():
    async with topic_on() as broker:
        with pytest.raises(PreconditionError):
            broker.produce("a", "", 0, numbered(0), 5)
        assert not (await broker.produce("a", "", 0, numbered(0))).duplicate


async def test_sequences_are_counted_by_partition():
    async with topic_on(partition_count=2) as broker:
        for partition in (0, 1):
            assert not (await broker.produce("a", "", partition, numbered(0))).duplicate


@pytest.mark.parametrize("is_clean", [True, False])
async def test_duplicates_are_known_after_a_restart(is_clean):
    async with topic_on() as broker:
        first = await broker.produce("a", "", 0, numbered(0, b"1", b"2"))
        killed = broker.engine.reopened()
    engine = broker.engine.reopened() if is_clean else killed
    async with broker_on(engine, broker.clock) as broker:
        assert await broker.produce("a", "", 0, numbered(0, b"1", b"2")) == first._replace(
            duplicate=True
        )
        await broker.produce("a", "", 0, numbered(2, b"3"))
        with pytest.raises(ConflictError):
            broker.produce("a", "", 0, numbered(4))
    async with broker_on(engine.reopened(), broker.clock) as broker:
        assert (await broker.produce("a", "", 0, numbered(2, b"3"))).base_offset == 2


async def test_a_fenced_epoch_stays_fenced_after_a_restart():
    async with topic_on() as broker:
        await broker.produce("a", "", 0, numbered(0))
        await broker.produce("a", "", 0, numbered(0, producer_epoch=1))
    async with broker_on(broker.engine.reopened(), broker.clock) as broker:
        with pytest.raises(ConflictError) as raised:
            broker.produce("a", "", 0, numbered(1))
        assert raised.value.reason == "PRODUCER_FENCED"


async def test_sequences_survive_the_trimming_of_their_batches():
    async with topic_on() as broker:
        await broker.produce("a", "", 0, numbered(0))
        await broker.trim_topic("a", "", 0, 1)
    async with broker_on(broker.engine.reopened(), broker.clock) as broker:
        assert (await broker.produce("a", "", 0, numbered(0))).duplicate
        assert not (await broker.produce("a", "", 0, numbered(1))).duplicate


@pytest.mark.parametrize(
    ("settings", "size", "wait_ms"),
    [
        (TopicSettings(retention_ms=60_000), 1, 45_000),
        (TopicSettings(retention_ms=2_000), 1, 1_500),
        (TopicSettings(retention_bytes=10_000), 6_000, 5_000),
    ],
)
async def test_who_wrote_what_retention_has_removed_is_known_after_a_kill(settings, size, wait_ms):
    clock = ManualClock()
    async with broker_on(clock=clock) as broker:
        topic = await broker.create_topic("a", 1, settings)
        first = await broker.produce("a", "", 0, numbered(0, bytes(size)))
        for _ in range(wait_ms // 100):
            await clock.advance(100)
        log = await broker.engine.open(topic.partition(0), settings)
        await log.trim(1)  # as retention does it: the broker does not hear of it
        killed = broker.engine.reopened()
    async with broker_on(killed, clock) as broker:
        again = await broker.produce("a", "", 0, numbered(0, bytes(size)))
        assert again == first._replace(duplicate=True)


async def test_what_was_not_durable_when_a_table_was_saved_is_saved_later():
    clock = ManualClock()
    async with topic_on(SlowEngine(clock), clock) as broker:
        log = await slow_log(broker)
        receipt = broker.produce("a", "", 0, numbered(0))
        (partition,) = broker._partitions.all()
        await broker._producer_ids.save([partition])
        assert partition.unsaved_bytes == 1, "so much is new, and not as much as before"
        log.flush()
        await receipt
        await broker._producer_ids.save([partition])
        assert not partition.unsaved_bytes


async def test_silent_producers_are_forgotten_in_time_and_busy_ones_are_not():
    limits = LimitsConfig(producer_retention_ms=60_000)
    async with topic_on(limits=limits) as broker:
        await broker.produce("a", "", 0, numbered(0, producer_id=1))
        await broker.clock.advance(40_000)
        await broker.produce("a", "", 0, numbered(0, producer_id=2))
        await broker.clock.advance(40_000)
        with pytest.raises(ConflictError):
            broker.produce("a", "", 0, numbered(1, producer_id=1))
        await broker.produce("a", "", 0, numbered(1, producer_id=2))


async def test_producer_ids_are_never_given_out_again():
    given = []
    async with broker_on() as broker:
        given += [await broker.create_producer() for _ in range(1_500)]
        killed = broker.engine.reopened()
        given += [await broker.create_producer()]
    for engine in (broker.engine.reopened(), killed):
        async with broker_on(engine) as broker:
            assert await broker.create_producer() not in given
    assert min(given) >= 1
    assert len(set(given)) == len(given)


# Waiting for the disk


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


async def slow_log(broker):
    return await broker.engine.open(
        broker.get_topic("a").partition(0), broker.get_topic("a").settings
    )


# Publish


async def test_records_are_published_by_their_key_their_partition_or_in_turn():
    async with topic_on(partition_count=4) as broker:
        keyed = [NewRecord(key=key, value=key) for key in (b"", b"a", b"b", b"a")]
        receipts = await broker.publish("a", "", keyed)
        assert [receipt.partition for receipt in receipts] == [
            zlib.crc32(record.key) % 4 for record in keyed
        ]
        assert receipts[3].base_offset == receipts[1].base_offset + 1
        assert all(receipt.record_count == 1 for receipt in receipts)
        told = [NewRecord(key=b"a", partition=2), NewRecord(key=b"a")]
        assert [r.partition for r in await broker.publish("a", "", told, 1)] == [2, 1]
        turns = [(await broker.publish("a", "", [NewRecord(), NewRecord()])) for _ in range(8)]
        places = [[receipt.partition for receipt in turn] for turn in turns]
        assert all(one == other for one, other in places), "those of one call stay together"
        assert [places.count([number] * 2) for number in range(4)] == [2, 2, 2, 2]


async def test_a_published_record_keeps_what_it_has_and_gets_the_time_it_lacks():
    async with topic_on() as broker:
        headers = (Header("k", None), Header("k", b""))
        records = [
            NewRecord(value=None, key=b""),
            NewRecord(value=b"", headers=headers, timestamp_ms=-5),
        ]
        await broker.publish("a", "", records)
        one, two = await records_of(broker)
        assert (one.key, one.value, one.timestamp_ms, one.headers) == (b"", None, START_MS, ())
        assert (two.key, two.value, two.timestamp_ms, two.headers) == (None, b"", -5, headers)


@pytest.mark.parametrize(
    "records, more, reason",
    [
        ([], {}, "INVALID_ARGUMENT"),
        ([NewRecord(partition=0), NewRecord(partition=9)], {}, "PARTITION_NOT_FOUND"),
        ([NewRecord(partition=0), NewRecord(partition=-1)], {}, "PARTITION_NOT_FOUND"),
        ([NewRecord()], {"partition": 2}, "PARTITION_NOT_FOUND"),
        (
            [NewRecord(partition=0), NewRecord(partition=1, value=b"x" * 1_001)],
            {},
            "RECORD_TOO_LARGE",
        ),
        (
            [NewRecord(partition=0), NewRecord(partition=1)],
            {"expected_offset": 0},
            "INVALID_ARGUMENT",
        ),
        ([NewRecord(partition=0)], {"expected_offset": 5}, "UNEXPECTED_OFFSET"),
        ([NewRecord(partition=0)], {"expected_offset": -5}, "INVALID_OFFSET"),
        ([NewRecord(headers=(Header("h", b""),) * 4)], {}, "TOO_MANY_HEADERS"),
        ([NewRecord(headers=(Header("h" * 101, None),))], {}, "HEADER_TOO_LARGE"),
    ],
)
async def test_one_bad_record_and_nothing_is_stored(records, more, reason):
    async with topic_on(limits=SMALL, partition_count=2) as broker:
        with pytest.raises(LogbrokerError) as raised:
            await broker.publish("a", "", records, **more)
        assert raised.value.reason == reason
        assert broker.stats().appended_record_count == 0
        assert await values_of(broker) == []


async def test_what_fails_beside_what_is_stored_is_told_record_by_record():
    async with topic_on(SlowEngine(ManualClock()), partition_count=2) as broker:
        topic = broker.get_topic("a")
        good, bad = [await broker.engine.open(topic.partition(at), topic.settings) for at in (0, 1)]
        records = [NewRecord(partition=1), NewRecord(partition=0), NewRecord(partition=1)]
        publishing = asyncio.create_task(broker.publish("a", "", records))
        await asyncio.sleep(0)
        bad.fail()
        good.flush()
        one, two, three = await publishing
        assert [one.reason, three.reason] == ["STORAGE_FAILED"] * 2
        assert (two.partition, two.base_offset) == (0, 0)


async def test_the_crc_of_an_empty_batch_is_checked_too():
    empty = Batch.unstamped(b"\x0a\x00", record_count=1)
    assert empty.header.records_crc == crc32c(b"\x0a\x00")
    async with topic_on() as broker:
        await broker.produce("a", "", 0, empty)
        assert await values_of(broker) == [b""]


def test_limits_of_the_tests_are_the_least_that_belong_together():
    with pytest.raises(InvalidError):
        replace(SMALL, batch_bytes=SMALL.batch_bytes - 1)
