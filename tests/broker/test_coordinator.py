"""Topics: created, changed, deleted, made again."""

import asyncio

import pytest

from logbroker.config import Durability, LogConfig
from logbroker.errors import AlreadyExistsError, LogbrokerError, NotFoundError
from logbroker.record.partition_id import PartitionId
from logbroker.testing.clock import ManualClock
from logbroker.topic.names import CATALOG_TOPIC
from logbroker.topic.topic import TopicSettings

from .brokers import batch_of, broker_on, topic_on, values_of
from .topic_changes import NONE, StubbornEngine, of_users, turns


async def test_a_topic_is_there_with_its_settings_after_a_restart():
    async with broker_on(defaults=LogConfig(segment_ms=9)) as broker:
        made = await broker.create_topic("a", 3, TopicSettings(durability=Durability.WRITTEN))
        updated = await broker.update_topic("a", "", TopicSettings(retention_ms=7))
        grown = await broker.grow_topic("a", made.topic_id, 5)
        assert (grown.partition_count, grown.settings) == (5, updated.settings)
    assert made.settings == LogConfig(durability=Durability.WRITTEN, segment_ms=9)
    async with broker_on(broker.engine.reopened()) as broker:
        assert broker.get_topic("a") == grown
        assert grown.settings == LogConfig(
            durability=Durability.WRITTEN, segment_ms=9, retention_ms=7
        )
        assert len(broker.partition_statuses(grown)) == 5
        for partition in range(5):
            await broker.produce("a", "", partition, batch_of(b"x"))


async def test_new_defaults_do_not_change_topics_that_are_there():
    async with broker_on() as broker:
        await broker.create_topic("a", 1, NONE)
    async with broker_on(broker.engine.reopened(), defaults=LogConfig(segment_ms=1)) as broker:
        assert broker.get_topic("a").settings == LogConfig()
        assert (await broker.create_topic("b", 1, NONE)).settings.segment_ms == 1


async def test_receipts_follow_an_update_at_once():
    async with topic_on() as broker:
        await broker.update_topic("a", "", TopicSettings(durability=Durability.WRITTEN))
        receipt = await broker.produce("a", "", 0, batch_of(b"x"))
        assert receipt.durability is Durability.WRITTEN


async def test_topics_are_listed_by_name_in_pages():
    async with broker_on() as broker:
        for name in ("c", "a", "B", "b"):
            await broker.create_topic(name, 1, NONE)
        pages, token = [], ""
        while True:
            topics, token = broker.list_topics(2, token)
            pages.append([topic.topic for topic in topics])
            if not token:
                break
        assert pages == [["B", "a"], ["b", "c"]]
        assert [topic.topic for topic in broker.list_topics(0, "b")[0]] == ["c"]
        with pytest.raises(LogbrokerError):
            broker.list_topics(-1, "")


async def test_a_topic_made_again_starts_at_0_and_knows_nothing_of_the_one_before():
    async with topic_on(partition_count=3) as broker:
        old = broker.get_topic("a")
        batch = batch_of(b"old", producer_id=7)
        await broker.produce("a", "", 0, batch)
        await broker.delete_topic("a", old.topic_id)
        assert of_users(broker.engine) == []
        with pytest.raises(NotFoundError):
            broker.produce("a", "", 0, batch)
        new = await broker.create_topic("a", 1, NONE)
        assert new.topic_id != old.topic_id
        for call in (
            lambda: broker.produce("a", old.topic_id, 0, batch),
            lambda: broker.get_topic("a", old.topic_id),
        ):
            with pytest.raises(LogbrokerError) as raised:
                call()
            assert raised.value.reason == "TOPIC_RECREATED"
        receipt = await broker.produce("a", new.topic_id, 0, batch)
        assert (receipt.base_offset, receipt.duplicate) == (0, False)
    async with broker_on(broker.engine.reopened()) as broker:
        assert broker.get_topic("a") == new
        assert await values_of(broker) == [b"old"]


async def test_a_deletion_of_an_older_incarnation_is_refused():
    async with topic_on() as broker:
        with pytest.raises(LogbrokerError) as raised:
            await broker.delete_topic("a", "older")
        assert raised.value.reason == "TOPIC_RECREATED"
        broker.get_topic("a")


async def test_many_changes_shorten_the_journal_and_lose_nothing():
    async with topic_on() as broker:
        for number in range(1, 1_100):
            await broker.update_topic("a", "", TopicSettings(retention_ms=number))
        kept = broker.get_topic("a")
        journal = await broker.engine.open(PartitionId(CATALOG_TOPIC, CATALOG_TOPIC, 0), None)
        assert journal.bounds().log_start_offset > 1_000
    async with broker_on(broker.engine.reopened()) as broker:
        assert broker.get_topic("a") == kept


async def test_of_two_who_create_at_once_one_creates_and_both_can_write():
    engine = StubbornEngine(ManualClock())
    async with broker_on(engine) as broker:
        engine.gate.clear()

        async def create_and_write():
            try:
                await broker.create_topic("a", 3, NONE)
                created = True
            except AlreadyExistsError:
                created = False
            await broker.produce("a", "", 2, batch_of(b"x"))
            return created

        both = [asyncio.create_task(create_and_write()) for _ in range(2)]
        await turns()
        engine.gate.set()
        assert sorted(await asyncio.gather(*both)) == [False, True]


async def test_delete_then_create_in_the_same_moment():
    async with topic_on(partition_count=8) as broker:
        await broker.produce("a", "", 0, batch_of(b"old"))
        _, new = await asyncio.gather(
            broker.delete_topic("a", ""), broker.create_topic("a", 1, NONE)
        )
        assert broker.get_topic("a") == new
        assert await values_of(broker) == []


async def test_what_the_caller_raises_comes_out_as_it_was_raised():
    with pytest.raises(KeyError):
        async with broker_on():
            raise KeyError("x")
