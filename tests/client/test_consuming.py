"""Consumers and workers against a real broker in memory."""

import asyncio
import itertools
import threading
from collections import Counter, defaultdict
from contextlib import suppress
from random import Random

import pytest

from client.brokers import RestartableBroker, client_of_broker, send_all
from logbroker.client import Client, DeadLetterFilter, Reject, Retry
from logbroker.errors import ConflictError, PreconditionError
from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import GroupSettings, Order
from logbroker.v1 import consume_service_pb2 as pb

SOON = RetryPolicy(initial_ms=1, max_ms=2, max_failures=3)
HOW_LONG_S = 60
"""What has not ended by then never will."""


async def fill(client: Client, count: int, *, keys: int = 0) -> None:
    async with client.producer("t") as producer:
        values = [b"%d" % number for number in range(count)]
        names = [b"k%d" % (number % keys) for number in range(count)] if keys else None
        await (await producer.send_many(values, names))


@pytest.mark.parametrize("order", list(Order))
async def test_a_group_gets_every_record_once_and_is_done_then(order):
    async with client_of_broker(3) as client:
        await fill(client, 1_000, keys=20)
        async with client.consumer("g", "t", order=order, follow=False) as consumer:
            got = [record.value async for record in consumer]
        assert Counter(got) == Counter(b"%d" % number for number in range(1_000))
        progress = await client.admin.get_offsets("g")
        assert [one.lag for one in progress] == [0, 0, 0]
        async with client.consumer("g", "t", follow=False) as consumer:
            assert [record async for record in consumer] == []


async def test_the_order_that_is_asked_for_must_be_the_group_s():
    async with client_of_broker() as client:
        await client.admin.create_group("g", GroupSettings(order=Order.KEY))
        with pytest.raises(PreconditionError):
            async with client.consumer("g", "t", order="none"):
                pass


async def test_what_is_not_settled_comes_again_after_leaving_and_is_not_counted_as_failed():
    async with client_of_broker() as client:
        await fill(client, 10)
        async with client.consumer("g", "t") as consumer:
            first = [(await anext(consumer)).offset for _ in range(4)]
        async with client.consumer("g", "t", follow=False) as consumer:
            rest = [record async for record in consumer]
        assert first == [0, 1, 2, 3]
        assert [record.offset for record in rest] == [3, 4, 5, 6, 7, 8, 9]
        assert [record.failures for record in rest] == [0] * 7
        assert rest[0].delivery_number == 2


async def test_in_partition_order_a_retry_holds_up_what_is_behind_it():
    async with client_of_broker() as client:
        await fill(client, 10)
        seen = []
        async with client.consumer("g", "t", follow=False, auto_settle=False) as consumer:
            async for record in consumer:
                seen.append((record.offset, record.failures))
                if record.offset == 3 and record.failures < 2:
                    consumer.retry(record, 0, "not yet")
                else:
                    consumer.acknowledge(record)
        assert seen == [
            (0, 0), (1, 0), (2, 0), (3, 0), (3, 1), (3, 2),
            *[(offset, 0) for offset in range(4, 10)],
        ]  # fmt: skip


async def test_at_most_once_a_record_that_was_handed_out_never_comes_again():
    async with client_of_broker() as client:
        await fill(client, 10)
        async with client.consumer("g", "t", settle="before") as consumer:
            assert (await anext(consumer)).offset == 0
        async with client.consumer("g", "t", settle="before", follow=False) as consumer:
            assert [record async for record in consumer] == []


@pytest.mark.parametrize("order", list(Order))
async def test_workers_keep_the_order_and_handle_everything_whatever_fails(order):
    random, seen, left = Random(order), defaultdict(list), set(range(300))
    is_done = asyncio.Event()

    async def handle(record):
        for _ in range(random.randrange(3)):
            await asyncio.sleep(0)
        if random.random() < 0.1 and record.failures < 2:
            raise Retry(0, "bad luck")
        place = record.key if order is Order.KEY else record.partition
        seen[place].append(record.offset)
        left.discard(int(record.value))
        if not left:
            is_done.set()

    settings = GroupSettings(order=order, retry=SOON)
    async with client_of_broker(2) as client:
        await fill(client, 300, keys=7)
        options = {"settings": settings, "concurrency": 4, "max_outstanding_records": 50}
        async with (
            client.worker("g", "t", handle, **options) as first,
            client.worker("g", "t", handle, **options) as second,
        ):
            await is_done.wait()
        assert sum(one.lag for one in await client.admin.get_offsets("g")) == 0
        stats = first.stats(), second.stats()
        assert sum(one.done_count for one in stats) >= 300
        if order is not Order.NONE:
            for offsets in seen.values():
                assert sorted(set(offsets)) == list(dict.fromkeys(offsets))


async def test_rejected_and_exhausted_records_become_dead_letters_with_their_reason():
    async def handle(record):
        if record.offset == 2:
            raise Reject("hopeless")
        if record.offset == 5:
            raise ValueError("no departure time")
        handled.append(record.offset)
        if len(handled) == 8:
            is_done.set()

    handled, is_done = [], asyncio.Event()
    async with client_of_broker() as client:
        await fill(client, 10)
        async with client.worker("g", "t", handle, settings=GroupSettings(retry=SOON)):
            await is_done.wait()
        letters = [record async for record in client.reader("t.g.dlq")]
        reasons = [one.header("logbroker-dead-letter-reason") for one in letters]
        assert reasons == [b"hopeless", b"ValueError: no departure time"]
        assert handled == [0, 1, 3, 4, 6, 7, 8, 9]


async def test_cancelled_waits_lose_nothing_and_leave_nothing_leased():
    async with client_of_broker() as client:
        random, got = Random(3), []
        async with client.consumer("g", "t", order="none") as consumer, client.producer("t") as out:
            sending = asyncio.create_task(send_all(out, [b"%d" % n for n in range(500)]))
            while len(got) < 500:
                waiting = asyncio.create_task(anext(consumer))
                for _ in range(random.randrange(5)):
                    await asyncio.sleep(0)
                waiting.cancel()
                with suppress(asyncio.CancelledError):
                    got.append(int((await waiting).value))
            await sending
            await consumer.commit()
        assert sorted(got) == list(range(500))
        assert sum(one.lag for one in await client.admin.get_offsets("g")) == 0


async def test_after_a_restart_of_the_broker_a_consumer_goes_on_where_its_group_is():
    async with RestartableBroker() as broker, Client(broker.address) as client:
        await client.admin.create_topic("t")
        await fill(client, 10)
        async with client.consumer("g", "t", auto_settle=False) as consumer:
            records = [await anext(consumer) for _ in range(5)]
            for record in records[:3]:
                await consumer.acknowledge(record)
            await broker.stop()
            await broker.start()
            again = await anext(consumer)
            assert (again.offset, again.failures) == (3, 0)
            with pytest.raises(ConflictError):
                await consumer.acknowledge(records[3])
            assert records[3].lease_lost
            await consumer.acknowledge(again)
            with pytest.raises(ConflictError):
                await consumer.commit()  # of the records that were lost
        assert (await client.admin.get_offsets("g"))[0].committed_offset == 4


async def test_a_worker_that_stops_gives_back_what_it_has_not_begun():
    may_end, has_begun = asyncio.Event(), asyncio.Event()

    async def handle(record):
        has_begun.set()
        await may_end.wait()

    async with client_of_broker() as client:
        await fill(client, 6)
        worker = client.worker("g", "t", handle)
        running = asyncio.create_task(worker.run())
        await has_begun.wait()
        worker.stop()
        may_end.set()
        await running
        (progress,) = await client.admin.get_offsets("g")
        assert (progress.committed_offset, progress.leased_count, progress.failed_count) == (
            1,
            0,
            0,
        )


@pytest.mark.parametrize("order", list(Order))
async def test_without_following_it_ends_after_the_dead_letters_that_were_redriven(order):
    async with asyncio.timeout(HOW_LONG_S), client_of_broker(2) as client:
        await fill(client, 20, keys=5)
        options = {"order": order, "auto_settle": False, "follow": False}
        async with client.consumer("g", "t", **options) as consumer:
            async for record in consumer:
                if record.offset % 2:
                    consumer.acknowledge(record)
                else:
                    consumer.reject(record, "even")
        await client.admin.start_redrive(DeadLetterFilter(group="g", topic="t"))
        while (
            sum(one.redriven_count for one in (await client.admin.get_group("g")).dead_letters) < 10
        ):
            pass
        async with client.consumer("g", "t", **options) as consumer:
            again = []
            async for record in consumer:
                consumer.acknowledge(record)
                again.append(record.offset)
        assert len(again) == 10
        assert not [offset for offset in again if offset % 2]


@pytest.mark.parametrize("order", list(Order))
async def test_without_following_it_ends_whatever_is_answered_in_whatever_order(order):
    random = Random(order)
    settings = GroupSettings(order=order, retry=SOON)
    async with asyncio.timeout(HOW_LONG_S), client_of_broker(2) as client:
        await fill(client, 60, keys=7)
        options = {"settings": settings, "auto_settle": False, "follow": False}
        async with client.consumer("g", "t", **options) as consumer:
            kept, ended = [], set()
            async for record in consumer:
                kept.append(record)
                for _ in range(random.randrange(3)):
                    one = kept.pop(random.randrange(len(kept))) if kept else record
                    verb = random.choice((consumer.retry, consumer.release, consumer.reject))
                    (verb if random.random() < 0.3 else consumer.acknowledge)(one)
                if len(kept) > 10 or consumer.stats().buffered_count == 0:
                    for one in kept:
                        consumer.acknowledge(one)
                    kept.clear()
                ended.add((record.partition, record.offset))
        assert len(ended) == 60


@pytest.mark.slow
async def test_where_a_thread_hangs_another_worker_does_what_is_left_of_its_partition():
    may_end, is_in, done = threading.Event(), threading.Event(), []

    def hang(record):
        is_in.set()
        may_end.wait(HOW_LONG_S)

    async def handle(record):
        done.append((record.offset, record.failures))

    settings = GroupSettings(lease_ms=1_000, retry=SOON)
    async with asyncio.timeout(HOW_LONG_S), client_of_broker() as client:
        await fill(client, 10)
        try:
            options = {"settings": settings, "concurrency": 2, "max_processing_ms": 100}
            async with client.worker("g", "t", hang, **options):
                await asyncio.to_thread(is_in.wait)
                async with client.worker("g", "t", handle):
                    while (await client.admin.get_group("g")).lag:
                        pass
                may_end.set()
        finally:
            may_end.set()
    assert done == [(0, 1), *((offset, 0) for offset in range(1, 10))]


@pytest.mark.parametrize("order", list(Order))
async def test_what_a_vanished_member_held_is_not_left_behind_where_there_is_always_more_to_do(
    order,
):
    """It is delivered alone, so a member must hold nothing else for once, of no partition."""
    async with client_of_broker(3) as client, asyncio.timeout(20):
        await client.admin.create_group("g", GroupSettings(order=order, retry=SOON))
        lost = [b"lost %d" % number for number in range(5)]
        async with client.producer("t") as producer:
            await (await producer.send_many(lost, lost, partition=0))
        victim = client.consumer("g", "t", max_outstanding_records=len(lost))
        async with victim:
            for _ in lost:
                await anext(victim)
            came: Counter[bytes | None] = Counter()
            all_came = asyncio.Event()

            async def handle(record) -> None:
                await asyncio.sleep(0.002)
                came[record.value] += 1
                if all(came[value] for value in lost[1:]):
                    all_came.set()

            async def flood() -> None:
                async with client.producer("t", linger_ms=0) as producer:
                    for number in itertools.count():
                        values = [b"%d" % number] * 10
                        await producer.send_many(values, values, partition=1 + number % 2)
                        await asyncio.sleep(0.002)

            flooding = asyncio.create_task(flood())
            worker = client.worker("g", "t", handle, concurrency=2, max_outstanding_records=20)
            async with worker:
                while worker.stats().done_count < 50:  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
                await victim._member.end()  # without a word
                await all_came.wait()
                assert came.total() > 50
            flooding.cancel()


@pytest.mark.parametrize("order", ["key", "none"])
async def test_calls_without_a_stream_get_records_of_every_partition(order):
    async with client_of_broker(3) as client:
        await client.admin.create_group("g", GroupSettings(order=Order(order)))
        async with client.producer("t") as producer:
            for partition in range(3):
                values = [b"%d" % number for number in range(200)]
                await producer.send_many(values, values, partition=partition)
        request = pb.LeaseRequest(group="g", topics=["t"])
        found = Counter()
        for _ in range(60):
            leased = await client._connection.call(
                "ConsumeService/Lease", request, pb.LeaseResponse
            )
            found[leased.delivery.partition] += 1
        assert found.keys() == {0, 1, 2}, "not the first until there is no more of it"
