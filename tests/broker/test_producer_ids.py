"""Idempotent producers: sequences and epochs, through retries, restarts and retention."""

import pytest
from slow_engine import SlowEngine

from logbroker.config import LimitsConfig
from logbroker.errors import ConflictError, PreconditionError
from logbroker.testing.clock import ManualClock
from logbroker.topic.topic import TopicSettings

from .brokers import broker_on, numbered, slow_log, topic_on, values_of


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
