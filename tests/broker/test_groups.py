"""Groups in the broker without a server: the journal, crashes, identities, deadlines."""

import pytest

from logbroker.broker.dead_letter_view import DeadLetterFilter
from logbroker.broker.membership import MemberSpec
from logbroker.broker.offsets import Commit
from logbroker.errors import ConflictError, UnavailableError
from logbroker.group.record_state import Cause
from logbroker.group.redrive import Selection
from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import AfterDeadLetter, GroupSettings, Order
from logbroker.storage.memory import MemoryEngine
from logbroker.testing.clock import ManualClock

from .brokers import (
    batch_of,
    broker_on,
    next_delivery,
    told_within,
    topic_on,
    values_of,
)
from .grouped import delivered, member_on, settle

LETTERS = DeadLetterFilter(group="g", topic="a")


async def test_the_journal_stays_short_and_a_start_knows_the_last_commit():
    clock = ManualClock()
    async with topic_on(clock=clock) as broker:
        for _ in range(10):
            await broker.produce("a", "", 0, batch_of(*[b"v"] * 1_000))
        for offset in range(1, 10_001):
            await broker.groups.commit_offsets("g", [Commit("a", "", 0, offset, False)])
        engine = broker.engine
    [journal] = [one for one in engine.partitions() if one.topic == "__groups"]
    log = engine._logs[journal.topic, 0]
    bounds = log.bounds()
    assert bounds.high_watermark - bounds.log_start_offset < 2_000
    async with broker_on(engine.reopened(), clock) as broker:
        [told] = await broker.groups.progress("g")
        assert told.progress.committed == 10_000


async def test_many_events_in_one_turn_are_one_snapshot():
    async with topic_on() as broker:
        await broker.produce("a", "", 0, batch_of(*[b"v"] * 5_000))
        journal, written = broker._groups.journal._journal, []
        snapshot = journal.snapshot

        async def noting(events):
            written.append(len(events))
            await snapshot(events)

        journal.snapshot = noting
        for offset in range(1, 5_001):  # no turn of the loop lies between them
            await broker.groups.commit_offsets("g", [Commit("a", "", 0, offset, False)])
        await broker.clock.advance(0)
        assert len(written) == 1


async def test_a_poison_record_burns_its_own_failures_over_a_restart_and_is_then_a_dead_letter():
    clock = ManualClock()
    engine = MemoryEngine(clock)
    settings = GroupSettings(retry=RetryPolicy(initial_ms=100, max_ms=100, max_failures=5))
    spec = MemberSpec(group="g", topics=("a",), settings=settings, max_records=1)
    numbers = []
    async with topic_on(engine, clock) as broker:
        await broker.produce("a", "", 0, batch_of(b"poison", b"good"))
        for _ in range(3):
            member = await broker.join(spec)
            found = await next_delivery(broker, member)
            numbers.append((found.runs[0].first, found.runs[0].deliveries))
            await broker.leave(member, has_vanished=True)
            await clock.advance(200)
    engine = engine.reopened()
    async with broker_on(engine, clock) as broker:
        for _ in range(2):
            member = await broker.join(spec)
            found = await next_delivery(broker, member)
            numbers.append((found.runs[0].first, found.runs[0].deliveries))
            await broker.leave(member, has_vanished=True)
            await clock.advance(200)
        assert numbers == [(0, number) for number in range(1, 6)]
        async with member_on(broker) as member:
            assert (await next_delivery(broker, member)).runs[0].first == 1
        assert await values_of(broker, "a.g.dlq") == [b"poison"]


async def test_a_dead_letter_that_a_crash_kept_from_its_topic_is_written_at_the_next_start_once():
    clock = ManualClock()
    engine = MemoryEngine(clock)
    async with topic_on(engine, clock) as broker:
        await broker.produce("a", "", 0, batch_of(b"0", b"1", b"2"))
        async with member_on(broker) as member:
            token, *_ = await delivered(broker, member)
            await settle(broker, member, Cause.REJECT, token, 0, 1, reason="first")
            target = broker.get_topic("a.g.dlq").partition(0)
            log = engine._logs["a.g.dlq", 0]
            refuse, log.append = log.append, refusing
            [result] = await settle(broker, member, Cause.REJECT, token, 1, 3, reason="second")
            assert (result.committed, result.error) == (3, None)
            assert log.bounds().high_watermark == 1
            log.append = refuse
    engine = engine.reopened()
    for _ in range(2):
        async with broker_on(engine, clock) as broker:
            await clock.advance(0)
            assert await values_of(broker, "a.g.dlq") == [b"0", b"1", b"2"]
        engine = engine.reopened()
    assert target.topic == "a.g.dlq"


def refusing(batch, *, expected_offset=None):
    raise UnavailableError("STORAGE_FAILED", "the disk is gone")


async def test_a_dead_letter_that_cannot_be_written_is_tried_again():
    async with topic_on() as broker:
        await broker.produce("a", "", 0, batch_of(b"0", b"1"))
        async with member_on(broker) as member:
            token, *_ = await delivered(broker, member)
            await settle(broker, member, Cause.REJECT, token, 0, 1)
            log = broker.engine._logs["a.g.dlq", 0]
            append, log.append = log.append, refusing
            await settle(broker, member, Cause.REJECT, token, 1, 2)
            log.append = append
            await broker.clock.advance(2_000)
            assert await values_of(broker, "a.g.dlq") == [b"0", b"1"]


async def test_an_instance_that_is_back_in_time_has_its_partitions_at_once():
    async with topic_on(partition_count=4) as broker:
        spec = MemberSpec(group="g", topics=("a",), instance_id="i")
        one = await broker.join(spec)
        async with member_on(broker) as other:
            await broker.clock.advance(200)
            mine = broker.members.ownership.owned_by(one)
            assert len(mine) == 2
            await broker.leave(one, has_vanished=True)
            await broker.clock.advance(20_000)
            assert len(broker.members.ownership.owned_by(other)) == 2
            back = await broker.join(spec)
            assert broker.members.ownership.owned_by(back) == mine
            await broker.leave(back, has_vanished=True)
            await broker.clock.advance(31_000)
            assert len(broker.members.ownership.owned_by(other)) == 4


async def test_a_second_one_with_the_same_instance_id_fences_the_first():
    async with topic_on(partition_count=2) as broker:
        spec = MemberSpec(group="g", topics=("a",), instance_id="i")
        first = await broker.join(spec)
        await broker.clock.advance(200)
        mine = broker.members.ownership.owned_by(first)
        second = await broker.join(spec)
        assert broker.members.ownership.owned_by(second) == mine
        with pytest.raises(ConflictError) as caught:
            await next_delivery(broker, first)
        assert caught.value.reason == "MEMBER_FENCED"
        await broker.leave(first, has_vanished=True)
        await broker.clock.advance(60_000)
        assert broker.members.ownership.owned_by(second) == mine


async def test_joins_within_the_window_are_one_change_of_the_assignment():
    async with topic_on(partition_count=40) as broker:
        members = [await broker.join(MemberSpec(group="g", topics=("a",))) for _ in range(20)]
        await broker.clock.advance(200)
        assert [len(broker.members.ownership.owned_by(each)) for each in members] == [2] * 20
        before = [broker.members.ownership.owned_by(each) for each in members]
        await broker.leave(members[0], has_vanished=True)
        again = await broker.join(MemberSpec(group="g", topics=("a",)))
        await broker.clock.advance(200)
        assert [broker.members.ownership.owned_by(each) for each in members[1:]] == before[1:]
        assert broker.members.ownership.owned_by(again) == before[0]


async def test_what_lies_behind_a_dead_letter_of_its_key_waits_until_that_is_resolved():
    settings = GroupSettings(order=Order.KEY, after_dead_letter=AfterDeadLetter.HOLD)
    async with topic_on() as broker:
        keys = [b"A", b"A", b"B"]
        await broker.produce("a", "", 0, batch_of(b"0", b"1", b"2", keys=keys))
        async with member_on(broker, settings=settings) as member:
            found = await next_delivery(broker, member)
            assert [(run.first, run.end) for run in found.runs] == [(0, 1), (2, 3)]
            await settle(broker, member, Cause.ACKNOWLEDGE, found.token, 2, 3)
            await settle(broker, member, Cause.REJECT, found.token, 0, 1)
            assert (await broker.groups.explain("g", "a", 0, 1)).state == "held"
            await broker.dead_letters.start_redrive(LETTERS)
            found = await next_delivery(broker, member)
            assert (found.dead_letter_topic, found.runs[0].first) == ("a.g.dlq", 0)
            await settle(broker, member, Cause.ACKNOWLEDGE, found.token, 0, 1)
            found = await next_delivery(broker, member)
            assert (found.dead_letter_topic, found.runs[0].first) == ("", 1)


async def test_a_discarded_dead_letter_holds_nothing_any_more_also_after_a_restart():
    clock = ManualClock()
    engine = MemoryEngine(clock)
    settings = GroupSettings(after_dead_letter=AfterDeadLetter.HOLD)
    async with topic_on(engine, clock) as broker:
        await broker.produce("a", "", 0, batch_of(b"0", b"1"))
        async with member_on(broker, settings=settings) as member:
            token, *_ = await delivered(broker, member)
            await settle(broker, member, Cause.REJECT, token, 0, 1)
            assert (await broker.groups.explain("g", "a", 0, 1)).state == "held"
    async with broker_on(engine.reopened(), clock) as broker, member_on(broker) as member:
        await clock.advance(200)
        assert (await broker.groups.explain("g", "a", 0, 1)).state == "held"
        assert await broker.dead_letters.resolve(LETTERS, is_discard=True) == 1
        found = await next_delivery(broker, member)
        assert found.runs[0].first == 1


async def test_a_redriven_record_does_not_wait_for_one_of_its_key_that_stays_parked():
    settings = GroupSettings(order=Order.KEY)
    async with topic_on() as broker:
        await broker.produce("a", "", 0, batch_of(b"0", b"1", keys=[b"A", b"A"]))
        async with member_on(broker, settings=settings) as member:
            for offset in range(2):
                token, *_ = await delivered(broker, member)
                await settle(broker, member, Cause.REJECT, token, offset, offset + 1)
            second = DeadLetterFilter(group="g", topic="a", selection=Selection(first_offset=1))
            await broker.dead_letters.start_redrive(second)
            found = await next_delivery(broker, member)
            assert (found.dead_letter_topic, found.runs[0].first) == ("a.g.dlq", 1)


@pytest.mark.parametrize("order", [Order.KEY, Order.NONE])
async def test_beside_a_suspect_nothing_is_delivered_from_another_partition_either(order):
    async with topic_on(partition_count=2) as broker:
        await broker.produce("a", "", 0, batch_of(b"0", b"1"))
        gone = await broker.join(
            MemberSpec(group="g", topics=("a",), settings=GroupSettings(order=order))
        )
        await next_delivery(broker, gone)
        await broker.leave(gone, has_vanished=True)
        await broker.produce("a", "", 1, batch_of(b"2"))
        async with member_on(broker) as member:
            suspect = await next_delivery(broker, member)
            assert (suspect.partition, suspect.runs[0].first, suspect.runs[0].end) == (0, 0, 1)
            told = await told_within(broker, member, 1_000)
            assert not any(found for _, found in told), "its failure would not be its alone"
            found = []
            for _ in range(2):
                token, at = suspect.token, suspect.runs[0].first
                await settle(broker, member, Cause.ACKNOWLEDGE, token, at, at + 1)
                suspect = await next_delivery(broker, member)
                found.append((suspect.partition, suspect.runs[0].first))
            assert sorted(found) == [(0, 1), (1, 0)]
