"""C29: a deleted topic is gone for all who use it, and one made again knows nothing of it."""

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from random import Random

import grpc
import pytest

from cases.data_dirs import log_lines, open_broker_on
from cases.effort import effort
from cases.numbered import read_numbers, value_of, write_numbered
from cases.watching import becomes_true
from logbroker.client import Client
from logbroker.errors import LogbrokerError, NotFoundError, PreconditionError
from logbroker.testing.running_broker import BrokerProcess
from logbroker.topic.topic import TopicSettings
from logbroker.v1.fetch_service_pb2 import FetchRequest
from logbroker.v1.fetch_service_pb2_grpc import FetchServiceStub
from logbroker.wire.status import error_of

PARTITIONS = 64
ENDS_WITHIN_S = 5
SEED = 29


@pytest.fixture
def broker(tmp_path: Path):
    with BrokerProcess(tmp_path / "data", "--set", "storage.check_interval_ms=50") as broker:
        yield broker


async def _error_of(work: Awaitable[object]) -> LogbrokerError:
    """Returns the error that the work ends with, which must be soon."""
    try:
        await asyncio.wait_for(work, ENDS_WITHIN_S)
    except LogbrokerError as error:
        return error
    except grpc.aio.AioRpcError as failure:
        return error_of(failure)
    raise AssertionError("it went on as if nothing had happened")


@pytest.mark.slow
async def test_c29_all_who_are_attached_are_told_that_the_topic_is_gone(broker):
    async with Client(broker.address) as client, grpc.aio.insecure_channel(broker.address) as raw:
        await client.admin.create_topic("orders", 2)
        await write_numbered(client, "orders", range(10))
        following = client.reader("orders", follow=True)
        waiting = client.reader("orders", follow=True, partition=1, start="latest")
        stream = FetchServiceStub(raw).Fetch(FetchRequest(topic="orders", follow=True))
        responses = aiter(stream)
        async with following, waiting:
            for _ in range(10):
                await anext(following)
            while (await anext(responses)).next_offset < 10:
                pass
            busy, idle = client.producer("orders", linger_ms=0), client.producer("orders")
            await idle.publish(b"once", partition=0)
            await anext(following)
            ends = [
                asyncio.create_task(_error_of(work))
                for work in (_read_out(following), _read_out(waiting), _read_out(responses))
            ]
            ends.append(asyncio.create_task(_error_of(_write_on(busy))))
            await becomes_true(lambda: busy.unsent_count > 0, "it writes")
            await client.admin.delete_topic("orders")
            for end in ends:
                error = await end
                assert isinstance(error, NotFoundError), error
                assert error.reason in {"TOPIC_NOT_FOUND", "PARTITION_NOT_FOUND"}
            assert isinstance(await _error_of(idle.publish(b"again")), NotFoundError)
            for producer in (busy, idle):
                await producer.abandon(timeout_ms=0)
        # and none of them has made it again
        assert await client.admin.list_topics() == []
        assert not (broker.data_dir / "topics" / "orders").exists()
        assert "Traceback" not in broker.log_file.read_text()


async def _read_out(records) -> None:
    async for _ in records:
        pass


async def _write_on(producer) -> None:
    number = 0
    while True:
        receipt = await producer.send(value_of(number), partition=number % 2)
        number += 1
        if number % 50 == 0:
            await receipt


@pytest.mark.slow
async def test_c29_who_knew_the_old_topic_does_not_take_the_new_one_for_it(broker):
    async with Client(broker.address) as client:
        old = await client.admin.create_topic("orders", 4)
        await write_numbered(client, "orders", range(30))
        async with client.reader("orders", follow=True) as reader:
            producer = client.producer("orders")
            await producer.publish(b"old", partition=0)
            await client.admin.delete_topic("orders")
            new = await client.admin.create_topic("orders", 1)
            assert new.topic_id != old.topic_id
            for work in (producer.publish(b"for the old one", partition=0), _read_out(reader)):
                error = await _error_of(work)
                assert isinstance(error, (NotFoundError, PreconditionError)), error
            await producer.abandon(timeout_ms=0)
        [part] = (await client.admin.get_topic("orders")).partitions
        assert (part.log_start_offset, part.next_offset) == (0, 0)
        await write_numbered(client, "orders", range(5))
        assert await read_numbers(client, "orders") == list(range(5))
        broker.kill()
        broker.start()
        assert await read_numbers(client, "orders") == list(range(5))
        assert (await client.admin.get_topic("orders")).topic.topic_id == new.topic_id


@pytest.mark.slow
async def test_c29_deleted_and_made_again_at_once_it_starts_at_0_each_time(tmp_path):
    """In one process, so that it is the same millisecond; retention is at work meanwhile."""
    settings = TopicSettings(segment_bytes=4 << 10, retention_ms=1)
    async with open_broker_on(tmp_path / "data") as broker:
        ids = set()
        for count in range(1, effort(20, 200)):
            topic = await broker.create_topic("orders", count % 3 + 1, settings)
            ids.add(topic.topic_id)
            statuses = broker.partition_statuses(topic)
            assert [status.next_offset for status in statuses] == [0] * topic.partition_count
            keeping = asyncio.create_task(broker._engine.housekeep())
            await broker.delete_topic("orders", topic.topic_id)
            await keeping
        assert len(ids) == count
        assert broker.list_topics(0, "")[0] == []
        assert _files_of(tmp_path / "data", "orders") == []


@pytest.mark.slow
async def test_c29_whoever_deletes_and_makes_it_at_the_same_time_gets_one_topic_or_none(broker):
    async with Client(broker.address) as client:
        refusals = set()

        async def change(number: int) -> None:
            for step in range(effort(5, 50)):
                try:
                    if (number + step) % 2:
                        await client.admin.create_topic("orders", 3)
                    else:
                        await client.admin.delete_topic("orders")
                except LogbrokerError as error:
                    refusals.add(error.reason)

        await asyncio.gather(*(change(number) for number in range(8)))
        assert refusals <= {"TOPIC_ALREADY_EXISTS", "TOPIC_NOT_FOUND", "TOPIC_RECREATED"}
        topics = await client.admin.list_topics()
        assert len(topics) <= 1
        broker.kill()
        broker.start()
        assert await client.admin.list_topics() == topics
        assert (await client.admin.get_stats())["damaged_topics"] == []
        for topic in topics:
            await write_numbered(client, topic.topic, range(3))
            await client.admin.delete_topic(topic.topic)
        assert _files_of(broker.data_dir, "orders") == []


@pytest.mark.slow
@pytest.mark.timeout(effort(120, 600))  # many starts in full
async def test_c29_a_kill_during_a_deletion_leaves_the_topic_whole_or_gone_for_good(broker):
    random = Random(SEED)
    async with Client(broker.address) as client:
        took_s = await _time_a_deletion(client)
        for round_ in range(effort(3, 30)):
            topic = await client.admin.create_topic("orders", PARTITIONS)
            await _write_one_each(client)
            deleting = asyncio.create_task(client.admin.delete_topic("orders"))
            await asyncio.wait({deleting}, timeout=took_s * 1.2 * random.random())
            is_answered = deleting.done()
            broker.kill()
            deleting.cancel()
            await asyncio.gather(deleting, return_exceptions=True)
            for _ in range(2):
                broker.start()
                topics = await client.admin.list_topics()
                assert topics in ([], [topic]), round_
                assert not (topics and is_answered), "back from the dead"
                assert (await client.admin.get_stats())["damaged_topics"] == []
                if topics:
                    numbers = [await read_numbers(client, "orders", part) for part in range(2)]
                    assert numbers == [[0], [1]]
                    described = await client.admin.get_topic("orders")
                    assert [part.next_offset for part in described.partitions] == [1] * PARTITIONS
                else:
                    assert _files_of(broker.data_dir, "orders") == []
                    assert list((broker.data_dir / "trash").iterdir()) == []
                broker.kill()
            broker.start()
            if topics:
                await client.admin.delete_topic("orders")
        assert log_lines(broker, "data lost") == []


async def _time_a_deletion(client: Client) -> float:
    await client.admin.create_topic("orders", PARTITIONS)
    await _write_one_each(client)
    loop = asyncio.get_running_loop()
    started = loop.time()
    await client.admin.delete_topic("orders")
    return loop.time() - started


async def _write_one_each(client: Client) -> None:
    async with client.producer("orders") as producer:
        for partition in range(PARTITIONS):
            await producer.send(value_of(partition), partition=partition)


@pytest.mark.slow
@pytest.mark.timeout(effort(120, 600))  # many starts in full
async def test_c29_a_kill_during_a_creation_leaves_a_whole_topic_or_none(broker):
    random = Random(SEED)
    async with Client(broker.address) as client:
        for round_ in range(effort(4, 30)):
            creating = asyncio.create_task(client.admin.create_topic("orders", PARTITIONS))
            await asyncio.wait({creating}, timeout=random.random() / 5)
            is_answered = creating.done()
            broker.kill()
            creating.cancel()
            await asyncio.gather(creating, return_exceptions=True)
            broker.start()
            topics = await client.admin.list_topics()
            assert (await client.admin.get_stats())["damaged_topics"] == []
            assert topics or not is_answered, round_
            if not topics:
                await client.admin.create_topic("orders", PARTITIONS)
            await _write_one_each(client)
            await client.admin.delete_topic("orders")
            assert _files_of(broker.data_dir, "orders") == []


def _files_of(data_dir: Path, topic: str) -> list[Path]:
    place = data_dir / "topics" / topic
    return [place, *place.rglob("*")] if place.exists() else []
