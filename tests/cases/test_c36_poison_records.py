"""C36: a record that kills whoever has it burns its own attempts, and then is a dead letter."""

from pathlib import Path

import pytest
from server.calls import serving
from server.members import RETRY, member_of, member_on, publish

from cases.grouped import (
    calls_to,
    check_nothing_left,
    group_of,
    letters_of,
    make_topic,
    settle_each,
    until_members,
)
from cases.watching import becomes_true
from cases.zombie import Zombie
from logbroker.testing.clock import ManualClock
from logbroker.testing.running_broker import BrokerProcess
from logbroker.v1 import group_pb2

ORDERS = [group_pb2.ORDER_PARTITION, group_pb2.ORDER_KEY, group_pb2.ORDER_NONE]
NAMES = ["partition", "key", "none"]
LIMIT = 5


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS, ids=NAMES)
async def test_c36_attempts_are_counted_over_killed_consumers_and_a_killed_broker(tmp_path, order):
    with BrokerProcess(Path(tmp_path) / "data") as broker:
        numbers, failures = [], []
        for attempt in range(1, LIMIT + 1):
            if attempt == 4:
                broker.kill()
                broker.start()
            async with calls_to(broker.address) as calls:
                if attempt == 1:
                    await make_topic(calls)
                    await publish(calls, b"poison")
                member = await member_of(
                    calls, order=order, max_failures=LIMIT, retry_initial_ms=20
                )
                held = await member.delivery()
                assert held.values == [b"poison"]
                numbers += held.numbers
                failures += held.failures
                member.vanish()
                await until_members(calls, 0)
        assert (numbers, failures) == ([1, 2, 3, 4, 5], [0, 1, 2, 3, 4])
        async with calls_to(broker.address) as calls:

            async def is_dead() -> bool:
                return bool(await letters_of(calls))

            await becomes_true(is_dead, "it is a dead letter")
            [letter] = await letters_of(calls)
            assert (letter.source_offset, letter.failures) == (0, LIMIT)
            await check_nothing_left(calls)
            await publish(calls, b"good")
            async with member_on(calls) as member:
                assert (await member.delivery()).values == [b"good"]


@pytest.mark.slow
async def test_c36_processes_that_a_record_kills_are_counted_as_well(tmp_path):
    with BrokerProcess(Path(tmp_path) / "data") as broker:
        async with calls_to(broker.address) as calls:
            await make_topic(calls)
            async with member_on(calls, limits=0, max_failures=3, retry_initial_ms=20):
                pass  # makes the group
            await publish(calls, b"poison")
            begun = []
            for _ in range(3):
                zombie = await Zombie.start(broker.address)
                begun.append(await zombie.hear())
                await zombie.end()
            assert begun == [["begun", "0", "1"], ["begun", "0", "2"], ["begun", "0", "3"]]

            async def is_dead() -> bool:
                return bool(await letters_of(calls))

            await becomes_true(is_dead, "it is a dead letter")
            await publish(calls, b"good")
            zombie = await Zombie.start(broker.address)
            assert await zombie.hear() == ["begun", "1", "1"]
            zombie.tell("ack")
            assert await zombie.hear() == ["settled", "1"]
            await zombie.end()
            await check_nothing_left(calls)


@pytest.mark.parametrize("order", ORDERS, ids=NAMES)
async def test_c36_neighbours_of_a_poison_record_keep_their_attempts(order):
    clock = ManualClock()
    async with serving(partition_count=1, clock=clock) as calls:
        await publish(calls, b"0", b"poison", b"2", keys=[b"x", b"y", b"z"])
        done: dict[bytes, int] = {}
        for _ in range(40):
            if len(done) == 2 and await letters_of(calls):
                break
            member = await member_of(calls, order=order, max_failures=3, retry_initial_ms=10)
            await clock.advance(1_000)
            while (await group_of(calls)).progress[0].lag:
                held = await member.delivery()
                if b"poison" in held.values:
                    member.vanish()
                    await until_members(calls, 0)
                    break
                done |= dict(zip(held.values, held.failures, strict=False))
                await settle_each(member, held)
            else:
                await member.leave()
        assert done == {b"0": 0, b"2": 0}, "they never failed"
        [letter] = await letters_of(calls)
        assert (letter.source_offset, letter.failures) == (1, 3)
        await check_nothing_left(calls)


async def test_c36_a_late_retry_does_not_count_a_failure_twice():
    clock = ManualClock()
    async with (
        serving(partition_count=1, clock=clock) as calls,
        member_on(calls, lease_ms=2_000, retry_initial_ms=10, max_failures=LIMIT) as member,
    ):
        await publish(calls, b"poison")
        await clock.advance(1_000)
        numbers, failures = [], []
        for _ in range(LIMIT):
            held = await member.delivery()
            numbers += held.numbers
            failures += held.failures
            await clock.advance(2_001)
            await member.until(lambda: member.taken_back)
            member.taken_back.clear()
            late = await member.settle(held, RETRY)
            assert late.error.reason == "LEASE_LOST"
            await clock.advance(1_000)
        assert (numbers, failures) == ([1, 2, 3, 4, 5], [0, 1, 2, 3, 4])
        [letter] = await letters_of(calls)
        assert letter.failures == LIMIT
