"""(i) SIGKILL under load, and a start with what was there before.

A server of its own, with 1 GiB of records of 10,000 bytes in another topic, is killed while a
client publishes numbers, a hundred at a time. From the start after it runs the clock, until a
record is confirmed. There is no warm-up: each start is a first one. Then all numbers are read:
each that was confirmed must be there. A killed process loses nothing that the operating system
has; so this is no test of the disk. The topics are as old as the first records: a quorum queue
of RabbitMQ 3.10 that was made just before the kill takes no records after it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from time import perf_counter

from bench.peers.client import ClientProcess, Subject, consuming
from bench.peers.lab import Lab, wait_answer
from bench.peers.rows import Goal, Row, alone, beside
from bench.peers.system import Level, Server
from bench.peers.systems import OURS
from bench.rows import AtMost

SIZE = 1_000
OLD_SIZE = 10_000
OLD = "old"
MARGIN_S = 60
"""How much longer than until the kill a client may go on, before that is an error."""
STILL_S = 5
NONE_LOST = AtMost(0)


class Kill:
    """A server for each system and level, killed once a round."""

    title = "SIGKILL under load"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._servers: dict[Subject, Server] = {}
        self._size = f"{lab.scale.restart_bytes >> 20:,} MiB"

    async def prepare(self) -> None:
        """Writes what is there before, at each system's fastest level."""
        for level in Level:
            for subject in self._lab.subjects(level):
                action = partial(self._fill, subject)
                await self._lab.measure(f"fill, {level}", subject, action)

    async def run_round(self) -> None:
        """Measures all."""
        if not self._lab.round_number:
            return
        for subject, server in self._servers.items():
            what = f"{self.title}, {subject.level}"
            action = partial(self._found, subject, server)
            await self._lab.measure(what, subject, action)

    async def close(self) -> None:
        """Removes what was there."""
        for server in self._servers.values():
            await asyncio.to_thread(server.stop)
            server.remove()

    def rows(self) -> list[Row]:
        """Returns the time, the losses and how much was confirmed."""
        rows = []
        for level in Level:
            theirs = self._lab.names(level=level)
            rows += beside(self._restart(level), "s", [OURS.name], theirs)
            for what, goal in {_confirmed(level): None, _lost(level): NONE_LOST}.items():
                goal_of = partial(_our_goal, goal)
                rows += alone(what, "records", [OURS.name, *theirs], goal_of)
        return rows

    async def _fill(self, subject: Subject) -> Mapping[str, float]:
        client, fastest = await self._lab.clients.one(), subject.system.fastest
        server = self._lab.new_server(subject, "kill", fastest)
        try:
            await asyncio.to_thread(server.start)
            filled = Subject(subject.system, fastest, server.address)
            await wait_answer(client, filled, OLD)
            count = max(1, self._lab.scale.restart_bytes // OLD_SIZE)
            await client.publish(filled, OLD, OLD_SIZE, count=count)
            measured = Subject(subject.system, subject.level, server.address)
            for number in range(self._lab.scale.rounds + 1):  # some levels are a topic's own
                await client.ask("create", measured, topic=_topic(number), partitions=1)
        finally:
            await asyncio.to_thread(server.stop)
        self._servers[subject] = self._lab.new_server(subject, "kill")
        return {}

    async def _found(self, subject: Subject, server: Server) -> Mapping[str, float]:
        fresh = Subject(subject.system, subject.level, server.address)
        topic, level = _topic(self._lab.round_number), subject.level
        if not server.is_running:  # otherwise it runs since the round before
            await asyncio.to_thread(server.start)
        try:
            confirmed = await self._killed(fresh, server, topic)
            client = await self._lab.clients.one()
            begun = perf_counter()
            await asyncio.to_thread(server.start)
            seconds = await wait_answer(client, fresh, topic, is_new=False) - begun
            numbers = await self._numbers(fresh, topic, confirmed)
        except BaseException:
            await asyncio.to_thread(server.kill)
            raise
        return {
            self._restart(level): seconds,
            _confirmed(level): confirmed,
            _lost(level): lost_of(confirmed, numbers),
        }

    async def _killed(self, fresh: Subject, server: Server, topic: str) -> int:
        """Returns how many numbers were confirmed until the server was killed."""
        client, load_s = await self._lab.clients.one(), self._lab.scale.load_seconds
        await wait_answer(client, fresh, topic, is_new=False)
        publisher = ClientProcess()
        try:
            await publisher.wait_ready()
            publishing = asyncio.create_task(
                publisher.ask("hundreds", fresh, topic=topic, size=SIZE, seconds=load_s + MARGIN_S)
            )
            await asyncio.sleep(load_s)
            await asyncio.to_thread(server.kill)
            return int(await publishing)
        finally:
            publisher.kill()
            publisher.end()

    async def _numbers(
        self, fresh: Subject, topic: str, confirmed: int
    ) -> Sequence[tuple[int, int]]:
        """Returns all numbers that are there, as half-open ranges."""
        client, group = await self._lab.clients.one(), self._lab.new_name()
        async with consuming([client], fresh, topic, [group], take="number") as members:
            # Two more: of the answers before and after. That some are lost is no error here.
            await members.wait_count(confirmed + 2, STILL_S)
            numbers = (await members.end()).numbers
        if lost_of(confirmed, numbers):  # lost, or late?
            left = await client.ask("unsettled", fresh, topic=topic, group=group)
            if left:
                raise RuntimeError(f"{left} records are there, and did not come")
        return numbers

    def _restart(self, level: Level) -> str:
        return f"restart to the next answer, {self._size}, {level}"


def lost_of(confirmed: int, ranges: Sequence[tuple[int, int]]) -> int:
    """Returns how many of 1 to `confirmed` are in none of the half-open ranges."""
    found = sum(max(0, min(end, confirmed + 1) - max(first, 1)) for first, end in ranges)
    return confirmed - found


def _topic(number: int) -> str:
    return f"numbers-{number}"


def _confirmed(level: Level) -> str:
    return f"confirmed before the kill, {level}"


def _lost(level: Level) -> str:
    return f"confirmed and lost, {level}"


def _our_goal(goal: Goal, who: str) -> Goal:
    return goal if who == OURS.name else None
