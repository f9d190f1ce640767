"""(f) A work queue: how fast are records delivered and settled, each by itself?

One worker, and eight, each a process with a connection of its own. What they do with a record
is nothing. The topic is full, and all have joined, when they begin; the clock runs from then to
the last record that any of them takes, and then the group must have nothing left. Records that
a queue has no more are written again before each measurement.
"""

import asyncio
from collections.abc import Mapping
from functools import partial

from bench.peers.client import Subject, consuming
from bench.peers.lab import Lab
from bench.peers.rows import Goal, beside
from bench.peers.system import Ability, Level
from bench.peers.systems import OURS
from bench.rows import AtLeast, Row

SIZE = 100
WORKERS = (1, 8)
GOAL = AtLeast(2)
SETTLED_S = 5


class Work:
    """One group of workers, one topic of one partition."""

    title = "Work queue: deliver and settle one by one, 100 bytes"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._topics: dict[Subject, str] = {}

    async def prepare(self) -> None:
        """Writes what is worked on more than once."""
        for level in Level:
            for subject in self._lab.subjects(level, Ability.WORK):
                if subject.system.can(Ability.REPLAY):
                    self._topics[subject] = await self._filled(subject)

    async def run_round(self) -> None:
        """Measures all."""
        for level in Level:
            for workers in WORKERS:
                what = _what(workers, level)
                for subject in self._lab.subjects(level, Ability.WORK):
                    action = partial(self._rate, subject, workers)
                    await self._lab.measure(what, subject.system.name, action)

    async def close(self) -> None:
        """Removes what was worked on."""
        for subject, topic in self._topics.items():
            await self._remove(subject, topic)

    def rows(self) -> list[Row]:
        """Returns the rows of each level and number of workers."""
        rows = []
        for level in Level:
            theirs = self._lab.names(Ability.WORK, level=level)
            for workers in WORKERS:
                rows += beside(_what(workers, level), "records/s", [OURS.name], theirs, _goal)
        return rows

    async def _rate(self, subject: Subject, workers: int) -> Mapping[str, float]:
        topic = self._topics.get(subject) or await self._filled(subject)
        try:
            rate = await self._rate_of(subject, topic, workers)
        finally:
            if subject not in self._topics:
                await self._remove(subject, topic)
        return {_what(workers, subject.level): rate}

    async def _rate_of(self, subject: Subject, topic: str, workers: int) -> float:
        group, count = self._lab.new_name(), self._lab.scale.work_count
        clients, join_s = await self._lab.clients.some(workers), self._lab.scale.join_seconds
        async with consuming(
            clients, subject, topic, [group] * workers, way="work", join_s=join_s
        ) as members:
            await members.check_count(count)
            taken = await members.end()
        await self._check_settled(subject, topic, group)
        return taken.rate

    async def _check_settled(self, subject: Subject, topic: str, group: str) -> None:
        client = await self._lab.clients.one()
        async with asyncio.timeout(SETTLED_S):
            while await client.ask("unsettled", subject, topic=topic, group=group):  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    async def _filled(self, subject: Subject) -> str:
        client, topic = await self._lab.clients.one(), self._lab.new_name()
        await client.ask("create", subject, topic=topic, partitions=1)
        await client.publish(subject, topic, SIZE, count=self._lab.scale.work_count)
        return topic

    async def _remove(self, subject: Subject, topic: str) -> None:
        await (await self._lab.clients.one()).ask("delete", subject, topic=topic)


def _what(workers: int, level: Level) -> str:
    return f"work queue, {workers} worker{'s' if workers > 1 else ''}, {level}"


def _goal(_: str, __: str) -> Goal:
    return GOAL
