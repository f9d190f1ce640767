"""C34: a record that fails holds up its key, and nothing but its key, until it is through."""

import asyncio
from random import Random

import pytest
from server.calls import serving
from server.members import ACK, REJECT, RELEASE, RETRY, member_on, publish

from cases.grouped import check_nothing_left, group_of, letters_of
from logbroker.config import LimitsConfig
from logbroker.testing.clock import ManualClock
from logbroker.v1 import group_pb2

KEY, PARTITION = group_pb2.ORDER_KEY, group_pb2.ORDER_PARTITION
KEYS = [b"A", b"B"] * 5
VALUES = [b"A0", b"B0", b"A1", b"B1", b"A2", b"B2", b"A3", b"B3", b"A4", b"B4"]
SETTINGS = {
    "order": KEY,
    "retry_initial_ms": 1_000,
    "retry_multiplier": 1,
    "max_failures": 3,
    "lease_ms": 2_000,
}


async def drain(member, count, seen):
    """Settles so many records, one after another."""
    for _ in range(count):
        delivered = await member.delivery()
        for offset, value in delivered.records:
            seen.append(value)
            await member.settle(delivered, ACK, offset, offset + 1)


async def leased_count(calls):
    """Returns how many records of the topic are leased, to anyone."""
    return (await group_of(calls)).progress[0].leased_count


async def advance_until_leased(calls, clock, count):
    """Moves the clock in small steps until so many are leased."""
    for _ in range(100):
        if await leased_count(calls) == count:
            return
        await clock.advance(50)
    raise AssertionError(f"never {count} leased")


@pytest.mark.parametrize("how", ["retry", "lease_runs_out"])
async def test_c34_no_later_record_of_a_key_comes_before_the_failed_one_is_a_dead_letter(how):
    clock = ManualClock()
    async with (
        serving(partition_count=1, clock=clock) as calls,
        member_on(calls, limits=1, **SETTINGS) as one,
        member_on(calls, limits=1, **SETTINGS) as two,
    ):
        await publish(calls, *VALUES, keys=KEYS)
        await clock.advance(1_000)
        first, second = await one.delivery(), await two.delivery()
        by_key = {first.values[0]: (one, first), second.values[0]: (two, second)}
        assert by_key.keys() == {b"A0", b"B0"}, "never two of a key, both members have one"
        (failing, held), (other, done) = by_key[b"A0"], by_key[b"B0"]
        seen: list[bytes] = []
        await other.settle(done)
        await drain(other, 4, seen)
        assert seen == [b"B1", b"B2", b"B3", b"B4"], "B does not wait for A"
        await other.limit(0)  # so that we know who gets what comes now
        for failures in (1, 2, 3):
            if how == "retry":
                result = await failing.settle(held, RETRY, reason="not yet")
                assert not result.HasField("error")
            elif failures < 3:
                await advance_until_leased(calls, clock, 0)
            else:
                while not await letters_of(calls):
                    await clock.advance(50)
            if failures == 3:
                break
            assert not failing.deliveries
            assert await leased_count(calls) == 0, "during the back-off nobody has any of A"
            await advance_until_leased(calls, clock, 1)
            held = await failing.delivery()
            told = held.values, held.failures, held.numbers
            assert told == ([b"A0"], [failures], [failures + 1])
        seen.clear()
        await drain(failing, 4, seen)
        assert seen == [b"A1", b"A2", b"A3", b"A4"], "a dead letter does not block its key"
        letters = await letters_of(calls)
        assert [(each.source_offset, each.failures) for each in letters] == [(0, 3)]
        await check_nothing_left(calls)


async def test_c34_what_is_prefetched_behind_a_failed_record_is_taken_back():
    clock = ManualClock()
    async with (
        serving(partition_count=1, clock=clock) as calls,
        member_on(calls, **{**SETTINGS, "order": PARTITION}) as member,
    ):
        await publish(calls, *VALUES[::2], keys=KEYS[::2])
        await clock.advance(1_000)
        held = await member.delivery()
        assert held.values == [b"A0", b"A1", b"A2", b"A3", b"A4"]
        await member.settle(held, ACK, 0, 2)
        await member.settle(held, RETRY, 2, 3)
        await member.until(lambda: member.taken_back)
        assert member.taken_back == [(held.token, 3, 5)]
        assert (await member.settle(held, ACK, 3, 4)).error.reason == "LEASE_LOST"
        await clock.advance(1_300)
        seen: list[bytes] = []
        for delivered in await member.take(3):
            for offset, value in delivered.records:
                seen.append(value)
                await member.settle(delivered, ACK, offset, offset + 1)
        assert seen == [b"A2", b"A3", b"A4"]


@pytest.mark.parametrize("how", ["retry", "lease_runs_out"])
async def test_c34_another_key_is_not_delayed_while_one_waits(how):
    clock = ManualClock()
    async with (
        serving(partition_count=1, clock=clock) as calls,
        member_on(calls, limits=10, **SETTINGS) as member,
    ):
        await publish(calls, b"A0", keys=[b"A"])
        await clock.advance(1_000)
        held = await member.delivery()
        if how == "retry":
            await member.settle(held, RETRY)
        else:
            await advance_until_leased(calls, clock, 0)
        seen: list[bytes] = []
        for number in range(5):  # the clock stands still: A0 waits all the time
            values = [b"A%d" % (number + 1), b"B%d" % number]
            await publish(calls, *values, keys=[b"A", b"B"])
            await drain(member, 1, seen)
        assert seen == [b"B0", b"B1", b"B2", b"B3", b"B4"]
        await advance_until_leased(calls, clock, 1)
        seen.clear()
        await drain(member, 6, seen)
        assert seen == [b"A0", b"A1", b"A2", b"A3", b"A4", b"A5"]
        await check_nothing_left(calls)


async def test_c34_without_an_order_only_the_record_itself_waits():
    clock = ManualClock()
    async with (
        serving(partition_count=1, clock=clock) as calls,
        member_on(calls, **{**SETTINGS, "order": group_pb2.ORDER_NONE}) as member,
    ):
        await publish(calls, *VALUES[::2], keys=KEYS[::2])
        await clock.advance(1_000)
        held = await member.delivery()
        assert held.values == [b"A0", b"A1", b"A2", b"A3", b"A4"]
        await member.settle(held, RETRY, 0, 1)
        assert (await member.settle(held, ACK, 1, 5)).committed_offset == 0
        assert not member.taken_back
        await clock.advance(1_300)
        again = await member.delivery()
        assert (again.values, again.failures) == ([b"A0"], [1])
        assert (await member.settle(again)).committed_offset == 5


class Keys:
    """What is known of the records of each key, and what must not be."""

    def __init__(self, keys: list[bytes]) -> None:
        self.keys = keys
        self.in_flight: set[bytes] = set()
        self.done: dict[bytes, int] = {}
        """The last one, by key."""
        self.open: dict[bytes, int] = {}
        """The one that comes before all later ones, by key."""
        self.left = len(keys)

    def begin(self, offset: int) -> None:
        """Takes note that somebody has it; AssertionError where another one comes first."""
        key = self.keys[offset]
        assert key not in self.in_flight, "never two of a key at a time"
        assert self.done.get(key, -1) < offset, "forward only"
        assert self.open.get(key, offset) == offset, "the one that waits comes first"
        self.in_flight.add(key)

    def end(self, offset: int, outcome: int) -> None:
        """Takes note of an answer."""
        key = self.keys[offset]
        self.in_flight.remove(key)
        if outcome in (ACK, REJECT):
            self.open.pop(key, None)
            self.done[key] = offset
            self.left -= 1
        else:
            self.open[key] = offset


@pytest.mark.parametrize("seed", range(3))
async def test_c34_never_two_of_a_key_are_in_flight_whoever_holds_them(seed):
    random = Random(seed)
    keys = Keys([b"%d" % random.randrange(6) for _ in range(300)])
    limits = LimitsConfig(idle_heartbeat_ms=100)
    settings = {**SETTINGS, "retry_initial_ms": 1, "retry_max_ms": 2, "lease_ms": 60_000}
    async with serving(partition_count=1, limits=limits) as calls:
        await publish(calls, *(b"%d" % at for at in range(300)), keys=keys.keys)

        async def work(limit: int) -> None:
            async with member_on(calls, limits=limit, **{**settings, "max_failures": 50}) as member:
                while keys.left:
                    await member.until(lambda: member.deliveries or not keys.left)
                    for held in member.deliveries[:]:
                        member.deliveries.remove(held)
                        for offset in held.offsets:
                            keys.begin(offset)
                        await asyncio.sleep(0)
                        for offset in held.offsets:
                            outcome = random.choice([ACK, ACK, ACK, RETRY, RELEASE, REJECT])
                            keys.end(offset, outcome)
                            await member.settle(held, outcome, offset, offset + 1)

        await asyncio.gather(*map(work, (1, 3, 50)))
        await check_nothing_left(calls)
