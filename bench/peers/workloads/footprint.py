"""(h) What does a server take: time to its first answer, memory, bytes on the disk?

Each round has a new server on a new directory, so there is no warm-up. `start` is from `exec`
until a topic is made and a record in it confirmed; what a system does once to a new directory
before its first start is not in it. Memory is that of all the server's processes: idle, some
time after that first answer; and the most that was seen while one client published for some
time as fast as it goes and then read half of it. Bytes a record are the growth of the
directory's blocks by so many records, after the server has stopped: that has no noise, and is
measured in the first round alone.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from time import perf_counter

from bench.peers.client import Subject
from bench.peers.lab import Lab, wait_answer
from bench.peers.rows import Goal, Row, beside
from bench.peers.system import Ability, Level, Server
from bench.peers.systems import OURS
from bench.rows import AtMost

SIZES = (100, 1_000)
WATCH_S = 0.02
START, IDLE, LOADED = "start to the first answer", "RSS idle", "RSS under load"
GOALS = {START: AtMost(1 / 5), IDLE: AtMost(1 / 4), LOADED: AtMost(1 / 4)}
KAFKA = "kafka"
TOPIC = "footprint"


class Footprint:
    """A new server each time."""

    title = "What a server takes"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    async def prepare(self) -> None:
        """Has nothing to make."""

    async def run_round(self) -> None:
        """Measures all: at the fastest level, where there is one."""
        if not self._lab.round_number:
            return
        subjects = {
            subject.system.name: subject for level in Level for subject in self._lab.subjects(level)
        }
        for subject in subjects.values():
            await self._lab.measure(self.title, subject, partial(self._found, subject))

    async def close(self) -> None:
        """Has nothing to let go."""

    def rows(self) -> list[Row]:
        """Returns the rows."""
        theirs = self._lab.names()
        rows = beside(START, "s", [OURS.name], theirs, partial(_goal, START))
        for what in (IDLE, LOADED):
            rows += beside(what, "MiB", [OURS.name], theirs, partial(_goal, what))
        for size in SIZES:
            rows += beside(_disk(size), "B", [OURS.name], theirs)
        return rows

    async def _found(self, subject: Subject) -> Mapping[str, float]:
        server = self._lab.new_server(subject, self._lab.new_name())
        try:
            return await self._found_of(subject, server)
        finally:
            await asyncio.to_thread(server.stop)
            server.remove()

    async def _found_of(self, subject: Subject, server: Server) -> Mapping[str, float]:
        client = await self._lab.clients.one()
        fresh = Subject(subject.system, subject.level, server.address)
        await asyncio.to_thread(server.prepare)
        begun = perf_counter()
        await asyncio.to_thread(server.start)
        started = await wait_answer(client, fresh, TOPIC) - begun
        await asyncio.sleep(self._lab.scale.idle_seconds)
        idle = server.rss_bytes()
        watching = asyncio.create_task(_watch(server))
        try:
            await self._load(fresh)
        finally:
            watching.cancel()
        loaded = await watching
        found = {START: started, IDLE: idle / (1 << 20), LOADED: loaded / (1 << 20)}
        for size in SIZES if self._lab.round_number == 1 else ():
            found[_disk(size)] = await self._bytes_a_record(fresh, server, size)
        return found

    async def _load(self, fresh: Subject) -> None:
        client, topic = await self._lab.clients.one(), f"{TOPIC}-load"
        await client.ask("create", fresh, topic=topic, partitions=1)
        seconds = self._lab.scale.seconds
        rate = await client.publish(fresh, topic, max(SIZES), seconds=seconds)
        if fresh.system.can(Ability.REPLAY):
            count = max(1, int(rate * seconds / 2))
            await client.ask("replay", fresh, topic=topic, count=count, how="records")

    async def _bytes_a_record(self, fresh: Subject, server: Server, size: int) -> float:
        """Returns the growth by so many records, between two stops."""
        client, topic = await self._lab.clients.one(), f"{TOPIC}-{size}"
        count = self._lab.scale.footprint_count
        await client.ask("create", fresh, topic=topic, partitions=1)
        before = await _stopped_bytes(server)
        await wait_answer(client, fresh, topic, is_new=False)
        await client.publish(fresh, topic, size, count=count)
        grown = await _stopped_bytes(server) - before
        await wait_answer(client, fresh, topic, is_new=False)
        return grown / count


async def _stopped_bytes(server: Server) -> int:
    """Returns what the directory takes when the server has stopped; starts it again."""
    await asyncio.to_thread(server.stop)
    size = server.disk_bytes()
    await asyncio.to_thread(server.start)
    return size


async def _watch(server: Server) -> int:
    """Returns the most memory that the server had, once it is cancelled."""
    most = 0
    try:
        while True:
            most = max(most, server.rss_bytes())
            await asyncio.sleep(WATCH_S)
    except asyncio.CancelledError:
        return most


def _disk(size: int) -> str:
    return f"disk for each record of {size:,} B"


def _goal(what: str, _: str, their: str) -> Goal:
    return GOALS[what] if their == KAFKA else None
