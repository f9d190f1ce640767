"""C29: a topic is deleted and made again under a group: it is told, and knows nothing of the old.

Consumers that are told do not join again by themselves, so none of them makes the topic anew.
"""

import asyncio
from collections.abc import Iterator
from random import Random

import pytest
from server.calls import ending, refusal, serving
from server.members import ACK, REJECT, RETRY, Delivered, member_of, member_on, publish

from cases.effort import effort
from cases.grouped import calls_to, check_nothing_left, group_of, letters_of, make_topic
from cases.watching import becomes_true
from logbroker.client import Client
from logbroker.client.blocking import BlockingClient
from logbroker.client.consumer import Consumer
from logbroker.errors import LogbrokerError, NotFoundError
from logbroker.testing.clock import ManualClock
from logbroker.testing.running_broker import BrokerProcess
from logbroker.v1 import consume_service_pb2 as pb
from logbroker.v1 import group_pb2
from logbroker.v1 import group_service_pb2 as groups_pb
from logbroker.v1.topic_service_pb2 import DeleteTopicRequest, GetTopicRequest, ListTopicsRequest

pytestmark = pytest.mark.slow
ENDS_WITHIN_S = 5
ORDERS = [group_pb2.ORDER_PARTITION, group_pb2.ORDER_KEY, group_pb2.ORDER_NONE]
NAMES = ["partition", "key", "none"]
PARTITIONS = 64
SEED = 29


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("c29") / "data") as started:
        yield started


@pytest.fixture(autouse=True)
def _empty(broker: BrokerProcess) -> None:
    with BlockingClient(broker.address) as client:
        for topic in client.admin.list_topics():
            client.admin.delete_topic(topic.topic)
        for group in client.admin.list_groups():
            client.admin.delete_group(group.group.group, force=True)


def numbers(first: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, end)]


async def delete(calls, topic="a") -> None:
    await calls.topics.DeleteTopic(DeleteTopicRequest(topic=topic))


async def topics_of(calls) -> list[str]:
    found = (await calls.topics.ListTopics(ListTopicsRequest())).topics
    return sorted(one.topic for one in found)


async def error_of(work) -> LogbrokerError:
    """Returns the error that the work ends with, which must be soon."""
    with pytest.raises(LogbrokerError) as caught:
        await asyncio.wait_for(work, ENDS_WITHIN_S)
    return caught.value


async def read_out(consumer: Consumer) -> None:
    async for _ in consumer:
        pass


@pytest.mark.parametrize("order", ORDERS, ids=NAMES)
async def test_c29_members_leases_and_waiting_calls_are_told_and_the_new_topic_begins_at_0(
    broker, order
):
    async with calls_to(broker.address) as calls, Client(broker.address) as client:
        await make_topic(calls)
        await publish(calls, *numbers(0, 20), keys=numbers(0, 20))
        async with member_on(calls, order=order, limits=10) as first:
            for held in await first.take(10):
                await first.settle(held)
        member = await member_of(calls, limits=2)
        held = await member.delivery()
        consumer = client.consumer("h", "a")
        await consumer.open()
        assert (await anext(consumer)).offset == 0
        ended = asyncio.create_task(error_of(read_out(consumer)))
        worker = client.worker("i", "a", lambda record: None)
        running = asyncio.create_task(error_of(worker.run()))
        lease = pb.LeaseRequest(group="j", topics=["a"], max_records=20)
        by_call = Delivered(await calls.consume.Lease(lease))
        lease.wait_ms = 60_000
        waiting = asyncio.create_task(refusal(calls.consume.Lease(lease)))
        await becomes_true(lambda: worker.stats().done_count == 20, "the worker works")

        await delete(calls)
        for told in (ended, running):
            error = await told
            assert isinstance(error, NotFoundError), error
            assert error.reason == "TOPIC_NOT_FOUND"
        assert await waiting == ("NOT_FOUND", "TOPIC_NOT_FOUND")
        code, info, _ = await ending(member.call)
        assert (code.name, info.reason) == ("NOT_FOUND", "TOPIC_NOT_FOUND")
        for group, token in (("g", held.token), ("j", by_call.token)):
            one = pb.Settlement(token=token, first_offset=0, end_offset=20, outcome=ACK)
            request = pb.SettleRequest(group=group, settlements=[one])
            [result] = (await calls.consume.Settle(request)).results
            assert result.error.reason == "LEASE_LOST"
        assert list((await group_of(calls)).progress) == [], "it reads nothing now"
        again = calls.consume.Consume()
        opening = pb.OpenConsume(group="g", topics=["a"])
        await again.write(pb.ConsumeRequest(open=opening))
        assert await refusal(again) == ("NOT_FOUND", "TOPIC_NOT_FOUND"), "and cannot join again"
        await consumer.close()
        assert await topics_of(calls) == [], "and nobody has made it again"
        assert "Traceback" not in broker.log_file.read_text()

        await make_topic(calls)
        await publish(calls, *numbers(100, 105), keys=numbers(0, 5))
        for group in "ghij":
            seen = []
            async with member_on(calls, group) as member:
                [one] = (await group_of(calls, group)).progress
                assert not one.HasField("committed_offset")
                assert (one.lag, one.high_watermark, one.log_start_offset) == (5, 5, 0)
                while len(seen) < 5:
                    held = await member.delivery()
                    assert set(held.numbers) == {1}
                    assert set(held.failures) == {0}
                    seen += held.records
                    for offset in held.offsets:
                        await member.settle(held, ACK, offset, offset + 1)
            assert sorted(seen) == list(enumerate(numbers(100, 105)))
            await check_nothing_left(calls, group)


async def test_c29_what_waited_in_the_old_topic_comes_no_more():
    clock = ManualClock()
    settings = {"order": group_pb2.ORDER_NONE, "retry_initial_ms": 300}
    async with serving(partition_count=1, clock=clock) as calls:
        await publish(calls, *numbers(0, 4))
        member = await member_of(calls, lease_ms=1_000, **settings)
        held = await member.delivery()
        await member.settle(held, RETRY, 0, 2)
        await delete(calls)
        assert (await ending(member.call))[0].name == "NOT_FOUND"
        await make_topic(calls)
        await publish(calls, *numbers(10, 12))
        async with member_on(calls) as member:
            held = await member.delivery()
            assert held.records == [(0, b"10"), (1, b"11")]
            assert (held.numbers, held.failures) == ([1], [0])
            await clock.advance(900)  # the back-offs of the old ones end, and the lease of one
            await publish(calls, b"12")
            assert (await member.delivery()).records == [(2, b"12")]
            assert not member.taken_back
            assert (await member.settle(held)).committed_offset == 2


async def test_c29_dead_letters_of_the_old_topic_are_none_of_the_new_one():
    async with serving(partition_count=1) as calls:
        for incarnation in (b"old", b"new"):
            await publish(calls, incarnation, b"v")
            async with member_on(calls, limits=1) as member:
                await member.settle(await member.delivery(), REJECT, reason=incarnation.decode())
                assert [one.reason for one in await letters_of(calls)] == [incarnation.decode()]
            if incarnation == b"old":
                await delete(calls)
                await make_topic(calls)


async def test_c29_a_commit_for_the_old_topic_is_none_for_the_new_one():
    async with serving(partition_count=1) as calls:
        await publish(calls, *numbers(0, 10))
        old = (await calls.topics.GetTopic(GetTopicRequest(topic="a"))).topic.topic_id
        await delete(calls)
        await make_topic(calls)
        await publish(calls, *numbers(0, 10))
        one = groups_pb.Commit(topic="a", topic_id=old, partition=0, offset=7)
        request = groups_pb.CommitOffsetsRequest(group="g", commits=[one])
        [result] = (await calls.groups.CommitOffsets(request)).results
        assert result.error.reason == "TOPIC_RECREATED"
        async with member_on(calls) as member:
            assert (await member.delivery()).offsets == list(range(10))


async def test_c29_lag_is_never_negative_while_a_topic_goes_and_comes(broker):
    async with calls_to(broker.address) as calls, Client(broker.address) as client:
        is_over, lags = asyncio.Event(), []

        async def watch() -> None:
            while not is_over.is_set():
                try:
                    found = await client.admin.get_offsets("g")
                except NotFoundError:
                    continue
                lags.extend(one.lag for one in found)
                for one in found:
                    reached = max(one.committed_offset or 0, one.log_start_offset)
                    assert 0 <= one.lag <= one.high_watermark - reached

        watching = asyncio.create_task(watch())
        for count in range(1, effort(10, 60)):
            await make_topic(calls, partition_count=count % 3 + 1)
            await publish(calls, *numbers(0, count))
            member = await member_of(calls)
            await member.settle(await member.delivery(), end=count // 2 + 1)
            await delete(calls)
            await ending(member.call)
        is_over.set()
        await watching
        assert max(lags) > 0


async def test_c29_deleted_and_made_again_at_once_a_group_that_hangs_on_reads_every_new_one(broker):
    """Whoever joins meanwhile reads one of the two whole, or is told; none waits in silence."""
    random = Random(SEED)
    async with calls_to(broker.address) as calls, Client(broker.address) as client:
        await make_topic(calls)
        values = list[bytes]()
        for round_ in range(effort(12, 120)):
            old, values = values, [b"%d:%d" % (round_, number) for number in range(5)]
            joining = [
                asyncio.create_task(read_five(client, random.random() / 50)) for _ in range(6)
            ]
            await asyncio.sleep(random.random() / 50)
            await delete(calls)
            await make_topic(calls)
            await publish(calls, *values)
            for found in await asyncio.gather(*joining):
                assert found in ([None], old, values), (round_, found)
            async with client.consumer("g", "a", follow=False) as consumer:
                seen = [record.value async for record in consumer]
            assert seen == values, round_
            [one] = await client.admin.get_offsets("g")
            assert (one.committed_offset, one.lag, one.leased_count) == (5, 0, 0)


async def read_five(client: Client, begin_after_s: float) -> list[bytes | None]:
    """Joins a group of its own and returns the five records; [None] if it is told it is gone."""
    await asyncio.sleep(begin_after_s)
    group = f"own-{id(asyncio.current_task())}"
    try:
        async with (
            asyncio.timeout(ENDS_WITHIN_S + 5),
            client.consumer(group, "a") as consumer,
        ):
            return [(await anext(consumer)).value for _ in range(5)]
    except NotFoundError:
        return [None]


@pytest.mark.timeout(effort(120, 600))  # 60 starts in full
async def test_c29_after_a_kill_during_a_deletion_a_group_knows_as_much_as_there_is(broker):
    random = Random(SEED)
    async with Client(broker.address) as client:
        for round_ in range(effort(2, 30)):
            topic = await client.admin.create_topic("a", PARTITIONS)
            async with client.producer("a") as producer:
                for partition in range(PARTITIONS):
                    await producer.send_many([b"0", b"1"], partition=partition)
            async with client.consumer("g", "a", auto_settle=False) as consumer:
                for _ in range(PARTITIONS):
                    consumer.acknowledge(await anext(consumer))
                await consumer.flush()
                before = await places_of(client)
                deleting = asyncio.create_task(client.admin.delete_topic("a"))
                await asyncio.wait({deleting}, timeout=random.random() / 4)
                is_answered = deleting.done()
                broker.kill()
                deleting.cancel()
                await asyncio.gather(deleting, return_exceptions=True)
                broker.start()
                topics = await client.admin.list_topics()
                assert topics in ([], [topic]), round_
                assert not (topics and is_answered), "back from the dead"
                assert await places_of(client) == (before if topics else {})
                if topics:  # the consumer is back in its group, and is told when it is gone
                    await becomes_true(lambda: consumer.stats().joined_count > 1, "it is back")
                    await client.admin.delete_topic("a")
                error = await error_of(read_out(consumer))
                assert isinstance(error, NotFoundError), error
            broker.kill()
            broker.start()
            assert await client.admin.list_topics() == []
            assert await places_of(client) == {}
            await client.admin.create_topic("a", 1)
            await client.producer("a").publish(b"new")
            async with client.consumer("g", "a", follow=False) as consumer:
                assert [(one.offset, one.value) async for one in consumer] == [(0, b"new")]
            await client.admin.delete_topic("a")


async def places_of(client: Client) -> dict[int, int | None]:
    """Returns the committed offsets of the group by partition."""
    return {one.partition: one.committed_offset for one in await client.admin.get_offsets("g")}
