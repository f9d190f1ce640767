"""C24: a member that was away too long disturbs nobody when it comes back."""

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import pytest
from server.calls import serving
from server.members import ACK, RETRY, member_on, publish

from cases.grouped import calls_to, group_of, make_topic, settle_each
from cases.zombie import Zombie
from logbroker.testing.clock import ManualClock
from logbroker.testing.running_broker import BrokerProcess


@pytest.mark.slow
async def test_c24_a_stopped_process_loses_its_records_and_its_late_answers_are_refused(tmp_path):
    args = ("--set", "listen.keepalive_ms=1000", "--set", "listen.keepalive_timeout_ms=1000")
    with BrokerProcess(Path(tmp_path) / "data", *args) as broker:
        async with AsyncExitStack() as stack, calls_to(broker.address) as calls:
            await make_topic(calls)
            await publish(calls, *(b"%d" % number for number in range(30)))
            async with member_on(calls, limits=0, lease_ms=1_000, retry_initial_ms=1):
                pass  # makes the group
            zombie = await Zombie.start(broker.address)
            stack.push_async_callback(zombie.end)
            assert await zombie.hear() == ["begun", "0", "1"]
            zombie.process.send_signal(SIGSTOP)
            stopped = time.monotonic()
            async with member_on(calls) as other:
                seen: list[int] = []
                async with asyncio.timeout(8):
                    while len(seen) < 30:
                        held = await other.delivery()
                        seen += held.offsets
                        await settle_each(other, held)
                print(f"taken over after {time.monotonic() - stopped:.1f} s")
                assert seen == list(range(30))
                zombie.process.send_signal(SIGCONT)
                zombie.tell("ack")
                word, offset, *_ = await zombie.hear()
                assert (word, offset) == ("lost", "0")
                assert not other.taken_back
                [progress] = (await group_of(calls)).progress
                assert (progress.committed_offset, progress.lag) == (30, 0)
            await publish(calls, b"30")
            assert (await zombie.hear())[:2] == ["begun", "30"], "it dropped the rest, and is back"
            zombie.tell("ack")
            assert await zombie.hear() == ["settled", "30"]


async def test_c24_a_partition_that_moved_while_an_answer_was_under_way():
    clock = ManualClock()
    async with serving(partition_count=2, clock=clock) as calls, member_on(calls) as a:
        await publish(calls, *[b"v"] * 10)
        await publish(calls, *[b"v"] * 10, partition=1)
        await clock.advance(1_000)
        held = {each.delivery.partition: each for each in await a.take(20)}
        async with member_on(calls) as b:
            await clock.advance(1_000)
            moved = await b.delivery()
            partition = moved.delivery.partition
            assert moved.offsets == list(range(10))
            for outcome in (ACK, RETRY):
                late = await a.settle(held[partition], outcome)
                assert late.error.reason == "LEASE_LOST"
            stays = await a.settle(held[1 - partition])
            assert not stays.HasField("error"), "what did not move is not disturbed"
            assert not (await b.settle(moved)).HasField("error")
            assert not b.taken_back
            progress = (await group_of(calls)).progress
            assert [one.committed_offset for one in progress] == [10, 10]
