"""Dead letters whose topic is deleted, or whose group is, or whose topic's name is taken."""

import asyncio

import pytest
import structlog

from logbroker.errors import NotFoundError
from logbroker.group.record_state import Cause
from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import AfterDeadLetter, GroupSettings, Order
from logbroker.storage.memory import MemoryEngine
from logbroker.testing.clock import ManualClock
from logbroker.topic.topic import TopicSettings

from .brokers import batch_of, next_delivery, told_within, topic_on, values_of
from .grouped import delivered, member_on, settle
from .letters import DEAD, LETTERS, StubbornEngine, letters, reject, reject_all, restarted


async def test_what_waits_for_a_topic_that_is_deleted_goes_to_the_next_one_and_nothing_else_does():
    clock = ManualClock()
    engine = StubbornEngine(clock)
    async with topic_on(engine, clock) as broker:
        await broker.produce("a", "", 0, batch_of(b"0", b"1", b"2"))
        async with member_on(broker) as member:
            token, *_ = await delivered(broker, member)
            await settle(broker, member, Cause.REJECT, token, 0, 1)
            engine.refused.add(DEAD)
            await settle(broker, member, Cause.REJECT, token, 1, 3)
            await broker.delete_topic(DEAD, "")
            engine.refused.clear()
            await clock.advance(2_000)
            assert await values_of(broker, DEAD) == [b"1", b"2"]
            assert await letters(broker) == [(1, "parked"), (2, "parked")]
    async with restarted(engine, clock) as broker:
        assert await values_of(broker, DEAD) == [b"1", b"2"]


@pytest.mark.parametrize("is_made_again", [False, True], ids=["gone", "made again"])
async def test_what_waits_for_a_topic_that_is_deleted_outlives_a_crash(is_made_again):
    clock = ManualClock()
    engine = StubbornEngine(clock)
    async with topic_on(engine, clock) as broker:
        await broker.produce("a", "", 0, batch_of(b"0", b"1", b"2", b"3"))
        async with member_on(broker) as member:
            token, *_ = await delivered(broker, member)
            await settle(broker, member, Cause.REJECT, token, 0, 1)
            engine.refused.add(DEAD)
            await settle(broker, member, Cause.REJECT, token, 1, 2)
            await broker.delete_topic(DEAD, "")
            if is_made_again:
                await settle(broker, member, Cause.REJECT, token, 2, 3)
                assert await values_of(broker, DEAD) == []
    engine.refused.clear()
    async with restarted(engine, clock) as broker:
        expected = [b"1", b"2"] if is_made_again else [b"1"]
        assert await values_of(broker, DEAD) == expected
        assert [offset for offset, _ in await letters(broker)] == [1, 2][: len(expected)]
    async with restarted(broker.engine, clock) as broker:
        assert await values_of(broker, DEAD) == expected, "once"


async def test_what_was_deleted_with_its_topic_does_not_come_back_by_a_crash():
    clock = ManualClock()
    engine = StubbornEngine(clock)
    async with topic_on(engine, clock) as broker:
        await broker.produce("a", "", 0, batch_of(b"0", b"1", b"2"))
        async with member_on(broker) as member:
            token, *_ = await delivered(broker, member)
            await settle(broker, member, Cause.REJECT, token, 0, 2)
            await broker.delete_topic(DEAD, "")
    async with restarted(engine, clock) as broker:
        assert [topic.topic for topic in broker.list_topics(0, "")[0]] == ["a"]
        assert await letters(broker) == []
        async with member_on(broker) as member:
            await reject(broker, member, 2, 3)
        assert await values_of(broker, DEAD) == [b"2"]


async def test_a_name_that_is_taken_leaves_the_record_where_it_is_until_it_is_free():
    clock = ManualClock()
    settings = GroupSettings(lease_ms=1_000, retry=RetryPolicy(max_failures=1))
    async with topic_on(clock=clock) as broker:
        await broker.produce("a", "", 0, batch_of(b"0", b"1"))
        async with member_on(broker, settings=settings) as member:
            token, *_ = await delivered(broker, member)
            await broker.create_topic(DEAD, 1, TopicSettings())
            [result] = await settle(broker, member, Cause.REJECT, token, 0, 1)
            assert (result.error.reason, result.error.details["topic"]) == (
                "TOPIC_ALREADY_EXISTS",
                DEAD,
            )
            with structlog.testing.capture_logs() as logs:
                await clock.advance(20_000)
            assert [one["reason"] for one in logs if one["event"] == "leases not expired"]
            [told] = await broker.groups.progress("g")
            assert (told.progress.lag, told.progress.dead_letters) == (2, 0)
            await broker.delete_topic(DEAD, "")
            await clock.advance(6_000)
            assert await letters(broker) == [(0, "parked")]


async def test_a_topic_made_in_the_place_of_a_deleted_one_does_not_get_what_is_not_its_own():
    clock = ManualClock()
    engine = StubbornEngine(clock)
    async with topic_on(engine, clock) as broker:
        await broker.produce("a", "", 0, batch_of(b"0", b"1"))
        async with member_on(broker) as member:
            token, *_ = await delivered(broker, member)
            await settle(broker, member, Cause.REJECT, token, 0, 1)
            engine.refused.add(DEAD)
            await settle(broker, member, Cause.REJECT, token, 1, 2)
            await broker.delete_topic(DEAD, "")
            engine.refused.clear()
            await broker.create_topic(DEAD, 1, TopicSettings())
            with structlog.testing.capture_logs() as logs:
                await clock.advance(10_000)
            tries = [one for one in logs if one["event"] == "dead letters not written"]
            assert [one["reason"] for one in tries] == ["TOPIC_ALREADY_EXISTS"] * len(tries)
            assert [one["again_ms"] for one in tries] == sorted({one["again_ms"] for one in tries})
    async with restarted(engine, clock) as broker:
        assert await values_of(broker, DEAD) == []
        await broker.delete_topic(DEAD, "")
        await clock.advance(60_000)
        assert await values_of(broker, DEAD) == [b"1"]


async def test_a_group_that_is_deleted_leaves_its_dead_letters_in_their_topic():
    clock = ManualClock()
    engine = StubbornEngine(clock)
    async with topic_on(engine, clock) as broker:
        await broker.produce("a", "", 0, batch_of(b"0", b"1"))
        async with member_on(broker) as member:
            token, *_ = await delivered(broker, member)
            await settle(broker, member, Cause.REJECT, token, 0, 1)
            settling = asyncio.ensure_future(settle(broker, member, Cause.REJECT, token, 1, 2))
            await asyncio.sleep(0)
            assert broker._groups.letters, "settled, and not yet written"
            await broker.groups.delete("g", is_forced=True)
            assert [result.error for result in await settling] == [None]
        assert await values_of(broker, DEAD) == [b"0", b"1"]
        with pytest.raises(NotFoundError):
            await letters(broker)
        async with member_on(broker):
            assert await letters(broker) == [(0, "parked"), (1, "parked")], "found again"


async def test_dead_letters_that_are_lost_with_their_group_are_told_of():
    clock = ManualClock()
    engine = StubbornEngine(clock)
    engine.refused.add(DEAD)
    async with topic_on(engine, clock) as broker:
        await broker.produce("a", "", 0, batch_of(b"0"))
        async with member_on(broker) as member:
            await reject(broker, member, 0, 1)
            with structlog.testing.capture_logs() as logs:
                await broker.groups.delete("g", is_forced=True)
        [told] = [one for one in logs if one["log_level"] == "error"]
        assert (told["group"], told["count"]) == ("g", 1)


async def test_members_go_on_when_a_topic_of_dead_letters_they_hold_is_deleted():
    clock = ManualClock()
    async with topic_on(clock=clock) as broker:
        await broker.produce("a", "", 0, batch_of(b"0"))
        async with member_on(broker, max_records=1) as member:
            await reject(broker, member, 0, 1)
            started = await broker.dead_letters.start_redrive(LETTERS)
            held = await next_delivery(broker, member)
            assert held.dead_letter_topic == DEAD
            await broker.delete_topic(DEAD, "")
            await broker.produce("a", "", 0, batch_of(b"1"))
            news, found = await member.next()
            assert [one.token for one in news.taken_back] == [held.token]
            assert (found or await next_delivery(broker, member)).runs[0].first == 1
            [late] = await settle(broker, member, Cause.ACKNOWLEDGE, held.token, 0, 1)
            assert late.error.reason == "LEASE_LOST"
            assert broker.dead_letters.list_redrives("g") == []
            with pytest.raises(NotFoundError):
                broker.dead_letters.get_redrive(started.redrive.redrive_id)


@pytest.mark.parametrize("is_held", [False, True])
async def test_members_are_caught_up_once_the_dead_letters_they_wait_for_are_deleted(is_held):
    async with topic_on() as broker:
        await broker.produce("a", "", 0, batch_of(b"0"))
        async with member_on(broker, max_records=1) as member:
            await reject(broker, member, 0, 1)
            await told_within(broker, member, 1_000)
            if not is_held:  # there is no room for it
                await broker.produce("a", "", 0, batch_of(b"1"))
                other = await next_delivery(broker, member)
            await broker.dead_letters.start_redrive(LETTERS)
            told = await told_within(broker, member, 1_000)
            assert any(found for _, found in told) == is_held
            await broker.delete_topic(DEAD, "")
            if not is_held:
                await settle(broker, member, Cause.ACKNOWLEDGE, other.token, 1, 2)
            told = await told_within(broker, member, 1_000)
            assert not any(found for _, found in told)
            assert [news.caught_up for news, _ in told if news.caught_up] == [(("a", 0),)]


async def test_a_redrive_ends_with_the_topic_it_is_of():
    clock = ManualClock()
    engine = MemoryEngine(clock)
    async with topic_on(engine, clock) as broker:
        await broker.produce("a", "", 0, batch_of(*[b"v"] * 50))
        async with member_on(broker) as member:
            await reject_all(broker, member)
        await broker.dead_letters.start_redrive(LETTERS, rate=1)
        await broker.delete_topic(DEAD, "")
        await clock.advance(10_000)
        assert broker.dead_letters.list_redrives("g") == []
        assert broker.groups.dead_letters("g") == []
    async with restarted(engine, clock) as broker:
        await clock.advance(10_000)
        assert broker.dead_letters.list_redrives("g") == []


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_deleted_topic_holds_nothing_any_more_and_what_waits_to_be_written_does(
    is_restarted,
):
    clock = ManualClock()
    engine = StubbornEngine(clock)
    settings = GroupSettings(order=Order.KEY, after_dead_letter=AfterDeadLetter.HOLD)
    async with topic_on(engine, clock) as broker:
        keys = [b"A", b"B", b"A", b"B"]
        await broker.produce("a", "", 0, batch_of(*[b"v"] * 4, keys=keys))
        async with member_on(broker, settings=settings) as member:
            token, *_ = await delivered(broker, member)
            await settle(broker, member, Cause.REJECT, token, 0, 1)
            engine.refused.add(DEAD)
            await settle(broker, member, Cause.REJECT, token, 1, 2)
        if not is_restarted:
            await delete_and_check(broker)
            return
    async with restarted(engine, clock) as broker:
        await delete_and_check(broker)


async def delete_and_check(broker):
    async with member_on(broker) as member:
        coming = asyncio.ensure_future(next_delivery(broker, member))
        states = ["key_unknown"] * 2
        while states == ["key_unknown"] * 2:
            await asyncio.sleep(0)
            states = [(await broker.groups.explain("g", "a", 0, at)).state for at in (2, 3)]
        assert states == ["held"] * 2
        assert not coming.done()
        await broker.delete_topic(DEAD, "")
        assert (await coming).runs[0].first == 2
        assert (await broker.groups.explain("g", "a", 0, 3)).state == "held", (
            "its dead letter is still to be seen"
        )


async def test_of_a_topic_made_again_the_own_dead_letters_are_found_again_and_the_old_are_not():
    async with topic_on() as broker:
        for value in (b"old", b"new"):
            await broker.produce("a", "", 0, batch_of(value))
            async with member_on(broker) as member:
                await reject(broker, member, 0, 1, reason=value.decode())
            if value == b"old":
                await broker.delete_topic("a", "")
                await broker.create_topic("a", 1, TopicSettings())
        await broker.groups.delete("g", is_forced=True)
        async with member_on(broker):
            found, _ = await broker.dead_letters.list_page(
                LETTERS, with_resolved=False, page_size=0, page_token=""
            )
            assert [one.letter.reason for one in found] == ["new"]
            assert [one.parked for one in broker.groups.dead_letters("g")] == [1]
        assert await values_of(broker, DEAD) == [b"old", b"new"], "still there to be read"
