"""How much goes at once: whole batches, worthwhile lots, and no more read than can go."""

import asyncio

import pytest

from logbroker.broker.dead_letter_view import DeadLetterFilter
from logbroker.broker.groups_journal import LATER_MS
from logbroker.broker.member import CAUGHT_UP_DELAY_MS, News
from logbroker.broker.membership import MemberSpec
from logbroker.broker.settle import Settlement
from logbroker.errors import DataLossError
from logbroker.group.record_state import Cause
from logbroker.group.settings import GroupSettings, Order, Start
from logbroker.group.start_position import Position

from .brokers import batch_of, told_within, topic_on


async def joined(broker, limit, order=Order.NONE, **settings):
    """Returns a member that may hold so many records."""
    spec = MemberSpec(
        group="g",
        topics=("a",),
        settings=GroupSettings(order=order, **settings),
        max_records=limit,
    )
    return await broker.join(spec)


async def deliveries(broker, member):
    """Returns tokens, first offsets and ends of all that is delivered now."""
    found = []
    while True:
        coming = asyncio.ensure_future(member.next())
        await broker.clock.advance(0)
        if not coming.done():
            coming.cancel()
            return found
        _, delivery = coming.result()
        if delivery:
            runs = delivery.runs
            found.append((delivery.token, runs[0].first, runs[-1].end))


async def acknowledge(member, token, first, end):
    """Acknowledges a range."""
    await member.settle([Settlement(token, first, end, Cause.ACKNOWLEDGE)])


def ends(found):
    """Returns the bounds without the tokens."""
    return [(first, end) for _, first, end in found]


async def fill(broker, *counts):
    """Appends batches of so many records."""
    for count in counts:
        await broker.produce("a", "", 0, batch_of(*[b"v"] * count))


async def test_of_a_large_limit_a_quarter_must_be_free_before_more_goes():
    async with topic_on() as broker:
        await fill(broker, *[100] * 30)
        member = await joined(broker, 1_000)
        first, second = await deliveries(broker, member)
        assert ends([first, second]) == [(0, 500), (500, 1_000)]
        await acknowledge(member, first[0], 0, 249)
        assert await deliveries(broker, member) == []
        await acknowledge(member, first[0], 249, 250)
        assert ends(await deliveries(broker, member)) == [(1_000, 1_200)]
        await broker.leave(member, has_vanished=False)


async def test_who_holds_no_more_than_half_of_its_limit_gets_whatever_there_is_room_for():
    async with topic_on() as broker:
        await fill(broker, 300, 200)
        member = await joined(broker, 1_000)
        assert ends(await deliveries(broker, member)) == [(0, 500)]
        await fill(broker, 1, 1)
        assert ends(await deliveries(broker, member)) == [(500, 502)]
        await broker.leave(member, has_vanished=False)


@pytest.mark.parametrize("limit", [1, 10, 499])
async def test_a_small_limit_is_filled_up_record_by_record(limit):
    async with topic_on() as broker:
        await fill(broker, *[1] * (limit + 5))
        member = await joined(broker, limit)
        [(token, first, end), *_] = await deliveries(broker, member)
        assert (first, end) == (0, limit)
        for number in range(3):
            await acknowledge(member, token, number, number + 1)
            [(newer, *bounds)] = await deliveries(broker, member)
            assert bounds == [limit + number, limit + number + 1]
            token = newer if limit == 1 else token
        await broker.leave(member, has_vanished=False)


async def test_the_window_opens_to_its_holder_by_a_quarter_too_and_to_others_at_once():
    async with topic_on() as broker:
        await fill(broker, *[100] * 20)
        holder = await joined(broker, 5_000, max_unsettled=1_000)
        first, _ = await deliveries(broker, holder)
        await acknowledge(holder, first[0], 0, 100)
        assert await deliveries(broker, holder) == []
        other = await joined(broker, 5_000)
        assert ends(await deliveries(broker, other)) == [(1_000, 1_100)]
        for member in (holder, other):
            await broker.leave(member, has_vanished=False)


async def test_the_end_of_a_batch_does_not_go_alone_where_much_more_may_go():
    async with topic_on() as broker:
        await fill(broker, 504, 1_000, 1_000)
        member = await joined(broker, 1_000)
        first, second = await deliveries(broker, member)
        assert ends([first, second]) == [(0, 500), (500, 1_000)]
        await broker.leave(member, has_vanished=False)


async def test_no_more_is_read_than_can_go_once_the_size_of_records_is_known():
    async with topic_on() as broker:
        await fill(broker, *[100] * 300)
        member = await joined(broker, 1_000)
        found = await deliveries(broker, member)
        [log] = [log for key, log in broker.engine._logs.items() if key[0] == "a"]
        sizes, read = [], log.read

        async def noting(offset, size):
            run = await read(offset, size)
            sizes.append(len(run.batches))
            return run

        log.read = noting
        for token, first, end in found:
            await acknowledge(member, token, first, end)
        assert ends(await deliveries(broker, member)) == [(1_000, 1_500), (1_500, 2_000)]
        one = len((await read(0, 1)).batches)
        assert sizes == [7 * one] * 2
        await broker.leave(member, has_vanished=False)


@pytest.mark.parametrize("is_gap", [False, True])
async def test_keys_that_cannot_be_read_are_passed_over_though_their_records_are_settled(is_gap):
    async with topic_on() as broker:
        await fill(broker, *[1] * 8)
        member = await joined(broker, 6, max_unsettled=6)
        [(token, _, _)] = await deliveries(broker, member)
        await acknowledge(member, token, 1, 3)
        await broker.leave(member, has_vanished=False)
        settings = GroupSettings(order=Order.KEY, max_unsettled=2)
        await broker.groups.update("g", settings)
        [log] = [log for key, log in broker.engine._logs.items() if key[0] == "a"]
        reads, read = [], log.read

        async def damaged(offset, size):
            reads.append(offset)
            assert len(reads) < 20, "it is read again and again"
            if not 1 <= offset < 6:
                return await read(offset, 1)
            if is_gap:
                return await read(6, 1)
            raise DataLossError("DAMAGED_BATCH", "bad", offset=offset, next_offset=6)

        log.read = damaged
        member = await joined(broker, 10, order=Order.KEY, max_unsettled=2)
        assert ends(await deliveries(broker, member)) == [(0, 1), (6, 7)]
        await broker.leave(member, has_vanished=False)


@pytest.mark.parametrize("is_damaged", [False, True])
async def test_a_group_reset_while_keys_are_read_begins_where_it_was_reset_to(is_damaged):
    async with topic_on() as broker:
        await fill(broker, *[1] * 4)
        member = await joined(broker, 10, order=Order.KEY, max_unsettled=2)
        [(token, *_)] = await deliveries(broker, member)
        [log] = [log for key, log in broker.engine._logs.items() if key[0] == "a"]
        reads, read = [], log.read

        async def reset_meanwhile(offset, size):
            reads.append(offset)
            if len(reads) == 1:
                await broker.groups.reset_offsets(
                    "g", "a", [], Position(Start.EARLIEST), is_forced=True
                )
            if is_damaged and offset == 2:
                raise DataLossError("DAMAGED_BATCH", "bad", offset=2, next_offset=4)
            return await read(offset, size)

        log.read = reset_meanwhile
        await acknowledge(member, token, 0, 2)
        assert ends(await deliveries(broker, member)) == [(0, 2)]
        assert reads[0] == 2
        await broker.leave(member, has_vanished=False)


async def test_a_member_hears_that_it_is_caught_up_a_moment_behind_the_last_records():
    async with topic_on() as broker:
        await fill(broker, 300, 300)
        member = await joined(broker, 1_000)
        told = await told_within(broker, member, CAUGHT_UP_DELAY_MS - 1)
        assert [delivery and delivery.runs[-1].end for _, delivery in told] == [None, 300, 600]
        assert not any(news.caught_up for news, _ in told)
        assert await told_within(broker, member, 1) == [(News(caught_up=(("a", 0),)), None)]
        await broker.leave(member, has_vanished=False)


async def test_a_member_hears_that_it_is_caught_up_with_an_answer_that_comes_before():
    async with topic_on() as broker:
        await fill(broker, 2)
        member = await joined(broker, 1_000)
        [(token, *_)] = await deliveries(broker, member)
        await acknowledge(member, token, 0, 1)
        [(news, delivery)] = await told_within(broker, member, CAUGHT_UP_DELAY_MS)
        assert (len(news.settled), news.caught_up, delivery) == (1, (("a", 0),), None)
        await broker.leave(member, has_vanished=False)


async def test_a_member_without_records_hears_at_once_that_it_is_caught_up():
    async with topic_on() as broker:
        member = await joined(broker, 1_000)
        told = await told_within(broker, member, 0)
        assert [news.caught_up for news, _ in told] == [(), (("a", 0),)]
        await broker.leave(member, has_vanished=False)


async def test_a_member_hears_that_one_partition_is_caught_up_with_a_delivery_of_another():
    async with topic_on(partition_count=2) as broker:
        await broker.produce("a", "", 0, batch_of(b"v"))
        member = await joined(broker, 1_000)
        assert len(await deliveries(broker, member)) == 1
        await broker.produce("a", "", 1, batch_of(b"v"))
        [(news, delivery)] = await told_within(broker, member, 0)
        assert (delivery.partition, news.caught_up) == (1, (("a", 0),))
        [(news, _)] = await told_within(broker, member, CAUGHT_UP_DELAY_MS)
        assert news.caught_up == (("a", 1),)
        await broker.leave(member, has_vanished=False)


async def test_a_member_is_not_told_that_it_is_caught_up_where_more_has_come_meanwhile():
    async with topic_on() as broker:
        await fill(broker, 1)
        member = await joined(broker, 1)
        [(token, *_)] = await deliveries(broker, member)
        await fill(broker, 1)
        told = await told_within(broker, member, 10 * CAUGHT_UP_DELAY_MS)
        assert not any(news.caught_up or delivery for news, delivery in told), "no room for it"
        await acknowledge(member, token, 0, 1)
        told = await told_within(broker, member, CAUGHT_UP_DELAY_MS)
        assert [delivery and delivery.runs[-1].end for _, delivery in told] == [2, None]
        assert [news.caught_up for news, _ in told] == [(), (("a", 0),)]
        await broker.leave(member, has_vanished=False)


async def test_a_member_is_not_told_that_it_is_caught_up_once_another_has_failed_at_a_record():
    async with topic_on() as broker:
        keys = [b"A", b"B"]
        await broker.produce("a", "", 0, batch_of(b"0", b"1", keys=keys))
        one, other = [await joined(broker, 1, order=Order.KEY) for _ in range(2)]
        [(token, *_)] = await deliveries(broker, one)
        [_] = await deliveries(broker, other)
        other.limit(10, None)
        retried = Settlement(token, 0, 1, Cause.RETRY, delay_ms=10 * CAUGHT_UP_DELAY_MS)
        await one.settle([retried])
        told = await told_within(broker, other, 2 * CAUGHT_UP_DELAY_MS)
        assert not any(news.caught_up for news, _ in told), "it is to be tried again"
        for member in (one, other):
            await broker.leave(member, has_vanished=False)


async def test_a_member_is_not_told_that_it_is_caught_up_while_redriven_records_are_left():
    async with topic_on() as broker:
        await fill(broker, 600)
        member = await joined(broker, 1_000)
        for token, first, end in await deliveries(broker, member):
            await member.settle([Settlement(token, first, end, Cause.REJECT)])
        await told_within(broker, member, CAUGHT_UP_DELAY_MS)
        letters = DeadLetterFilter(group="g", topic="a")
        await broker.dead_letters.start_redrive(letters)
        told = await told_within(broker, member, 10_000)
        assert [delivery.runs[-1].end for _, delivery in told if delivery] == [500, 600]
        assert [news.caught_up for news, _ in told if news.caught_up] == [(("a", 0),)]
        await broker.leave(member, has_vanished=False)


async def test_a_delivery_is_journaled_with_its_answer_or_a_moment_later():
    async with topic_on() as broker:
        await fill(broker, 1, 1)
        [journal] = [log for key, log in broker.engine._logs.items() if key[0] == "__groups"]

        def written():
            return journal.bounds().next_offset

        member = await joined(broker, 1)
        await broker.clock.advance(LATER_MS)
        before = written()
        [(token, *_)] = await deliveries(broker, member)
        assert written() == before
        await acknowledge(member, token, 0, 1)
        assert written() == before + 2
        [_] = await deliveries(broker, member)
        await broker.clock.advance(LATER_MS - 1)
        assert written() == before + 2
        await broker.clock.advance(1)
        assert written() == before + 3
        await broker.leave(member, has_vanished=False)
