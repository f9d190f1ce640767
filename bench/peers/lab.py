"""What every workload is measured with: running servers, clients, the bare limit, a place."""

import asyncio
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Protocol

from bench.bare import BareStreams
from bench.peers.client import ClientProcess, Clients, Subject
from bench.peers.rows import Row, name_of
from bench.peers.scale import Scale
from bench.peers.system import Ability, Level, Server, System
from bench.rows import Samples

FAILED_TWICE = 2
FIRST = "first"
"""A topic that each server has from its start."""
GIVEN_UP = 4
"""A system whose measurements failed so often in a row, at a level, is not measured there."""
SLOW_S = 10
"""What takes longer is told: a run has so many minutes."""
MEASURED_S = 240
"""For one measurement, whatever it orders: an end, so that a run has one."""


@dataclass(kw_only=True)
class Lab:
    """What the workloads share."""

    scale: Scale
    directory: Path
    systems: list[System]
    """Those that are installed."""
    bare: BareStreams
    clients: Clients
    samples: Samples = field(default_factory=Samples)
    failures: dict[str, list[str]] = field(default_factory=dict)
    """What could not be measured, and what it said."""
    distributions: dict[str, list[float]] = field(default_factory=dict)
    """Latencies in seconds of all rounds."""
    round_number: int = 0
    """0 is the warm-up."""
    servers: dict[tuple[str, Level], Server] = field(default_factory=dict)
    _in_a_row: dict[Subject, int] = field(default_factory=dict)
    _numbers: "count[int]" = field(default_factory=count)

    def __post_init__(self) -> None:
        self.directory = self.directory.resolve()  # servers run in other ones, below

    def subjects(self, level: Level, *abilities: Ability) -> list[Subject]:
        """Returns the systems that have a level and can all that; each round begins elsewhere."""
        found = [
            Subject(system, level, self.servers[system.name, level].address)
            for system in self.systems
            if (system.name, level) in self.servers and all(map(system.can, abilities))
        ]
        found = [one for one in found if self._in_a_row.get(one, 0) < GIVEN_UP]
        first = self.round_number % max(1, len(found))
        return found[first:] + found[:first]

    def names(self, *abilities: Ability, level: Level | None = None) -> list[str]:
        """Returns the names of the others that can all that, at that level if one is given."""
        return [
            system.name
            for system in self.systems[1:]
            if all(map(system.can, abilities)) and (level is None or level in system.levels)
        ]

    def tool_of(self, system: System) -> str:
        """Returns what a system's load tool is called here; empty if there is none."""
        if system.tool is None or system.tool_missing():
            return ""
        return f"{system.name} {system.tool.name}"

    def server(self, subject: Subject) -> Server:
        """Returns the server of a subject."""
        return self.servers[subject.system.name, subject.level]

    def new_server(self, subject: Subject, name: str, level: Level | None = None) -> Server:
        """Returns another server of that kind on a directory of this name, not started."""
        directory = self.directory / f"{subject.system.name}-{subject.level}-{name}"
        return subject.system.server(directory, level or subject.level)

    @asynccontextmanager
    async def filling(self, subject: Subject) -> AsyncIterator[None]:
        """Has the server as fast as it can be meanwhile: what is filled is not measured.

        Only where the level is the server's own: how a record was synced when it came does
        not show when it is read.
        """
        system, server = subject.system, self.server(subject)
        if system.is_level_of_topic or subject.level is system.fastest:
            yield
            return
        fast = system.server(server.directory, system.fastest)
        await asyncio.to_thread(server.stop)
        try:
            await self._restart(subject, fast)
            yield
        finally:
            await asyncio.to_thread(fast.stop)
            # To make a server writes its settings, which those of the fast one took the place of.
            self.servers[system.name, subject.level] = system.server(
                server.directory, subject.level
            )
            await self._restart(subject, self.server(subject))

    async def _restart(self, subject: Subject, server: Server) -> None:
        await asyncio.to_thread(server.start)
        await wait_answer(await self.clients.one(), subject, FIRST, is_new=False)

    async def create(self, subject: Subject, topic: str, partitions: int = 1) -> None:
        """Makes a topic."""
        client = await self.clients.one()
        await client.ask("create", subject, topic=topic, partitions=partitions)

    async def remove(self, subject: Subject, topic: str) -> None:
        """Removes a topic with its bytes; what cannot be removed is told, and stays."""
        client = await self.clients.one()
        try:
            await client.ask("delete", subject, topic=topic)
        except RuntimeError as error:
            print(f"{subject.system.title} keeps {topic}: {error}", file=sys.stderr, flush=True)

    async def fill(self, subject: Subject, topic: str, size: int, count: int) -> None:
        """Publishes so many records to a topic that is there."""
        client = await self.clients.one()
        await client.publish(subject, topic, size, count=count)

    @asynccontextmanager
    async def topic(self, subject: Subject, partitions: int = 1) -> AsyncIterator[str]:
        """Makes a topic, and removes it at the end with its bytes."""
        name = self.new_name()
        await self.create(subject, name, partitions)
        yield name
        await self.remove(subject, name)

    def stop_servers(self) -> None:
        """Ends all servers in good order."""
        for server in set(self.servers.values()):
            server.stop()

    def new_name(self) -> str:
        """Returns a name that nothing has."""
        return f"bench-{next(self._numbers)}"

    async def measure(
        self,
        what: str,
        subject: Subject,
        action: Callable[[], Awaitable[Mapping[str, float]]],
        *,
        who: str = "",
    ) -> bool:
        """Notes what an action measures: values of a system, by what they are of.

        `who` says which of several ways the system's is. What it raises is told and noted, and
        the others go on; what failed twice is not tried again. Tells whether it was measured.
        """
        who = who or subject.system.name
        name = name_of(what, who)
        failures = self.failures.setdefault(name, [])
        if len(failures) >= FAILED_TWICE:
            return False
        begun = perf_counter()
        try:
            async with asyncio.timeout(MEASURED_S):
                found = await action()
        except Exception as error:  # one system's trouble is not the run's
            if (task := asyncio.current_task()) and task.cancelling():
                raise asyncio.CancelledError from error  # the run is to end, and this came of it
            self._in_a_row[subject] = self._in_a_row.get(subject, 0) + 1
            failures.append(f"{type(error).__name__}: {error}")
            print(f"FAILED: {name}: {failures[-1]}", file=sys.stderr, flush=True)
            return False
        self._in_a_row[subject] = 0
        self.note(who, found)
        if (took_s := perf_counter() - begun) > SLOW_S:
            print(f"{name}: {took_s:.0f} s", file=sys.stderr, flush=True)
        return True

    def note(self, who: str, found: Mapping[str, float]) -> None:
        """Notes values, by what they are of."""
        if self.round_number:
            for of, value in found.items():
                self.samples.add(name_of(of, who), value)

    def note_latencies(self, what: str, who: str, times: list[float]) -> None:
        """Notes latencies for a picture of their distribution."""
        if self.round_number:
            self.distributions.setdefault(name_of(what, who), []).extend(times)


class Workload(Protocol):
    """One file of `workloads`."""

    title: str

    async def prepare(self) -> None:
        """Makes ready what is not measured."""

    async def run_round(self) -> None:
        """Measures every row once, what is compared right after one another."""

    async def close(self) -> None:
        """Lets go of what it made."""

    def rows(self) -> list[Row]:
        """Returns the rows, in the order of the table."""


@asynccontextmanager
async def open_lab(scale: Scale, parent: Path, systems: list[System]) -> AsyncIterator[Lab]:
    """Starts a server for each system and level; at the end ends all and removes all data."""
    async with AsyncExitStack() as stack:
        directory = Path(tempfile.mkdtemp(prefix="peers-", dir=parent))
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        bare, clients = BareStreams(), Clients()
        stack.push_async_callback(bare.close)
        stack.callback(clients.end)
        await bare.open()
        lab = Lab(scale=scale, directory=directory, systems=systems, bare=bare, clients=clients)
        stack.callback(lab.stop_servers)
        for system in systems:
            for level in Level:
                if level in system.levels:
                    await _start(lab, system, level)
        yield lab


async def _start(lab: Lab, system: System, level: Level) -> None:
    others = [server for (name, _), server in lab.servers.items() if name == system.name]
    if system.is_level_of_topic and others:
        lab.servers[system.name, level] = others[0]
        return
    server = system.server(lab.directory / f"{system.name}-{level}", level)
    lab.servers[system.name, level] = server
    print(f"starting {system.title}, {level}", file=sys.stderr, flush=True)
    try:
        await asyncio.to_thread(server.start)
        client = await lab.clients.one()
        await wait_answer(client, Subject(system, level, server.address), FIRST)
    except Exception as error:  # noqa: BLE001  # one system's trouble is not the run's
        lab.failures[name_of(f"start, {level}", system.name)] = [f"{type(error).__name__}: {error}"]
        print(f"FAILED: {system.title} does not start: {error}", file=sys.stderr, flush=True)
        await asyncio.to_thread(server.stop)
        del lab.servers[system.name, level]


async def wait_answer(
    client: ClientProcess, subject: Subject, topic: str, *, is_new: bool = True
) -> float:
    """Returns when a record was confirmed, as soon as the server does that."""
    found = await client.ask("answer", subject, topic=topic, is_new=is_new, size=100)
    return float(found)
