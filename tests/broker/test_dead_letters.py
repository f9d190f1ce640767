"""Dead letters on their way: whatever becomes of their topic, of their group, of the broker."""

import asyncio
from contextlib import asynccontextmanager
from random import Random

import pytest
import structlog

from logbroker.broker.dead_letter_view import DeadLetterFilter
from logbroker.broker.offsets import Commit
from logbroker.broker.settle import Settlement
from logbroker.errors import NotFoundError, UnavailableError
from logbroker.group.record_state import Cause
from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import AfterDeadLetter, GroupSettings, Order
from logbroker.record.columns import decode_records
from logbroker.storage.high_watermark import HighWatermark
from logbroker.storage.memory import MemoryEngine
from logbroker.testing.clock import ManualClock
from logbroker.topic.topic import TopicSettings

from .brokers import batch_of, broker_on, topic_on, values_of
from .test_groups import delivered, member_on, next_delivery, settle

DEAD = "a.g.dlq"
LETTERS = DeadLetterFilter(group="g", topic="a")


class StubbornEngine(MemoryEngine):
    """Refuses to append to the topics in `refused`, whatever incarnation they are."""

    def __init__(self, clock):
        super().__init__(clock)
        self.refused = set()

    async def open(self, partition, config):
        log = await super().open(partition, config)
        append = type(log).append

        def append_unless_refused(batch, **fields):
            if partition.topic in self.refused:
                raise UnavailableError("STORAGE_FAILED", "the disk is gone")
            return append(log, batch, **fields)

        log.append = append_unless_refused
        return log

    def reopened(self):
        engine = super().reopened()
        made = StubbornEngine(self._clock)
        made._logs, made.refused = engine._logs, self.refused
        return made


@asynccontextmanager
async def restarted(engine, clock):
    """Yields a broker on what a crash left, once it has had the time to finish what was begun."""
    async with broker_on(engine.reopened(), clock) as broker:
        await clock.advance(0)
        yield broker


async def reject(broker, member, first, end, reason="bad"):
    """Lets the member reject records it has been given or is given now."""
    token, *_ = await delivered(broker, member)
    [result] = await settle(broker, member, Cause.REJECT, token, first, end, reason=reason)
    return result


async def letters(broker):
    """Returns the places in the source of the dead letters that are listed."""
    found, _ = await broker.dead_letters.list_page(
        LETTERS, with_resolved=True, page_size=0, page_token=""
    )
    return [(one.letter.offset, one.state) for one in found]


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
            [told] = await broker.group_progress("g")
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


async def test_dead_letters_that_cannot_be_written_hold_up_no_others():
    clock = ManualClock()
    engine = StubbornEngine(clock)
    engine.refused.add(DEAD)
    async with topic_on(engine, clock, partition_count=2) as broker:
        for partition in range(2):
            await broker.produce("a", "", partition, batch_of(b"0", b"1"))
        async with member_on(broker) as stuck, member_on(broker, group="h") as other:
            for _ in range(2):
                await reject_all(broker, stuck)
                await reject_all(broker, other)
        assert await values_of(broker, "a.h.dlq", 0) == [b"0", b"1"]
        assert await values_of(broker, "a.h.dlq", 1) == [b"0", b"1"]
        engine.refused.clear()
        await clock.advance(60_000)
        assert await values_of(broker, DEAD, 0) == [b"0", b"1"]


async def reject_all(broker, member):
    token, first, end = await delivered(broker, member)
    await settle(broker, member, Cause.REJECT, token, first, end)


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
            await broker.delete_group("g", is_forced=True)
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
                await broker.delete_group("g", is_forced=True)
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
        assert broker.group_dead_letters("g") == []
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
            states = [(await broker.explain("g", "a", 0, at)).state for at in (2, 3)]
        assert states == ["held"] * 2
        assert not coming.done()
        await broker.delete_topic(DEAD, "")
        assert (await coming).runs[0].first == 2
        assert (await broker.explain("g", "a", 0, 3)).state == "held", (
            "its dead letter is still to be seen"
        )


async def test_a_trim_takes_no_record_whose_dead_letter_is_not_written_yet():
    clock = ManualClock()
    engine = StubbornEngine(clock)
    async with topic_on(engine, clock) as broker:
        await broker.produce("a", "", 0, batch_of(b"0", b"1", b"2"))
        async with member_on(broker) as member:
            token, *_ = await delivered(broker, member)
            await settle(broker, member, Cause.REJECT, token, 0, 1)
            engine.refused.add(DEAD)
            await settle(broker, member, Cause.REJECT, token, 1, 2)
            await settle(broker, member, Cause.ACKNOWLEDGE, token, 2, 3)
            assert await broker.trim_topic("a", "", 0, 3) == 1, "it was tried, in vain"
    engine.refused.clear()
    async with broker_on(engine.reopened(), clock) as broker:
        assert await broker.trim_topic("a", "", 0, 3) == 3, "once it is written"
        assert await values_of(broker, DEAD) == [b"0", b"1"]
        assert await letters(broker) == [(0, "parked"), (1, "parked")]


async def test_what_retention_took_from_a_dead_letter_topic_holds_nothing_any_more():
    clock = ManualClock()
    engine = MemoryEngine(clock)
    settings = GroupSettings(after_dead_letter=AfterDeadLetter.HOLD)
    async with topic_on(engine, clock) as broker:
        await broker.produce("a", "", 0, batch_of(b"0", b"1"))
        async with member_on(broker, settings=settings) as member:
            await reject(broker, member, 0, 1)
        await broker.trim_topic(DEAD, "", 0, 1)
    async with restarted(engine, clock) as broker, member_on(broker) as member:
        await clock.advance(10_000)
        assert (await next_delivery(broker, member)).runs[0].first == 1


async def test_dead_letters_of_a_power_cut_that_the_disk_did_not_keep_are_written_again():
    clock = ManualClock()
    engine = StubbornEngine(clock)
    async with topic_on(engine, clock) as broker:
        await broker.produce("a", "", 0, batch_of(b"0", b"1"))
        async with member_on(broker) as member:
            token, *_ = await delivered(broker, member)
            await settle(broker, member, Cause.REJECT, token, 0, 1)
            log = engine._logs[DEAD, 0]
            log.append, append = failing_to_sync(log), log.append
            await settle(broker, member, Cause.REJECT, token, 1, 2)
            await clock.advance(10_000)
            log.append = append
    async with restarted(engine, clock) as broker:
        assert await values_of(broker, DEAD) == [b"0", b"1"]


def failing_to_sync(log):
    """Returns an `append` that fails as a disk does that took the bytes and lost them."""

    def append(batch, **_):
        failed = asyncio.get_running_loop().create_future()
        failed.set_exception(UnavailableError("STORAGE_FAILED", "fdatasync failed"))
        bounds = log.bounds()
        log.bounds = lambda: bounds._replace(next_offset=bounds.next_offset + 1)
        return failed

    return append


@pytest.mark.parametrize("seed", range(12))
async def test_every_record_given_up_comes_to_a_dead_letter_topic_once_whatever_happens(seed):
    random, clock = Random(seed), ManualClock()
    engine = StubbornEngine(clock)
    given_up, seen, written = 0, [], 0
    async with topic_on(engine, clock):
        pass
    for _ in range(6):
        async with restarted(engine, clock) as broker, member_on(broker) as member:
            engine = broker.engine
            for _ in range(random.randint(1, 8)):
                match random.randrange(5):
                    case 0:
                        engine.refused ^= {DEAD}
                    case 1 if (DEAD, 0) in engine._logs:
                        log = engine._logs[DEAD, 0]
                        await broker.delete_topic(DEAD, "")
                        seen += values_in(log)
                    case 2:
                        await clock.advance(random.choice([10, 1_000, 30_000]))
                    case _:
                        count = random.randint(1, 4)
                        values = [b"%d" % (written + at) for at in range(count)]
                        written += count
                        await broker.produce("a", "", 0, batch_of(*values))
                        while given_up < written:
                            token, first, end = await delivered(broker, member)
                            await settle(broker, member, Cause.REJECT, token, first, end)
                            given_up += end - first
    engine.refused.clear()
    async with restarted(engine, clock) as broker:
        await clock.advance(100_000)
        if (DEAD, 0) in broker.engine._logs:
            seen += values_in(broker.engine._logs[DEAD, 0])
        assert sorted(map(int, seen)) == list(range(written))


def values_in(log):
    """Returns what is in the log of a partition, deleted or not."""
    return [record.value for batch in log._batches for record in decode_records(batch)]


async def test_of_a_topic_made_again_the_own_dead_letters_are_found_again_and_the_old_are_not():
    async with topic_on() as broker:
        for value in (b"old", b"new"):
            await broker.produce("a", "", 0, batch_of(value))
            async with member_on(broker) as member:
                await reject(broker, member, 0, 1, reason=value.decode())
            if value == b"old":
                await broker.delete_topic("a", "")
                await broker.create_topic("a", 1, TopicSettings())
        await broker.delete_group("g", is_forced=True)
        async with member_on(broker):
            found, _ = await broker.dead_letters.list_page(
                LETTERS, with_resolved=False, page_size=0, page_token=""
            )
            assert [one.letter.reason for one in found] == ["new"]
            assert [one.parked for one in broker.group_dead_letters("g")] == [1]
        assert await values_of(broker, DEAD) == [b"old", b"new"], "still there to be read"


async def test_dead_letters_whose_records_a_power_cut_took_hold_up_nothing():
    clock = ManualClock()
    engine = StubbornEngine(clock)
    engine.refused.add(DEAD)
    async with topic_on(engine, clock) as broker:
        for value in (b"0", b"1"):
            await broker.produce("a", "", 0, batch_of(value))
        async with member_on(broker) as member:
            await reject_all(broker, member)
    engine.refused.clear()
    engine = engine.reopened()
    log = engine._logs["a", 0] = engine._logs["a", 0].reopened()
    log._batches, log._base_offsets = log._batches[:1], log._base_offsets[:1]
    log._mark = HighWatermark(1)
    async with restarted(engine, clock) as broker:
        await clock.advance(1_000)
        assert await values_of(broker, DEAD) == [b"0"]
        await broker.produce("a", "", 0, batch_of(b"new"))
    async with restarted(broker.engine, clock) as broker:
        assert await values_of(broker, DEAD) == [b"0"], "and never another in their place"


async def test_many_given_up_one_by_one_are_few_batches_and_as_many_letters():
    async with topic_on() as broker:
        await broker.produce("a", "", 0, batch_of(*[b"%d" % at for at in range(500)]))
        async with member_on(broker) as member:
            token, *_ = await delivered(broker, member)
            reasons = [f"reason {at}" for at in range(500)]
            await broker.settle(
                "g",
                [
                    Settlement(token, at, at + 1, Cause.REJECT, reason=reason)
                    for at, reason in enumerate(reasons)
                ],
            )
        found, _ = await broker.dead_letters.list_page(
            LETTERS, with_resolved=True, page_size=1_000, page_token=""
        )
        assert [one.letter.reason for one in found] == reasons
        assert [one.record.value for one in found] == [b"%d" % at for at in range(500)]
        assert len(broker.engine._logs[DEAD, 0]._batches) <= 5


async def test_large_dead_letters_are_written_in_parts():
    async with topic_on() as broker:
        for _ in range(4):
            await broker.produce("a", "", 0, batch_of(b"v" * 700_000))
        await broker.produce("a", "", 0, batch_of(*[b"w"] * 10))
        async with member_on(broker) as member:
            end = 0
            while end < 14:
                token, first, end = await delivered(broker, member)
                await settle(broker, member, Cause.REJECT, token, first, end)
        batches = broker.engine._logs[DEAD, 0]._batches
        assert sum(batch.header.record_count for batch in batches) == 14
        assert max(len(batch.records) for batch in batches) < 1 << 20


async def test_dead_letters_that_wait_do_not_keep_the_journal_long_and_outlive_its_shortening():
    clock = ManualClock()
    engine = StubbornEngine(clock)
    engine.refused.add(DEAD)
    async with topic_on(engine, clock) as broker:
        await broker.produce("a", "", 0, batch_of(*[b"%d" % at for at in range(5)]))
        async with member_on(broker) as member:
            token, *_ = await delivered(broker, member)
            await settle(broker, member, Cause.REJECT, token, 0, 2, reason="first")
            await settle(broker, member, Cause.REJECT, token, 3, 4, reason="second")
        for offset in range(1, 5):
            for _ in range(400):
                await broker.commit_offsets("h", [Commit("a", "", 0, offset, False)])
        await clock.advance(0)
        bounds = engine._logs["__groups", 0].bounds()
        assert bounds.log_start_offset > 0, "it was shortened"
    engine.refused.clear()
    async with restarted(engine, clock) as broker:
        found, _ = await broker.dead_letters.list_page(
            LETTERS, with_resolved=True, page_size=0, page_token=""
        )
        told = [(one.letter.offset, one.letter.reason) for one in found]
        assert told == [(0, "first"), (1, "first"), (3, "second")]
    async with restarted(broker.engine, clock) as broker:
        assert await values_of(broker, DEAD) == [b"0", b"1", b"3"], "once"
