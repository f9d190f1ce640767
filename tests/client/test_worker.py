"""Workers against a scripted group: order, answers, long handlers, stopping."""

import asyncio
import threading

import pytest

from client.fake_group import fake_group
from logbroker.client import Reject, Retry
from logbroker.errors import InvalidError
from logbroker.testing.clock import ManualClock
from logbroker.v1 import consume_service_pb2 as pb
from logbroker.v1 import group_pb2

RETRY, REJECT, RELEASE = pb.OUTCOME_RETRY, pb.OUTCOME_REJECT, pb.OUTCOME_RELEASE


def values(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


class Gate:
    """A handler that stays in each record until the test lets it go."""

    def __init__(self) -> None:
        self.begun: list[tuple[int, int]] = []
        self.open: dict[tuple[int, int], asyncio.Future[None]] = {}
        self.changed = asyncio.Condition()

    async def __call__(self, record) -> None:
        place = record.partition, record.offset
        self.open[place] = asyncio.get_running_loop().create_future()
        async with self.changed:
            self.begun.append(place)
            self.changed.notify_all()
        try:
            await self.open[place]
        finally:
            del self.open[place]

    async def wait_begun(self, count: int) -> list[tuple[int, int]]:
        async with self.changed:
            await self.changed.wait_for(lambda: len(self.begun) >= count)
        return self.begun

    def let_go(self, partition: int, offset: int, error: Exception | None = None) -> None:
        future = self.open[partition, offset]
        future.set_exception(error) if error else future.set_result(None)


async def nothing(record) -> None:
    pass


async def settled(clock, member, count):
    """Returns once so many are acknowledged; time passes meanwhile, for what is gathered."""
    waiting = asyncio.ensure_future(member.wait_settled(count))
    while not waiting.done():
        await clock.advance(1)
        await asyncio.to_thread(int)  # threads and connections have their turn, too
    return waiting.result()


def _all(member):
    return [member.requests.get_nowait() for _ in range(member.requests.qsize())]


async def test_what_returns_is_done_and_what_raises_is_answered_by_what_it_raised():
    async def handle(record):
        match record.offset:
            case 1:
                raise Retry(500, "later")
            case 2:
                raise Reject("never")
            case 3:
                raise ValueError("no such flight")
            case 4:
                await asyncio.get_running_loop().create_task(cancelled())

    async def cancelled():
        raise asyncio.CancelledError

    async with (
        fake_group(group_pb2.ORDER_NONE) as (group, client),
        client.worker("g", "t", handle) as worker,
    ):
        member = await group.member()
        member.deliver(0, values(6))
        assert await member.wait_settled(2) == [0, 5]
        await member.wait_settled(3, RETRY)
        answers = {
            one.first_offset: (one.outcome, one.delay_ms, one.reason)
            for one in member.settlements
            if one.outcome != pb.OUTCOME_ACKNOWLEDGE
        }
        assert answers == {
            1: (RETRY, 500, "later"),
            2: (REJECT, 0, "never"),
            3: (RETRY, 0, "ValueError: no such flight"),
            4: (RETRY, 0, "its handler was cancelled"),
        }
        stats = worker.stats()
        assert (stats.done_count, stats.retry_count, stats.reject_count) == (2, 3, 1)


async def test_a_handler_may_be_decorated_and_called():
    async with fake_group(group_pb2.ORDER_NONE) as (group, client):
        seen = []

        @client.handles("g", "t", concurrency=2)
        async def note(record):
            seen.append(record.offset)

        async with note:
            member = await group.member()
            member.deliver(0, values(100))
            await member.wait_settled(100)
        assert sorted(seen) == list(range(100))
        assert list(member.opening.topics) == ["t"]


async def test_sync_handlers_run_in_threads():
    barrier = threading.Barrier(3)

    def handle(record):
        barrier.wait(10)

    async with (
        fake_group(group_pb2.ORDER_NONE) as (group, client),
        client.worker("g", "t", handle, concurrency=3),
    ):
        member = await group.member()
        member.deliver(0, values(6))
        assert sorted(await member.wait_settled(6)) == list(range(6))


async def test_in_partition_order_one_record_of_a_partition_is_handled_at_a_time():
    gate = Gate()
    async with fake_group() as (group, client), client.worker("g", "t", gate, concurrency=4):
        member = await group.member()
        member.deliver(0, values(2))
        member.deliver(0, values(2), token=2, partition=1)
        assert await gate.wait_begun(2) == [(0, 0), (1, 0)]
        gate.let_go(1, 0)
        assert await gate.wait_begun(3) == [(0, 0), (1, 0), (1, 1)]
        gate.let_go(0, 0)
        gate.let_go(1, 1)
        await gate.wait_begun(4)
        gate.let_go(0, 1)
        assert sorted(await member.wait_settled(4)) == [0, 0, 1, 1]


async def test_in_partition_order_what_is_behind_a_failure_waits_for_what_is_taken_back():
    gate = Gate()
    async with fake_group() as (group, client), client.worker("g", "t", gate):
        member = await group.member()
        member.confirms.clear()
        member.deliver(0, values(3))
        await gate.wait_begun(1)
        gate.let_go(0, 0, ValueError("no"))
        await member.was_asked.wait()
        assert gate.begun == [(0, 0)]
        member.take_back(1, 1, 3)
        member.confirms.set()
        await member.wait_settled(1, RETRY)
        member.deliver(0, values(3), token=2)
        for offset in range(3):
            await gate.wait_begun(offset + 2)
            gate.let_go(0, offset)
        assert await member.wait_settled(3) == [0, 1, 2]
        assert [offset for _, offset in gate.begun] == [0, 0, 1, 2]


async def test_in_key_order_one_record_of_a_key_is_handled_at_a_time():
    gate = Gate()
    async with (
        fake_group(group_pb2.ORDER_KEY) as (group, client),
        client.worker("g", "t", gate, concurrency=4),
    ):
        member = await group.member()
        member.deliver(0, values(4), keys=[b"a", b"a", b"b", b"a"])
        assert await gate.wait_begun(2) == [(0, 0), (0, 2)]
        gate.let_go(0, 0, ValueError("no"))
        await gate.wait_begun(3)
        assert gate.begun[-1] == (0, 1)
        assert member.settled(RETRY) == [0]
        gate.let_go(0, 1)
        gate.let_go(0, 2)
        await gate.wait_begun(4)
        gate.let_go(0, 3)
        assert sorted(await member.wait_settled(3)) == [1, 2, 3]


async def test_records_without_a_key_wait_for_nobody():
    gate = Gate()
    async with (
        fake_group(group_pb2.ORDER_KEY) as (group, client),
        client.worker("g", "t", gate, concurrency=4),
    ):
        member = await group.member()
        member.deliver(0, values(4))
        assert await gate.wait_begun(4) == [(0, 0), (0, 1), (0, 2), (0, 3)]
        for offset in range(4):
            gate.let_go(0, offset)
        await member.wait_settled(4)


async def test_stopping_gives_back_what_is_prefetched_at_once_and_finishes_what_runs():
    gate = Gate()
    async with fake_group() as (group, client):
        worker = client.worker("g", "t", gate)
        running = asyncio.create_task(worker.run())
        member = await group.member()
        member.deliver(0, values(6))
        await gate.wait_begun(1)
        worker.stop()
        assert await member.wait_settled(5, RELEASE) == [1, 2, 3, 4, 5]
        kinds = [member.requests.get_nowait().WhichOneof("request") for _ in range(2)]
        assert kinds == ["limits", "settle"], "what it gives back must not come to it again"
        assert not running.done()
        assert worker.stats().running_count == 1
        gate.let_go(0, 0)
        await running
        assert member.settled() == [0]
        assert gate.begun == [(0, 0)]
        with pytest.raises(InvalidError):
            await worker.run()


async def test_a_lease_is_extended_while_its_handler_runs_and_then_the_handler_is_cancelled():
    clock, gate = ManualClock(), Gate()
    async with (
        fake_group(group_pb2.ORDER_NONE, 3_000, clock=clock) as (group, client),
        client.worker("g", "t", gate, concurrency=2, max_processing_ms=5_000) as worker,
    ):
        member = await group.member()
        member.deliver(0, values(1))
        await gate.wait_begun(1)
        for _ in range(4):
            await clock.advance(1_000)
            extensions = (await member.wait_for("extend")).extend.extensions
            assert [one.token for one in extensions] == [1]
        await clock.advance(1_000)
        assert await member.wait_settled(1, RETRY) == [0]
        assert member.settlements[0].reason == "its handler took longer than 5000 ms"
        assert gate.open == {}
        assert worker.stats().late_count == 1
        member.deliver(1, values(1), token=2)
        await gate.wait_begun(2)
        gate.let_go(0, 1)
        assert await settled(clock, member, 1) == [1]


async def test_when_all_handlers_hang_other_members_get_what_is_prefetched():
    clock, begun, end = ManualClock(), threading.Event(), threading.Event()

    def handle(record):
        begun.set()
        end.wait(10)

    async with (
        fake_group(group_pb2.ORDER_NONE, clock=clock) as (group, client),
        client.worker("g", "t", handle, concurrency=1, max_processing_ms=5_000),
    ):
        member = await group.member()
        member.deliver(0, values(4))
        await asyncio.to_thread(begun.wait, 10)
        await clock.advance(5_000)
        assert await member.wait_settled(1, RETRY) == [0]
        assert await member.wait_settled(3, RELEASE) == [1, 2, 3]
        end.set()
        limits = [(await member.wait_for("limits")).limits for _ in range(2)]
        assert [one.max_outstanding_records for one in limits] == [0, 1_000]
        member.deliver(4, values(1), token=2)
        assert await settled(clock, member, 1) == [4]


async def test_in_partition_order_the_lease_of_a_thread_that_hangs_is_left_to_run_out():
    clock, begun, end = ManualClock(), threading.Semaphore(0), threading.Event()

    def handle(record):
        begun.release()
        if record.partition == 0:
            end.wait(10)

    async with (
        fake_group(group_pb2.ORDER_PARTITION, 3_000, clock=clock) as (group, client),
        client.worker("g", "t", handle, concurrency=2, max_processing_ms=5_000) as worker,
    ):
        member = await group.member()
        member.deliver(0, values(3))
        await asyncio.to_thread(begun.acquire)
        await clock.advance(3_000)
        await member.wait_for("extend")
        await clock.advance(2_000)
        assert worker.stats().late_count == 1
        member.deliver(0, values(1), partition=1, token=2)
        assert await settled(clock, member, 1) == [0], "others go on"
        _all(member)
        await clock.advance(2_000)
        member.take_back(1, 0, 3)
        member.deliver(1, values(1), partition=1, token=3)
        assert await settled(clock, member, 2) == [0, 1]
        assert 1 not in {each.token for one in _all(member) for each in one.extend.extensions}
        end.set()
        member.deliver(0, values(3), token=4)
        await settled(clock, member, 5)
    assert {(one.token, one.outcome) for one in member.settlements} == {
        (token, pb.OUTCOME_ACKNOWLEDGE) for token in (2, 3, 4)
    }


async def test_in_partition_order_a_cancelled_handler_is_answered_once_and_its_partition_goes_on():
    clock, gate = ManualClock(), Gate()
    async with (
        fake_group(group_pb2.ORDER_PARTITION, clock=clock) as (group, client),
        client.worker("g", "t", gate, concurrency=1, max_processing_ms=5_000) as worker,
    ):
        member = await group.member()
        member.deliver(0, values(1))
        await gate.wait_begun(1)
        await clock.advance(5_000)
        assert await member.wait_settled(1, RETRY) == [0]
        assert member.settlements[0].reason == "its handler took longer than 5000 ms"
        member.deliver(0, values(1), token=2)
        await gate.wait_begun(2)
        gate.let_go(0, 0)
        assert await settled(clock, member, 1) == [0]
        assert worker.stats().late_count == 1


@pytest.mark.parametrize("cancel_lost", [True, False])
async def test_a_handler_can_be_told_that_its_lease_is_lost(cancel_lost):
    told, records, is_in, may_end = asyncio.Event(), [], asyncio.Event(), asyncio.Event()

    async def handle(record):
        records.append(record)
        is_in.set()
        try:
            if record.offset == 0:
                await may_end.wait()
        except asyncio.CancelledError:
            told.set()
            raise

    async with (
        fake_group(group_pb2.ORDER_NONE) as (group, client),
        client.worker("g", "t", handle, cancel_lost=cancel_lost) as worker,
    ):
        member = await group.member()
        member.deliver(0, values(1))
        await is_in.wait()
        assert not records[0].lease_lost
        member.take_back(1, 0, 1)
        member.deliver(1, values(1), token=2)
        await member.wait_settled(1)
        assert records[0].lease_lost
        if cancel_lost:
            await told.wait()
        may_end.set()
    assert member.settled() == [1]
    assert worker.stats().lost_count >= 1


async def test_after_the_broker_restarts_the_worker_goes_on():
    gate = Gate()
    async with (
        fake_group(group_pb2.ORDER_NONE) as (group, client),
        client.worker("g", "t", gate, concurrency=1),
    ):
        member = await group.member()
        member.deliver(0, values(5))
        await gate.wait_begun(1)
        member.end()
        again = await group.member()
        gate.let_go(0, 0)
        again.deliver(0, values(2), token=7)
        for offset in range(2):
            await gate.wait_begun(offset + 2)
            gate.let_go(0, offset)
        assert await again.wait_settled(2) == [0, 1]
        assert gate.begun == [(0, 0), (0, 0), (0, 1)]


async def test_what_is_wrong_is_refused():
    async with fake_group() as (_, client):
        with pytest.raises(InvalidError):
            client.worker("g", "t", nothing, concurrency=0)
        with pytest.raises(InvalidError):
            client.worker("g", "t", nothing, max_processing_ms=0)
