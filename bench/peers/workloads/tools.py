"""(b) How does our Python client compare with the load tools that the others' people ship?

Those are native: Java, Go, C. They publish values of one size, all with the same key or with
none, and are told to batch or pipeline as their documentation advises. `logbroker` is the
Python client, as in (a), which publishes as many. The tools that can read are in (c).
"""

import asyncio
from collections.abc import Mapping
from functools import partial

from bench.peers.client import Subject
from bench.peers.lab import Lab
from bench.peers.rows import Goal, Row, beside
from bench.peers.system import Level
from bench.peers.systems import OURS
from bench.rows import AtLeast

SIZES = {100: 1.0, 1_000: 1 / 3}
"""How much of the scale's count is published of each."""
GOALS = {"kafka Java load tool": AtLeast(2)}


class Tools:
    """One tool, one topic of one partition."""

    title = "Publish: our Python client, and the others' own load tools"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    async def prepare(self) -> None:
        """Has nothing to make."""

    async def run_round(self) -> None:
        """Measures all."""
        for level in Level:
            for size in SIZES:
                what = _what(size, level)
                for subject in self._lab.subjects(level):
                    if subject.system is OURS:
                        action = partial(self._our_rate, subject, size)
                        await self._lab.measure(what, subject, action)
                    elif who := self._lab.tool_of(subject.system):
                        action = partial(self._tool_rate, subject, size)
                        await self._lab.measure(what, subject, action, who=who)

    async def close(self) -> None:
        """Has nothing to let go."""

    def rows(self) -> list[Row]:
        """Returns the rows of each level and size."""
        tools = [who for system in self._lab.systems if (who := self._lab.tool_of(system))]
        rows = []
        for level in Level:
            for size in SIZES:
                rows += beside(_what(size, level), "records/s", [OURS.name], tools, _goal)
        return rows

    async def _our_rate(self, subject: Subject, size: int) -> Mapping[str, float]:
        client = await self._lab.clients.one()
        count = round(self._lab.scale.tool_count * SIZES[size])
        async with self._lab.topic(subject) as topic:
            rate = await client.publish(subject, topic, size, count=count)
            return {_what(size, subject.level): rate}

    async def _tool_rate(self, subject: Subject, size: int) -> Mapping[str, float]:
        tool, server = subject.system.tool, self._lab.server(subject)
        assert tool
        count = self._lab.scale.tool_count * SIZES[size]
        if subject.level is Level.SYNCED:
            count *= tool.synced_part
        async with self._lab.topic(subject) as topic:
            rate = await asyncio.to_thread(
                tool.publish, server, topic, size, max(100, round(count))
            )
            return {_what(size, subject.level): rate}


def _what(size: int, level: Level) -> str:
    return f"publish {size:,} B, load tools, {level}"


def _goal(_: str, their: str) -> Goal:
    return GOALS.get(their)
