"""The broker on files: what a start finds, and what it makes of damage."""

import asyncio

import pytest
from cases.data_dirs import open_broker_on

from logbroker.broker.lease import LeaseSpec
from logbroker.errors import UnavailableError
from logbroker.group.record_state import Cause
from logbroker.group.settings import GroupSettings, Order
from logbroker.testing.clock import ManualClock
from logbroker.topic.topic import TopicSettings

from .brokers import batch_of, values_of
from .grouped import delivered, member_on, settle

pytestmark = pytest.mark.slow


def broker_in(data_dir):
    return open_broker_on(data_dir, ManualClock())


def files_of(data_dir, topic="a"):
    return sorted(path for path in (data_dir / "topics" / topic).rglob("*") if path.is_file())


async def unavailable(call):
    with pytest.raises(UnavailableError) as raised:
        await call()
    return raised.value.reason


async def test_what_was_produced_is_there_after_a_restart(tmp_path):
    batch = batch_of(b"1", b"2", producer_id=7)
    async with broker_in(tmp_path) as broker:
        topic = await broker.create_topic("a", 3, TopicSettings())
        first = await broker.produce("a", "", 1, batch)
    async with broker_in(tmp_path) as broker:
        assert broker.get_topic("a") == topic
        assert await values_of(broker, partition=1) == [b"1", b"2"]
        again = await broker.produce("a", "", 1, batch)
        assert again == first._replace(duplicate=True)


async def test_a_deleted_topic_leaves_no_files(tmp_path):
    async with broker_in(tmp_path) as broker:
        await broker.create_topic("a", 3, TopicSettings())
        await broker.produce("a", "", 1, batch_of(b"x"))
        assert files_of(tmp_path)
        await broker.delete_topic("a", "")
        assert not (tmp_path / "topics" / "a").exists()
    async with broker_in(tmp_path) as broker:
        assert broker.stats().topic_count == 0
        await broker.create_topic("a", 1, TopicSettings())
        assert await values_of(broker) == []


async def damage_partition_1(data_dir):
    """Leaves topics `a` and `b`, and partition 1 of `a` without a checkpoint that can be read."""
    async with broker_in(data_dir) as broker:
        for name in ("a", "b"):
            await broker.create_topic(name, 3, TopicSettings())
            for partition in range(3):
                await broker.produce(name, "", partition, batch_of(b"x"))
    [checkpoint] = [
        path for path in files_of(data_dir) if path.parent.name == "1" and path.name == "checkpoint"
    ]
    checkpoint.write_bytes(b"noise")


async def test_a_damaged_partition_is_unavailable_and_the_others_serve(tmp_path):
    await damage_partition_1(tmp_path)
    kept = [path for path in files_of(tmp_path) if path.parent.name == "1"]
    async with broker_in(tmp_path) as broker:
        for topic, partition in (("a", 0), ("a", 2), ("b", 1)):
            assert await values_of(broker, topic, partition) == [b"x"]
            await broker.produce(topic, "", partition, batch_of(b"y"))
        for call in (
            lambda: values_of(broker, partition=1),
            lambda: broker.find_offset("a", "", 1, 0),
            lambda: broker.trim_topic("a", "", 1, 0),
        ):
            assert await unavailable(call) == "TOPIC_DAMAGED"
        with pytest.raises(UnavailableError):
            broker.produce("a", "", 1, batch_of(b"y"))
        statuses = broker.partition_statuses(broker.get_topic("a"))
        assert [status.failure for status in statuses] == ["", "TOPIC_DAMAGED", ""]
        assert broker.stats().damaged_topics == ("a",)
    assert [path for path in files_of(tmp_path) if path.parent.name == "1"] == kept


async def test_a_broker_starts_although_a_group_reads_a_partition_that_is_damaged(tmp_path):
    clock = ManualClock()
    async with open_broker_on(tmp_path, clock) as broker:
        broker.clock = clock
        await broker.create_topic("a", 3, TopicSettings())
        await broker.produce("a", "", 0, batch_of(b"x"))
        async with member_on(broker) as member:
            token, first, end = await delivered(broker, member)
            await settle(broker, member, Cause.ACKNOWLEDGE, token, first, end)
    (tmp_path / "topics/a/1/checkpoint").write_bytes(b"noise")
    async with broker_in(tmp_path) as broker:
        assert await values_of(broker) == [b"x"]
        assert [one.group for one in await broker.group_stats()] == ["g"]
        progress = {one.partition: one.progress for one in await broker.groups.progress("g")}
        assert progress[0].committed == 1


@pytest.mark.parametrize("order", list(Order))
async def test_a_damaged_partition_costs_a_group_nothing_of_the_others(tmp_path, order):
    clock = ManualClock()
    spec = {"settings": GroupSettings(order=order), "max_records": 10}
    async with open_broker_on(tmp_path, clock) as broker:
        await broker.create_topic("a", 3, TopicSettings())
        async with member_on(broker, **spec):
            pass
    (tmp_path / "topics/a/1/checkpoint").write_bytes(b"noise")
    async with open_broker_on(tmp_path, clock) as broker:
        broker.clock = clock
        async with member_on(broker, **spec) as member:
            told, partitions = set(), set()
            for partition in (0, 2):
                await broker.produce("a", "", partition, batch_of(b"x"))
            while len(partitions) < 2 or ("a", 1) not in told:
                coming = asyncio.ensure_future(member.next())
                while not coming.done():
                    await clock.advance(10)
                news, found = coming.result()
                told.update(news.caught_up)
                partitions.update([found.partition] if found else [])
            assert partitions == {0, 2}
            assert member.failure is None
        await clock.advance(10_000)  # so that the partitions are nobody's
        found = await broker.lease(LeaseSpec(group="g", topics=("a",)))
        assert found.partition in {0, 2}


async def test_a_topic_with_a_damaged_partition_can_be_deleted_and_made_again(tmp_path):
    await damage_partition_1(tmp_path)
    async with broker_in(tmp_path) as broker:
        await broker.delete_topic("a", "")
        assert files_of(tmp_path) == []
        assert broker.stats().damaged_topics == ()
        await broker.create_topic("a", 3, TopicSettings())
        await broker.produce("a", "", 1, batch_of(b"new"))
    async with broker_in(tmp_path) as broker:
        assert await values_of(broker, partition=1) == [b"new"]


async def test_topics_without_their_journal_are_damaged_and_never_made_again_empty(tmp_path):
    await damage_partition_1(tmp_path)
    for path in files_of(tmp_path, "__topics"):
        path.unlink()
    async with broker_in(tmp_path) as broker:
        assert broker.stats().damaged_topics == ("a", "b")
        for name in ("a", "b"):
            creation = broker.create_topic(name, 3, TopicSettings())
            assert await unavailable(lambda creation=creation: creation) == "TOPIC_DAMAGED"
        await broker.create_topic("c", 1, TopicSettings())
    assert len([path for path in files_of(tmp_path) if path.suffix == ".log"]) == 3
