"""Dead letters on their way: each comes to its topic once, whatever becomes of disk and broker."""

import asyncio
from random import Random

import pytest

from logbroker.broker.offsets import Commit
from logbroker.broker.settle import Settlement
from logbroker.errors import UnavailableError
from logbroker.group.record_state import Cause
from logbroker.group.settings import AfterDeadLetter, GroupSettings
from logbroker.record.columns import decode_records
from logbroker.storage.high_watermark import HighWatermark
from logbroker.storage.memory import MemoryEngine
from logbroker.testing.clock import ManualClock

from .brokers import batch_of, broker_on, next_delivery, topic_on, values_of
from .grouped import delivered, member_on, settle
from .letters import DEAD, LETTERS, StubbornEngine, letters, reject, reject_all, restarted


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
                await broker.groups.commit_offsets("h", [Commit("a", "", 0, offset, False)])
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
