"""The journal of groups on a disk that fails: nothing is answered that it does not keep."""

import asyncio
import errno
import gc
import inspect
from contextlib import asynccontextmanager

import pytest
from cases.data_dirs import open_broker_on

from logbroker.broker.dead_letter_view import DeadLetterFilter
from logbroker.broker.lease import LeaseSpec
from logbroker.broker.membership import MemberSpec
from logbroker.broker.offsets import Commit
from logbroker.broker.settle import Settlement
from logbroker.errors import UnavailableError
from logbroker.group.record_state import Cause
from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import GroupSettings, Order, Start
from logbroker.group.start_position import Position
from logbroker.testing.clock import ManualClock
from logbroker.testing.faulty_disk import FaultyDisk
from logbroker.topic.topic import TopicSettings
from tests.slow_engine import PausedEngine

from .brokers import batch_of, next_delivery, topic_on, values_of
from .grouped import delivered, member_on, settle

LETTERS = DeadLetterFilter(group="g", topic="a")


@asynccontextmanager
async def broker_in(data_dir, disk):
    clock = ManualClock()
    async with open_broker_on(data_dir, clock, disk) as broker:
        broker.clock = clock
        yield broker


VERBS = {
    "create_group": lambda it: it.groups.create("h", GroupSettings()),
    "get_group": lambda it: it.groups.get("g"),
    "group_members": lambda it: it.groups.members("g"),
    "group_progress": lambda it: it.groups.progress("g"),
    "group_dead_letters": lambda it: it.groups.dead_letters("g"),
    "list_groups": lambda it: it.groups.list_page(0, ""),
    "update_group": lambda it: it.groups.update("g", GroupSettings(lease_ms=1_000)),
    "delete_group": lambda it: it.groups.delete("g", is_forced=True),
    "commit_offsets": lambda it: it.groups.commit_offsets("g", [Commit("a", "", 0, 1, False)]),
    "reset_offsets": lambda it: it.groups.reset_offsets("g", "a", [], Position(Start.EARLIEST)),
    "explain": lambda it: it.groups.explain("g", "a", 0, 0),
    "join": lambda it: it.join(MemberSpec(group="g", topics=("a",))),
    "lease": lambda it: it.lease(LeaseSpec(group="g", topics=("a",))),
    "settle": lambda it: it.settle("g", [Settlement(1, 0, 1, Cause.ACKNOWLEDGE)]),
    "extend": lambda it: it.extend("g", [(1, 0)]),
    "list_dead_letters": lambda it: it.dead_letters.list_page(
        LETTERS, with_resolved=True, page_size=0, page_token=""
    ),
    "get_dead_letter": lambda it: it.dead_letters.get(LETTERS, 0, 0),
    "resolve_dead_letters": lambda it: it.dead_letters.resolve(LETTERS),
    "copy_dead_letters": lambda it: it.dead_letters.copy(LETTERS, "b"),
    "start_redrive": lambda it: it.dead_letters.start_redrive(LETTERS),
    "get_redrive": lambda it: it.dead_letters.get_redrive("1"),
    "list_redrives": lambda it: it.dead_letters.list_redrives("g"),
    "cancel_redrive": lambda it: it.dead_letters.cancel_redrive("1"),
}


async def reason_of(call):
    """Returns why the call is refused."""
    with pytest.raises(UnavailableError) as raised:
        await _called(call)
    return raised.value.reason


async def _called(call):
    found = call()
    return await found if inspect.isawaitable(found) else found


@pytest.mark.slow
@pytest.mark.parametrize("loses_power", [False, True])
async def test_what_a_failed_fsync_leaves_open_is_never_acknowledged(tmp_path, loses_power):
    disk = FaultyDisk(tmp_path)
    async with broker_in(tmp_path, disk) as broker:
        await broker.create_topic("a", 1, TopicSettings())
        await broker.produce("a", "", 0, batch_of(*(b"%d" % at for at in range(10))))
        member = await broker.join(MemberSpec(group="g", topics=("a",)))
        token, *_ = await delivered(broker, member)
        [kept] = await settle(broker, member, Cause.ACKNOWLEDGE, token, 0, 3)
        assert (kept.committed, kept.error) == (3, None)
        disk.fail("sync", errno.EIO)
        waiting = asyncio.ensure_future(
            broker.lease(LeaseSpec(group="g", topics=("a",), wait_ms=60_000))
        )
        [lost] = await settle(broker, member, Cause.ACKNOWLEDGE, token, 3, 6)
        assert lost.error.reason == "STORAGE_FAILED"
        assert lost.error.may_retry
        assert not lost.error.no_effect, "it may be on the disk, or not"
        for verb, call in VERBS.items():
            assert await reason_of(lambda call=call: call(broker)) == "STORAGE_FAILED", verb
        assert await reason_of(lambda: waiting) == "STORAGE_FAILED"
        assert await reason_of(member.next) == "STORAGE_FAILED"
        await broker.leave(member, has_vanished=True)
        await broker.clock.advance(60_000)
        stats = broker.stats()
        assert (stats.failed_journals, stats.member_count) == (("__groups",), 0)
        assert await broker.group_stats() == []
        await broker.produce("a", "", 0, batch_of(b"10"))
        assert len(await values_of(broker)) == 11, "everything else goes on"
        (disk.lose_power if loses_power else disk.kill)()
    async with broker_in(tmp_path, None) as broker, member_on(broker) as member:
        assert broker.stats().failed_journals == ()
        found = await next_delivery(broker, member)
        assert found.runs[0].first in ((3,) if loses_power else (3, 6))
        [done] = await settle(broker, member, Cause.ACKNOWLEDGE, found.token, 3, 11)
        assert done.error is None or not loses_power


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
async def test_a_delivery_that_could_not_be_journaled_at_once_is_counted_after_a_crash(
    tmp_path, code
):
    """It was dropped, so the number of the next one came twice."""
    disk, spec = FaultyDisk(tmp_path), LeaseSpec(group="g", topics=("a",))
    async with broker_in(tmp_path, disk) as broker:
        await broker.create_topic("a", 1, TopicSettings())
        await broker.produce("a", "", 0, batch_of(b"v"))
        await broker.groups.create("g", GroupSettings(order=Order.NONE))
        deliveries = []
        for cause in (Cause.RELEASE, Cause.RELEASE, Cause.RETRY):
            deliveries.append(await broker.lease(spec))
            if len(deliveries) == 2:
                disk.fail("write", code)
            await broker.clock.advance(50)
            await broker.settle("g", [Settlement(deliveries[-1].token, 0, 1, cause)])
        disk.kill()
    async with broker_in(tmp_path, None) as broker:
        await broker.clock.advance(60_000)
        deliveries.append(await broker.lease(spec))
    assert [found.runs[0].deliveries for found in deliveries] == [1, 2, 3, 4]


@asynccontextmanager
async def leased(clock):
    """Yields a broker, its journal, a member, and the token of its lease on ten records."""
    engine = PausedEngine(clock)
    async with topic_on(engine, clock) as broker:
        await broker.produce("a", "", 0, batch_of(*[b"v"] * 10))
        async with member_on(broker) as member:
            token, *_ = await delivered(broker, member)
            yield broker, engine.journal, member, token
            engine.journal.is_paused = False
            engine.journal.flush()


async def test_an_answer_that_changes_nothing_waits_for_what_it_rests_on():
    clock = ManualClock()
    async with leased(clock) as (broker, journal, member, token):
        journal.is_paused = True
        first = asyncio.ensure_future(settle(broker, member, Cause.ACKNOWLEDGE, token, 0, 3))
        calls = [
            settle(broker, member, Cause.ACKNOWLEDGE, token, 0, 3),
            settle(broker, member, Cause.RETRY, token, 0, 3),
            settle(broker, member, Cause.ACKNOWLEDGE, token + 7, 0, 3),
            broker.groups.commit_offsets("g", [Commit("a", "", 0, 2, True)]),
        ]
        others = [asyncio.ensure_future(call) for call in calls]
        await clock.advance(0)
        assert not first.done()
        assert not any(other.done() for other in others)
        journal.flush()
        await clock.advance(0)
        assert first.done()
        [again], [late], [never], [automatic] = [await other for other in others]
        assert (again.error, again.committed) == (None, 3)
        assert [one.error.reason for one in (late, never)] == ["LEASE_LOST"] * 2
        assert (automatic.error, automatic.committed) == (None, 3)


async def test_nothing_is_left_unsaid_when_the_disk_loses_what_a_record_was_given_up_by():
    """Nobody waits for what an expired lease becomes; asyncio told of it, with a traceback."""
    clock, unsaid = ManualClock(), []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unsaid.append(context))
    engine = PausedEngine(clock)
    async with topic_on(engine, clock) as broker:
        once = GroupSettings(retry=RetryPolicy(max_failures=1), lease_ms=1_000)
        await broker.groups.create("g", once)
        await broker.produce("a", "", 0, batch_of(b"given up", b"lost"))
        async with member_on(broker) as member:
            token, *_ = await delivered(broker, member)
            await settle(broker, member, Cause.REJECT, token, 0, 1)
            engine.journal.is_paused = True
            await clock.advance(1_001)
            engine.journal.fail()
            await clock.advance(0)
            gc.collect()
    assert not unsaid


async def test_an_answer_that_rests_on_what_the_disk_lost_is_none():
    clock = ManualClock()
    async with leased(clock) as (broker, journal, member, token):
        journal.is_paused = True
        answers = [
            asyncio.ensure_future(settle(broker, member, Cause.ACKNOWLEDGE, token, 0, 3))
            for _ in range(2)
        ]
        await clock.advance(0)
        journal.fail()
        for answer in answers:
            [result] = await answer
            assert result.error.reason == "STORAGE_FAILED"
        assert await reason_of(lambda: broker.groups.get("g")) == "STORAGE_FAILED"
        await clock.advance(60_000)
        assert broker.stats().failed_journals == ("__groups",)


async def test_no_dead_letter_is_written_whose_record_may_come_again():
    clock = ManualClock()
    async with leased(clock) as (broker, journal, member, token):
        await settle(broker, member, Cause.REJECT, token, 0, 1, reason="kept")
        journal.is_paused = True
        answer = asyncio.ensure_future(
            settle(broker, member, Cause.REJECT, token, 1, 2, reason="lost")
        )
        await clock.advance(0)
        journal.fail()
        await clock.advance(60_000)
        assert (await answer)[0].error.reason == "STORAGE_FAILED"
        assert len(await values_of(broker, "a.g.dlq")) == 1


@pytest.mark.parametrize("order", list(Order))
async def test_members_that_leave_a_group_that_has_failed_do_no_harm(order):
    clock = ManualClock()
    engine = PausedEngine(clock)
    async with topic_on(engine, clock, partition_count=4) as broker:
        for partition in range(4):
            await broker.produce("a", "", partition, batch_of(*[b"v"] * 10))
        spec = MemberSpec(group="g", topics=("a",), settings=GroupSettings(order=order))
        members = [await broker.join(spec) for _ in range(3)]
        await next_delivery(broker, members[0])
        engine.journal.fail()
        [refused] = await broker.groups.commit_offsets("h", [Commit("a", "", 0, 1, False)])
        assert refused.error.reason == "STORAGE_FAILED"
        for member in members:
            assert await reason_of(member.next) == "STORAGE_FAILED"
            await broker.leave(member, has_vanished=True)
        await clock.advance(600_000)
        await broker.produce("a", "", 0, batch_of(b"v"))
