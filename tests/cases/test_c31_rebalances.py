"""C31: members come and go; what does not move is not disturbed, and nothing is lost."""

import asyncio
import time
from collections.abc import Iterable
from itertools import chain, pairwise
from pathlib import Path

import pytest
from server.calls import ending, serving
from server.members import member_of, member_on, publish

from cases.data_dirs import log_lines
from cases.effort import effort
from cases.grouped import calls_to, group_of, make_topic
from cases.numbered import NumberedWriter, number_of
from cases.watching import becomes_true
from logbroker.client import Client
from logbroker.errors import ConflictError
from logbroker.testing.clock import ManualClock
from logbroker.testing.running_broker import BrokerProcess

pytestmark = pytest.mark.slow
MEMBERS, PARTITIONS = effort(6, 20), effort(12, 40)
RESTARTS = MEMBERS // 2
RESTART_EVERY_S = 0.5
PAUSE_S = 2


class Counting:
    """A member that settles all it gets, and notes when."""

    def __init__(self, client: Client, instance_id: str) -> None:
        self.seen: set[tuple[int, int]] = set()
        self.came: dict[int, list[float]] = {}
        self.consumer = client.consumer("g", "a", instance_id=instance_id)
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async with self.consumer:
            async for record in self.consumer:
                self.seen.add(number_of(record.value))
                self.came.setdefault(record.partition, []).append(time.monotonic())

    async def end(self) -> None:
        """Ends it in order."""
        self.task.cancel()
        await asyncio.wait({self.task})


async def all_have_some(calls) -> bool:
    """Tells whether all members are there, and own partitions."""
    found = (await group_of(calls)).members
    return len(found) == MEMBERS and all(one.assignment for one in found)


def longest_gap(times: Iterable[float]) -> float:
    """Returns the longest time between two that follow one another."""
    return max((later - earlier for earlier, later in pairwise(sorted(times))), default=0)


@pytest.mark.parametrize("has_ids", [True, False], ids=["fixed_ids", "no_ids"])
async def test_c31_members_restart_one_after_another_under_load_and_nothing_is_lost(
    tmp_path, has_ids
):
    with BrokerProcess(Path(tmp_path) / "data") as broker:
        async with (
            calls_to(broker.address) as calls,
            Client(broker.address) as client,
            Client(broker.address) as writing,
        ):
            await make_topic(calls, partition_count=PARTITIONS)
            names = [f"i{at}" if has_ids else "" for at in range(MEMBERS)]
            members = [Counting(client, name) for name in names]
            every = list(members)
            await becomes_true(lambda: members[0].consumer.stats().member_id != "", "joined")
            await becomes_true(lambda: all_have_some(calls), "all have partitions")
            stop = asyncio.Event()
            writers = [NumberedWriter(writing, "a", at, at) for at in range(PARTITIONS)]
            tasks = [asyncio.create_task(writer.run(stop)) for writer in writers]
            before = {member: member.consumer.assignment for member in members}
            changes = len(log_lines(broker, "assignment changed"))
            for at in range(RESTARTS):
                await members[at].end()
                members[at] = Counting(client, names[at])
                every.append(members[at])
                await asyncio.sleep(RESTART_EVERY_S)
            await becomes_true(lambda: all_have_some(calls), "all are back")
            changes = len(log_lines(broker, "assignment changed")) - changes
            print(f"{changes} changes of the assignment in {RESTARTS} restarts")
            if has_ids:
                assert changes == 0, "no rebalance"
                stayed = [(one.consumer.assignment, before[one]) for one in members[RESTARTS:]]
                assert all(now == was for now, was in stayed)
            else:
                assert changes <= 2 * RESTARTS, "joins and ends are gathered"
            stop.set()
            await asyncio.gather(*tasks)
            wanted = {(one.writer, number) for one in writers for number in one.acked}
            found = lambda: set().union(*(member.seen for member in every))  # noqa: E731
            await becomes_true(lambda: wanted <= found(), "all have come", within_s=20)
            by_partition = [
                [when for member in every for when in member.came.get(at, ())]
                for at in range(PARTITIONS)
            ]
            stall_s = longest_gap(chain(*by_partition))  # of all: the machine did something else
            gaps = [longest_gap(times) - stall_s for times in by_partition]
            print(f"a partition paused {max(gaps):.2f} s at most, all of them {stall_s:.2f} s")
            assert max(gaps) < PAUSE_S
            for member in members:
                await member.end()


async def test_c31_a_second_process_with_an_id_in_use_takes_its_place_and_nothing_flaps(tmp_path):
    with BrokerProcess(Path(tmp_path) / "data") as broker:
        async with (
            calls_to(broker.address) as calls,
            Client(broker.address) as one,
            Client(broker.address) as two,
        ):
            await make_topic(calls, partition_count=4)
            first = Counting(one, "same")
            other = Counting(one, "other")
            await becomes_true(
                lambda: len(first.consumer.assignment) == len(other.consumer.assignment) == 2,
                "both have their share",
            )
            owned = first.consumer.assignment
            joins = len(log_lines(broker, "member joined"))
            second = Counting(two, "same")
            with pytest.raises(ConflictError) as caught:
                await asyncio.wait_for(first.task, 10)
            assert caught.value.reason == "MEMBER_FENCED"
            assert caught.value.details["instance_id"] == "same"
            await becomes_true(lambda: second.consumer.assignment == owned, "it has its place")
            await publish(calls, b"0:1:", partition=owned[0].partition)
            await becomes_true(lambda: (0, 1) in second.seen, "and gets what comes")
            await asyncio.sleep(1)  # in which anybody could come back
            assert len(log_lines(broker, "member joined")) == joins + 1
            assert len((await group_of(calls)).members) == 2
            assert second.consumer.stats().joined_count == other.consumer.stats().joined_count == 1
            for member in (second, other):
                await member.end()


async def test_c31_of_two_members_with_one_id_exactly_one_is_fenced():
    clock = ManualClock()
    async with serving(partition_count=2, clock=clock) as calls:
        await publish(calls, b"v")
        old = await member_of(calls, instance_id="one")
        await clock.advance(1_000)
        assert (await old.delivery()).values == [b"v"]
        async with member_on(calls, instance_id="one") as new:
            code, info, _ = await ending(old.call)
            assert (code.name, info.reason) == ("ABORTED", "MEMBER_FENCED")
            assert info.metadata["instance_id"] == "one"
            await clock.advance(1_000)
            held = await new.delivery()
            assert held.values == [b"v"]
            assert not (await new.settle(held)).HasField("error")
            assert len((await group_of(calls)).members) == 1


async def test_c31_after_a_broker_restart_members_are_back_without_a_storm(tmp_path):
    with BrokerProcess(Path(tmp_path) / "data") as broker:
        async with Client(broker.address) as client:
            await client.admin.create_topic("a", partition_count=PARTITIONS)
            members = [Counting(client, f"i{at}") for at in range(MEMBERS)]

            def all_have_some() -> bool:
                return all(member.consumer.assignment for member in members)

            await becomes_true(all_have_some, "all have partitions")
            await asyncio.to_thread(broker.kill)
            await asyncio.to_thread(broker.start)
            took_s = await becomes_true(all_have_some, "all are back", within_s=15)
            assert took_s < 10
            said = broker.log_file.read_text().split("assignment changed")
            assert len(said) - 1 <= 2 * (MEMBERS + 2), "joins are gathered"
            for member in members:
                await member.end()


async def test_c31_members_that_leave_at_once_hear_the_end_of_their_streams(tmp_path):
    with BrokerProcess(Path(tmp_path) / "data") as broker:
        async with calls_to(broker.address) as calls:
            await make_topic(calls)
            await publish(calls, *[b"v"] * 30)
            for number in range(150):  # one in twenty once waited for ever
                member = await member_of(calls, group=f"g{number % 7}", limits=0)
                await member.leave()
