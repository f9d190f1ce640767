"""(c) How fast is a topic read from its start to its end, without a group?

Reading does not depend on how a record was synced when it came, so there is one level. What
is read was just written and comes from the page cache, or, with Redis, from its memory.
The topics are filled by the systems' own tools where there is one, which is faster.
`logbroker` gives records one by one, `by batch` the records of each batch, and `raw` batches
whose checksums were verified and that are not decoded: that is for who copies or forwards.
"""

import asyncio
from collections.abc import Mapping
from functools import partial

from bench.peers.client import Subject
from bench.peers.lab import Lab
from bench.peers.rows import Goal, Row, beside
from bench.peers.system import Ability, Level, System
from bench.peers.systems import OURS
from bench.rows import AtLeast

SIZES = (100, 1_000)
RAW = f"{OURS.name} raw"
RECORDS = "records"
THOUSAND = 1_000


class Replay:
    """One reader of one topic of one partition."""

    title = "Replay"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._topics: dict[tuple[Subject, int], str] = {}

    async def prepare(self) -> None:
        """Writes what is read."""
        for subject in self._subjects():
            for size in SIZES:
                action = partial(self._fill, subject, size)
                await self._lab.measure(f"fill to {_what(size)}", subject, action)

    async def run_round(self) -> None:
        """Measures all, and the load tools that can read; the warm-up is the short one."""
        for size in SIZES if self._lab.round_number else SIZES[:1]:
            what = _what(size)
            for subject in self._subjects():
                for how in subject.system.replays:
                    who = _who(subject.system.name, how)
                    action = partial(self._rate, subject, size, how)
                    await self._lab.measure(what, subject, action, who=who)
                if who := self._reading_tool(subject.system):
                    action = partial(self._tool_rate, subject, size)
                    await self._lab.measure(what, subject, action, who=who)

    async def close(self) -> None:
        """Removes what was read."""
        for (subject, _), topic in self._topics.items():
            await self._lab.remove(subject, topic)

    def rows(self) -> list[Row]:
        """Returns the rows of each size."""
        ours = [_who(OURS.name, how) for how in OURS.replays]
        theirs = self._lab.names(Ability.REPLAY, level=Level.WRITTEN)
        tools = [who for system in self._lab.systems if (who := self._reading_tool(system))]
        rows = []
        for size in SIZES:
            rows += beside(_what(size), "records/s", ours, [*theirs, *tools], _goal)
        return rows

    def _subjects(self) -> list[Subject]:
        return self._lab.subjects(Level.WRITTEN, Ability.REPLAY)

    def _reading_tool(self, system: System) -> str:
        return self._lab.tool_of(system) if system.tool and system.tool.reads else ""

    def _count(self, size: int) -> int:
        part = 1 if size == max(SIZES) else 20
        thousands = self._lab.scale.replay_bytes // part // size // THOUSAND
        return max(1, thousands) * THOUSAND

    async def _fill(self, subject: Subject, size: int) -> Mapping[str, float]:
        """Makes a topic; its system's own tool fills it if there is one, which is faster."""
        topic, count = self._lab.new_name(), self._count(size)
        await self._lab.create(subject, topic)
        if self._lab.tool_of(subject.system) and (tool := subject.system.tool):
            server = self._lab.server(subject)
            await asyncio.to_thread(tool.fill, server, topic, size, count)
        else:
            await self._lab.fill(subject, topic, size, count)
        self._topics[subject, size] = topic
        return {}

    async def _rate(self, subject: Subject, size: int, how: str) -> Mapping[str, float]:
        client = await self._lab.clients.one()
        topic, count = self._topics[subject, size], self._count(size)
        found = await client.ask("replay", subject, topic=topic, count=count, how=how)
        assert how == "raw" or found["bytes"] == size * count, found
        return {_what(size): count / found["seconds"]}

    async def _tool_rate(self, subject: Subject, size: int) -> Mapping[str, float]:
        tool, server = subject.system.tool, self._lab.server(subject)
        assert tool
        topic, count = self._topics[subject, size], self._count(size)
        rate = await asyncio.to_thread(tool.read, server, topic, size, count)
        return {_what(size): rate}


def _what(size: int) -> str:
    return f"replay {size:,} B"


def _who(name: str, how: str) -> str:
    return name if how == RECORDS else f"{name} {how}"


def _goal(our: str, their: str) -> Goal:
    if our == RAW:
        return AtLeast(0.8) if their == "kafka Java load tool" else None
    return AtLeast(4) if " " not in their else None  # of both ways that decode
