"""Changes of topics that fail, or that a stop interrupts: taken back, or finished later."""

import asyncio

import pytest

from logbroker.broker import housekeeping
from logbroker.errors import (
    DataLossError,
    ExhaustedError,
    LogbrokerError,
    NotFoundError,
    UnavailableError,
)
from logbroker.record.partition_id import PartitionId
from logbroker.testing.clock import ManualClock
from logbroker.topic.names import CATALOG_TOPIC
from logbroker.topic.topic import TopicSettings

from .brokers import batch_of, broker_on, topic_on, values_of
from .topic_changes import NONE, StubbornEngine, of_users, turns


@pytest.mark.parametrize("verb", ["create", "delete", "grow", "update"])
async def test_a_change_whose_caller_leaves_is_finished(verb):
    engine = StubbornEngine(ManualClock())
    async with broker_on(engine) as broker:
        if verb != "create":
            await broker.create_topic("a", 2, NONE)
        engine.gate.clear()
        change = {
            "create": lambda: broker.create_topic("a", 2, NONE),
            "delete": lambda: broker.delete_topic("a", ""),
            "grow": lambda: broker.grow_topic("a", "", 4),
            "update": lambda: broker.update_topic("a", "", TopicSettings(retention_ms=1)),
        }[verb]
        caller = asyncio.create_task(change())
        await turns()
        caller.cancel()
        await asyncio.wait({caller})
        engine.gate.set()
        await turns()
        if verb == "delete":
            assert of_users(engine) == []
            await broker.create_topic("a", 1, NONE)
        else:
            for partition in range(4 if verb == "grow" else 2):
                await broker.produce("a", "", partition, batch_of(b"x"))


async def test_a_stop_waits_for_a_change_under_way():
    engine = StubbornEngine(ManualClock())
    async with broker_on(engine) as broker:
        engine.gate.clear()
        caller = asyncio.create_task(broker.create_topic("a", 2, NONE))
        await turns()
        asyncio.get_running_loop().call_soon(engine.gate.set)
    assert len(of_users(engine)) == 2
    assert (await caller).partition_count == 2


@pytest.mark.parametrize("other", ["update", "grow"])
async def test_a_change_that_meets_a_deletion_leaves_no_files(other):
    engine = StubbornEngine(ManualClock())
    async with broker_on(engine) as broker:
        await broker.create_topic("a", 4, NONE)
        engine.gate.clear()
        change = (
            broker.update_topic("a", "", TopicSettings(retention_ms=1))
            if other == "update"
            else broker.grow_topic("a", "", 8)
        )
        both = asyncio.gather(change, broker.delete_topic("a", ""), return_exceptions=True)
        await turns()
        engine.gate.set()
        await both
        assert of_users(engine) == []
        await broker.create_topic("a", 1, NONE)
    async with broker_on(engine.reopened()) as broker:
        assert broker.stats().damaged_topics == ()
        assert await values_of(broker) == []


async def test_a_creation_that_fails_is_taken_back():
    engine = StubbornEngine(ManualClock())
    async with broker_on(engine) as broker:
        engine.refuses = lambda verb, partition: verb == "open" and partition.partition == 2
        with pytest.raises(ExhaustedError):
            await broker.create_topic("a", 4, NONE)
        assert of_users(engine) == []
        with pytest.raises(NotFoundError):
            broker.get_topic("a")
        engine.refuses = lambda verb, partition: False
        await broker.create_topic("a", 4, NONE)


async def test_a_growth_that_fails_changes_nothing_and_can_be_tried_again():
    engine = StubbornEngine(ManualClock())
    async with broker_on(engine) as broker:
        topic = await broker.create_topic("a", 2, NONE)
        engine.refuses = lambda verb, partition: verb == "open" and partition.partition == 4
        with pytest.raises(ExhaustedError):
            await broker.grow_topic("a", "", 5)
        assert broker.get_topic("a") == topic
        engine.refuses = lambda verb, partition: False
        await broker.grow_topic("a", "", 5)
        await broker.produce("a", "", 4, batch_of(b"x"))
        await broker.delete_topic("a", "")
        assert of_users(engine) == []


async def test_a_deletion_that_fails_keeps_the_name_and_is_finished_at_the_next_start():
    engine = StubbornEngine(ManualClock())
    async with broker_on(engine) as broker:
        await broker.create_topic("a", 3, NONE)
        engine.refuses = lambda verb, partition: verb == "delete" and partition.partition == 1
        with pytest.raises(UnavailableError, match="is deleted"):
            await broker.delete_topic("a", "")
        with pytest.raises(NotFoundError):
            broker.get_topic("a")
        with pytest.raises(UnavailableError):
            await broker.create_topic("a", 1, NONE)
    async with broker_on(engine.reopened()) as broker:
        assert of_users(broker.engine) == []
        await broker.create_topic("a", 1, NONE)
        assert await values_of(broker) == []


async def test_a_deletion_that_failed_is_finished_without_a_restart():
    engine = StubbornEngine(clock := ManualClock())
    async with broker_on(engine, clock) as broker:
        await broker.create_topic("a", 3, NONE)
        engine.refuses = lambda verb, partition: verb == "delete" and partition.partition == 1
        with pytest.raises(UnavailableError):
            await broker.delete_topic("a", "")
        await clock.advance(housekeeping.EVERY_MS)
        assert len(of_users(engine)) > 0
        engine.refuses = lambda verb, partition: False
        await clock.advance(housekeeping.EVERY_MS)
        assert of_users(engine) == []
        await broker.create_topic("a", 1, NONE)


async def test_what_the_journal_could_not_keep_has_not_happened():
    async with topic_on() as broker:
        journal = await broker.engine.open(PartitionId(CATALOG_TOPIC, CATALOG_TOPIC, 0), None)

        def failing(batch, **_):
            future = asyncio.get_running_loop().create_future()
            future.set_exception(UnavailableError("STORAGE_FAILED", "fsync failed"))
            return future

        journal.append = failing
        kept = broker.get_topic("a")
        for change in (
            broker.create_topic("b", 1, NONE),
            broker.update_topic("a", "", TopicSettings(retention_ms=1)),
            broker.grow_topic("a", "", 3),
            broker.delete_topic("a", ""),
        ):
            with pytest.raises(UnavailableError):
                await change
        assert broker.list_topics(0, "")[0] == [kept]
        await broker.produce("a", "", 0, batch_of(b"x"))


async def test_a_deletion_that_was_interrupted_is_finished_at_the_start():
    engine = StubbornEngine(ManualClock())
    async with broker_on(engine) as broker:
        await broker.create_topic("a", 64, NONE)
        await broker.produce("a", "", 0, batch_of(b"old"))
        engine.refuses = lambda verb, partition: verb == "delete" and partition.partition >= 32
        with pytest.raises(UnavailableError, match="is deleted"):
            await broker.delete_topic("a", "")
        assert len(of_users(engine)) == 32
        killed = engine.reopened()
    async with broker_on(killed) as broker:
        assert of_users(killed) == []
        assert broker.stats().topic_count == 0
        await broker.create_topic("a", 1, NONE)
        assert await values_of(broker) == []


async def test_a_creation_that_was_interrupted_is_finished_at_the_start():
    engine = StubbornEngine(ManualClock())
    async with broker_on(engine) as broker:
        engine.gate.clear()
        caller = asyncio.create_task(broker.create_topic("a", 3, NONE))
        await turns()
        killed = engine.reopened()
        engine.gate.set()
        await caller
    assert of_users(killed) == []
    async with broker_on(killed) as broker:
        assert len(of_users(killed)) == 3
        await broker.produce("a", "", 2, batch_of(b"x"))


async def test_a_topic_whose_entry_is_lost_is_damaged_and_never_made_again_empty():
    async with topic_on() as broker:
        await broker.produce("a", "", 0, batch_of(b"precious"))
        await broker.create_topic("b", 1, NONE)
    engine = broker.engine.reopened()
    journal = await engine.open(PartitionId(CATALOG_TOPIC, CATALOG_TOPIC, 0), None)
    read = journal.read

    async def damaged(offset, max_bytes):
        if offset == 0:
            raise DataLossError("DAMAGED_BATCH", "noise", offset=0, next_offset=1)
        return await read(offset, max_bytes)

    journal.read = damaged
    async with broker_on(engine) as broker:
        assert broker.stats().damaged_topics == ("a",)
        for call in (
            lambda: broker.create_topic("a", 1, NONE),
            lambda: broker.delete_topic("a", ""),
            lambda: values_of(broker),
        ):
            with pytest.raises(UnavailableError) as raised:
                await call()
            assert raised.value.reason == "TOPIC_DAMAGED"
        await broker.produce("b", "", 0, batch_of(b"others serve"))
    kept = [found for found in of_users(engine) if found.topic == "a"]
    assert len(kept) == 1, "the bytes are still there"


async def test_a_topic_that_cannot_be_opened_does_not_hold_up_the_others_and_is_tried_again():
    async with topic_on() as broker:
        await broker.create_topic("b", 1, NONE)
        kept = broker.engine.reopened()
    engine = StubbornEngine(broker.clock)
    engine._logs = kept._logs
    engine.refuses = lambda verb, partition: verb == "open" and partition.topic == "a"
    async with broker_on(engine, broker.clock) as broker:
        await broker.produce("b", "", 0, batch_of(b"x"))
        with pytest.raises(LogbrokerError):
            broker.produce("a", "", 0, batch_of(b"x"))
        engine.refuses = lambda verb, partition: False
        await broker.clock.advance(10_000)
        await broker.produce("a", "", 0, batch_of(b"x"))
