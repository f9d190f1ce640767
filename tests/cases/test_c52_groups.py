"""C52: a stop in good order, of the broker and of a worker: nothing counts against a record."""

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from signal import Signals

import grpc
import pytest
from server.calls import ending
from server.members import ACK, REJECT, Delivered, member_of, member_on, publish

from cases.grouped import calls_to, check_nothing_left, group_of, letters_of, make_topic
from cases.stopped_writer import Writer
from cases.watching import becomes_true
from logbroker.client import Client
from logbroker.client.blocking import BlockingClient
from logbroker.group.settings import GroupSettings, Order
from logbroker.storage.file import paths
from logbroker.testing.running_broker import BrokerProcess
from logbroker.v1 import consume_service_pb2 as pb
from logbroker.v1 import dead_letter_service_pb2 as dlq
from logbroker.v1 import group_pb2

GRACE_S = 5
EXIT_WITHIN_S = GRACE_S + 1
STREAM_COUNT = 50
WRITER_COUNT = 5
"""Of each of the two kinds."""
LETTER_COUNT = 40
REDRIVEN_A_SECOND = 10
HELD_COUNT = 5
"""By calls; as many by streams."""
NONE = group_pb2.ORDER_NONE

pytestmark = pytest.mark.slow


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    grace = ["--set", f"listen.stop_grace_ms={GRACE_S * 1_000}"]
    with BrokerProcess(tmp_path / "data", *grace) as started:
        yield started


async def make_dead_letters(calls) -> None:
    """Lets group `r` fail at all of topic `r`."""
    await make_topic(calls, "r")
    await publish(calls, *[b"%d" % number for number in range(LETTER_COUNT)], topic="r")
    async with member_on(calls, "r", topics=("r",), order=NONE) as member:
        for held in await member.take(LETTER_COUNT):
            await member.settle(held, REJECT, reason="bad")


async def find_redrive(calls, redrive_id: str):
    request = dlq.GetRedriveRequest(redrive_id=redrive_id)
    return (await calls.dead_letters.GetRedrive(request)).redrive


async def acknowledge_until_the_end(address: str) -> dict[int, bool]:
    """Acknowledges records of topic `t`, one by one; returns whether each was confirmed."""
    confirmed: dict[int, bool] = {}
    async with calls_to(address) as calls:
        member = await member_of(calls, "s", topics=("t",), order=NONE, limits=20)
        try:
            while True:
                held = await member.delivery()
                for offset in held.offsets:
                    confirmed[offset] = False
                    result = await member.settle(held, ACK, offset, offset + 1)
                    confirmed[offset] = not result.HasField("error")
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            return confirmed


@pytest.mark.parametrize(
    "signals",
    [[Signals.SIGTERM], [Signals.SIGINT], [Signals.SIGTERM, Signals.SIGTERM]],
    ids=["SIGTERM", "SIGINT", "SIGTERM-twice"],
)
async def test_c52_a_stop_ends_members_and_counts_nothing_against_what_they_hold(
    broker, tmp_path, signals
):
    async with calls_to(broker.address) as calls:
        for topic in ("t", "h", "idle"):
            await make_topic(calls, topic)
        await make_dead_letters(calls)
        await publish(calls, *[b"h%d" % n for n in range(2 * HELD_COUNT)], topic="h")
        settings = {"order": NONE, "max_failures": 1}  # a failure would be a dead letter
        idle = [
            await member_of(calls, "i", topics=("idle",)) for _ in range(STREAM_COUNT - HELD_COUNT)
        ]
        holding = [
            await member_of(calls, "h", topics=("h",), limits=1, **settings)
            for _ in range(HELD_COUNT)
        ]
        held = [await member.delivery() for member in holding]
        lease = pb.LeaseRequest(group="h", topics=["h"])
        held += [Delivered(await calls.consume.Lease(lease)) for _ in range(HELD_COUNT)]
        assert sorted(each.offsets[0] for each in held) == list(range(2 * HELD_COUNT))
        polling = calls.consume.Lease(pb.LeaseRequest(group="i", topics=["idle"], wait_ms=60_000))
        which = dlq.DeadLetterFilter(group="r", topic="r")
        request = dlq.StartRedriveRequest(filter=which, records_per_second=REDRIVEN_A_SECOND)
        redrive_id = (await calls.dead_letters.StartRedrive(request)).redrive.redrive_id
        writers = [Writer(f"{kind}{n}") for kind in "ab" for n in range(WRITER_COUNT)]
        writing = [
            asyncio.create_task(
                (each.produce if n < WRITER_COUNT else each.publish)(broker.address)
            )
            for n, each in enumerate(writers)
        ]
        settling = asyncio.create_task(acknowledge_until_the_end(broker.address))
        await becomes_true(
            lambda: all(len(each.acked) > 5 for each in writers[WRITER_COUNT:]), "writers write"
        )
        assert (await find_redrive(calls, redrive_id)).state == "running"

        started = time.monotonic()
        for number in signals:
            broker.send(number)
        assert await asyncio.to_thread(broker.wait) == 0
        took_s = time.monotonic() - started
        print(f"ended after {took_s:.2f} s")
        assert took_s < EXIT_WITHIN_S
        for call in [*(member.call for member in idle + holding), polling]:
            code, info, _ = await ending(call)
            assert (code.name, info.reason) == ("UNAVAILABLE", "SHUTTING_DOWN")
        await asyncio.gather(*writing)
        confirmed = await settling
    assert (tmp_path / "data" / paths.CLEAN).exists()

    await asyncio.to_thread(broker.start)
    async with calls_to(broker.address) as calls, Client(broker.address) as client:
        assert (await client.admin.get_stats())["torn_bytes"] == 0
        redrive = await find_redrive(calls, redrive_id)
        assert (redrive.state, redrive.selected_count) == ("running", LETTER_COUNT)
        [one] = (await group_of(calls, "h")).progress
        assert (one.lag, one.failed_count, one.leased_count) == (2 * HELD_COUNT, 0, 0)
        assert await letters_of(calls, "h", "h") == []
        async with member_on(calls, "h", topics=("h",)) as member:
            for each in await member.take(2 * HELD_COUNT):
                assert set(each.failures) == {0}
                assert set(each.numbers) == {2}, "delivered before, and that is counted"
                await member.settle(each)
        await check_nothing_left(calls, "h")

        again = await offsets_left(calls, "s", "t")
        assert not {offset for offset, was in confirmed.items() if was} & again
        seen: set[bytes] = set()
        async with member_on(calls, "r", topics=("r",), order=NONE) as member:
            while len(seen) < LETTER_COUNT:
                for each in await member.take(1):
                    assert {one.redrives for one in each.delivery.ranges} == {1}
                    seen |= set(each.values)
                    await member.settle(each)
        await becomes_true(lambda: has_ended(calls, redrive_id), "the redrive ends")
        assert await letters_of(calls, "r", "r") == []
        async with client.reader("t") as reader:
            offsets = {record.value: record.offset async for record in reader}
        acked = {value: offset for each in writers for value, offset in each.acked.items()}
        assert {value: offsets.get(value) for value in acked} == acked


async def has_ended(calls, redrive_id: str) -> bool:
    found = await find_redrive(calls, redrive_id)
    return (found.state, found.redriven_count) == ("done", LETTER_COUNT)


async def offsets_left(calls, group: str, topic: str) -> set[int]:
    """Returns what the group is still given of a topic."""
    found: set[int] = set()
    async with member_on(calls, group, topics=(topic,), limits=1_000) as member:
        while (await group_of(calls, group)).progress[0].lag:
            held = await member.delivery()
            found |= set(held.offsets)
            for offset in held.offsets:
                await member.settle(held, ACK, offset, offset + 1)
    return found


@pytest.mark.parametrize("order", list(Order))
async def test_c52_a_worker_that_stops_finishes_what_is_begun_and_gives_the_rest_back_at_once(
    broker, order
):
    has_begun, may_end = asyncio.Event(), asyncio.Event()

    async def handler(record) -> None:
        has_begun.set()
        await may_end.wait()

    async with calls_to(broker.address) as calls, Client(broker.address) as client:
        await make_topic(calls)
        await client.admin.create_group("g", GroupSettings(order=order))
        await publish(calls, *[b"%d" % n for n in range(6)], keys=[b"%d" % n for n in range(6)])
        worker = client.worker("g", "a", handler, concurrency=1)
        running = asyncio.create_task(worker.run())
        await has_begun.wait()
        await becomes_true(lambda: worker.stats().delivered_count == 6, "5 are prefetched")
        worker.stop()
        took_s = await becomes_true(lambda: leased(calls, 1), "the 5 are given back")
        print(f"given back after {took_s:.3f} s")
        assert not running.done(), "while the handler is busy"
        may_end.set()
        async with asyncio.timeout(5):
            await running
        stats = worker.stats()
        assert (stats.done_count, stats.retry_count, stats.lost_count) == (1, 0, 0)
        await check_the_rest_comes(calls)


@pytest.mark.parametrize("how", ["stop", "exit"])
async def test_c52_a_worker_without_an_event_loop_stops_as_well(broker, how):
    has_begun, may_end = threading.Event(), threading.Event()

    def handler(record) -> None:
        has_begun.set()
        may_end.wait()

    def work(client: BlockingClient, worker) -> None:
        if how == "stop":
            worker.run()
            return
        with worker:
            has_begun.wait()

    async with calls_to(broker.address) as calls:
        await make_topic(calls)
        with BlockingClient(broker.address) as client:
            worker = client.worker("g", "a", handler, concurrency=1)
            thread = threading.Thread(target=work, args=(client, worker))
            thread.start()
            await becomes_true(lambda: has_member(calls), "it is there")
            await publish(calls, *[b"%d" % n for n in range(6)])
            await asyncio.to_thread(has_begun.wait)
            if how == "stop":
                await becomes_true(lambda: worker.stats().delivered_count == 6, "5 are prefetched")
                worker.stop()
            await becomes_true(lambda: leased(calls, 1), "what is not begun is given back")
            assert thread.is_alive(), "while the handler is busy"
            may_end.set()
            await asyncio.to_thread(thread.join, 5)
            assert not thread.is_alive()
            assert worker.stats().done_count == 1
        await check_the_rest_comes(calls)


async def has_member(calls) -> bool:
    try:
        return len((await group_of(calls)).members) == 1
    except grpc.aio.AioRpcError:
        return False


@pytest.mark.parametrize("order", list(Order))
async def test_c52_a_consumer_that_leaves_gives_what_it_has_not_handed_out_back_at_once(
    broker, order
):
    async with calls_to(broker.address) as calls, Client(broker.address) as client:
        await make_topic(calls)
        await client.admin.create_group("g", GroupSettings(order=order))
        await publish(calls, *[b"%d" % n for n in range(6)], keys=[b"%d" % n for n in range(6)])
        async with client.consumer("g", "a") as consumer:
            record = await anext(consumer)
            await becomes_true(lambda: consumer.stats().delivered_count == 6, "all have come")
            consumer.acknowledge(record)  # on its way, as the consumer leaves
        assert await leased(calls, 0)
        await check_the_rest_comes(calls)


async def leased(calls, count: int) -> bool:
    [one] = (await group_of(calls)).progress
    return one.leased_count == count


async def check_the_rest_comes(calls) -> None:
    """Returns once another member has settled the five others; none of them has failed."""
    [one] = (await group_of(calls)).progress
    assert (one.lag, one.failed_count, one.leased_count) == (5, 0, 0)
    came: list[int] = []
    async with member_on(calls) as member:
        while len(came) < 5:
            held = await member.delivery()
            assert set(held.failures) == {0}
            assert set(held.numbers) <= {1, 2}
            came += held.offsets
            for offset in held.offsets:
                await member.settle(held, ACK, offset, offset + 1)
    assert len(set(came)) == 5
    await check_nothing_left(calls)
