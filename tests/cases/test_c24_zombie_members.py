"""C24: a member that was away too long disturbs nobody when it comes back."""

import asyncio
import time
from collections import deque
from contextlib import AsyncExitStack
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import pytest
from server.calls import serving
from server.members import ACK, RETRY, member_on, publish

from cases.effort import effort
from cases.grouped import calls_to, group_of, make_topic, settle_each
from cases.watching import becomes_true
from cases.zombie import Zombie
from logbroker.client import Client, Delivered, PendingSettlement
from logbroker.errors import LogbrokerError
from logbroker.testing.clock import ManualClock
from logbroker.testing.running_broker import BrokerProcess
from logbroker.v1.group_service_pb2 import ResetOffsetsRequest

PARTITIONS, HELD_BACK = 6, 40
SHORT_KEEPALIVE = (
    "--set", "listen.keepalive_ms=1000", "--set", "listen.keepalive_timeout_ms=1000",
)  # fmt: skip


@pytest.mark.slow
async def test_c24_a_stopped_process_loses_its_records_and_its_late_answers_are_refused(tmp_path):
    with BrokerProcess(Path(tmp_path) / "data", *SHORT_KEEPALIVE) as broker:
        async with AsyncExitStack() as stack, calls_to(broker.address) as calls:
            await make_topic(calls)
            await publish(calls, *(b"%d" % number for number in range(30)))
            async with member_on(calls, limits=0, retry_initial_ms=1):
                pass  # makes the group
            zombie = await Zombie.start(broker.address)
            stack.push_async_callback(zombie.end)
            assert await zombie.hear() == ["begun", "0", "1"]
            zombie.process.send_signal(SIGSTOP)
            stopped = time.monotonic()
            async with member_on(calls) as other:
                seen: list[int] = []
                async with asyncio.timeout(30):
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


@pytest.mark.slow
async def test_c24_what_a_stopped_process_settles_as_it_closes_moves_nobody(tmp_path):
    with BrokerProcess(Path(tmp_path) / "data", *SHORT_KEEPALIVE) as broker:
        async with AsyncExitStack() as stack, calls_to(broker.address) as calls:
            await make_topic(calls)
            await publish(calls, *(b"%d" % number for number in range(30)))
            async with member_on(calls, limits=0, retry_initial_ms=1):
                pass  # makes the group
            zombie = await Zombie.start(broker.address, "auto")
            stack.push_async_callback(zombie.end)
            for offset in range(10):  # what comes before the last one is done, it says, in a while
                assert await zombie.hear() == ["begun", str(offset), "1"]
                if offset < 9:
                    zombie.tell("hold")
            zombie.process.send_signal(SIGSTOP)
            async with member_on(calls) as other:
                seen: list[int] = []
                async with asyncio.timeout(30):
                    while not seen or seen[-1] < 29:
                        held = await other.delivery()
                        seen += held.offsets
                        await settle_each(other, held)
                print(f"it had settled {seen[0]} records as it was stopped")
                assert seen == list(range(seen[0], 30))
                assert seen[0] < 10
                await calls.groups.ResetOffsets(back_to(0))
                again = await other.delivery()
                assert again.offsets == list(range(30)), "who is there holds these now"
                zombie.process.send_signal(SIGCONT)
                zombie.tell("close")
                assert await zombie.hear() == ["closed"]
                [progress] = (await group_of(calls)).progress
                assert (progress.committed_offset, progress.leased_count) == (0, 30)
                assert (await other.settle(again)).committed_offset == 30
                assert (again.token, 0, 30) not in other.taken_back


def back_to(offset: int) -> ResetOffsetsRequest:
    return ResetOffsetsRequest(group="g", topic="a", offset=offset, force=True)


class Answers:
    """What became of the answers of all members."""

    def __init__(self) -> None:
        self.confirmed: set[tuple[int, int]] = set()
        self.refused: list[str] = []

    async def note(self, place: tuple[int, int], pending: PendingSettlement) -> None:
        """Takes note of one, once it is known."""
        try:
            await pending
            self.confirmed.add(place)
        except LogbrokerError as error:
            self.refused.append(error.reason)


@pytest.mark.slow
async def test_c24_partitions_that_move_while_answers_are_under_way_are_settled_by_one_or_the_other(
    tmp_path,
):
    """What was confirmed to one is never given to another, whatever moves between the two."""
    with BrokerProcess(Path(tmp_path) / "data") as broker:
        async with Client(broker.address) as client:
            await client.admin.create_topic("a", PARTITIONS)
            await client.admin.create_group("g")
            answers, is_over, has_sent = Answers(), asyncio.Event(), asyncio.Event()
            staying = asyncio.create_task(answer_all(client, answers, is_over))
            sending = asyncio.create_task(send_until(client, has_sent))
            for _ in range(effort(6, 60)):
                await becomes_true(lambda: is_shared_by(client, 1), "all belongs to one")
                leaves, before = asyncio.Event(), len(answers.confirmed)
                guest = asyncio.create_task(answer_all(client, answers, leaves))
                await becomes_true(lambda: is_shared_by(client, 2), "the guest has its share")
                await becomes_true(
                    lambda before=before: len(answers.confirmed) > before + 100, "all go on"
                )
                leaves.set()
                await guest
            has_sent.set()
            count = await sending
            await becomes_true(lambda: len(answers.confirmed) == count, "all is settled")
            found = await client.admin.get_offsets("g", "a")
            is_over.set()
            await staying
            print(f"{count} records settled; {len(answers.refused)} answers came too late")
            assert answers.refused, "some were under way as their partition moved"
            assert set(answers.refused) == {"LEASE_LOST"}
            assert sum(one.committed_offset or 0 for one in found) == count
            assert {(one.lag, one.leased_count) for one in found} == {(0, 0)}


async def is_shared_by(client: Client, count: int) -> bool:
    members = (await client.admin.get_group("g")).members
    return [len(one.assignment) for one in members] == [PARTITIONS // count] * count


async def send_until(client: Client, has_sent: asyncio.Event) -> int:
    """Sends some records a millisecond, and returns how many were stored."""
    number = 0
    async with client.producer("a") as producer:
        while not has_sent.is_set():
            for number in range(number, number + PARTITIONS):  # noqa: B020
                await producer.send(b"%d" % number, partition=number % PARTITIONS)
            number += 1
            await asyncio.sleep(0.001)
    return number


async def answer_all(client: Client, answers: Answers, leaves: asyncio.Event) -> None:
    """Acknowledges what comes, each some records later, and waits for none of the answers."""
    async with (
        asyncio.TaskGroup() as notes,
        client.consumer("g", "a", auto_settle=False) as consumer,
    ):
        leaving = asyncio.create_task(leaves.wait())
        held: deque[Delivered] = deque()

        def answer_but(count: int) -> None:
            while len(held) > count:
                record = held.popleft()
                notes.create_task(answers.note(place_of(record), consumer.acknowledge(record)))

        while not leaves.is_set():
            coming = asyncio.ensure_future(anext(consumer))
            await asyncio.wait({coming, leaving}, return_when=asyncio.FIRST_COMPLETED, timeout=1)
            if coming.done():
                held.append(coming.result())
                assert place_of(held[-1]) not in answers.confirmed, "settled, and delivered again"
                answer_but(HELD_BACK)
            else:  # nothing comes any more, for now
                coming.cancel()
                answer_but(0)
        leaving.cancel()


def place_of(record: Delivered) -> tuple[int, int]:
    return record.partition, record.offset


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
