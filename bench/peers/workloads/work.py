"""(f) A work queue: how fast are records delivered and settled, each by itself?

One worker, and eight, each a process with a connection of its own. What they do with a record
is nothing. The topic is full, and all have joined, when they begin; the first quarter of what
is read is not in the rate, see `filled.py` and `client.Consumed`. At the end the group must
have nothing left, where the system can tell. Records that a queue has no more are written
again before each measurement.
"""

import asyncio
from collections.abc import Mapping
from functools import partial

from bench.peers.client import Subject
from bench.peers.lab import Lab
from bench.peers.rows import Goal, Row, beside
from bench.peers.system import Ability, Level
from bench.peers.systems import OURS
from bench.peers.workloads.filled import FilledTopics
from bench.rows import AtLeast

WORKERS = (1, 8)
GOAL = AtLeast(2)
SETTLED_S = 5


class Work:
    """One group of workers, one topic of one partition."""

    title = "Work queue: deliver and settle one by one, 100 bytes"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._topics = FilledTopics(lab, "work")

    async def prepare(self) -> None:
        """Writes what is worked on."""
        for level in Level:
            await self._topics.prepare(self._lab.subjects(level, Ability.WORK))

    async def run_round(self) -> None:
        """Measures all; the warm-up is of one alone."""
        for level in Level:
            for workers in WORKERS if self._lab.round_number else WORKERS[:1]:
                for subject in self._lab.subjects(level, Ability.WORK):
                    action = partial(self._rate, subject, workers)
                    await self._lab.measure(_what(workers, level), subject, action)

    async def close(self) -> None:
        """Removes what was worked on."""
        await self._topics.close()

    def rows(self) -> list[Row]:
        """Returns the rows of each level and number of workers."""
        rows = []
        for level in Level:
            theirs = self._lab.names(Ability.WORK, level=level)
            for workers in WORKERS:
                rows += beside(_what(workers, level), "records/s", [OURS.name], theirs, _goal)
        return rows

    async def _rate(self, subject: Subject, workers: int) -> Mapping[str, float]:
        taken, group = await self._topics.read(subject, members=workers, groups=1)
        await self._check_settled(subject, group)
        return {_what(workers, subject.level): taken.rate}

    async def _check_settled(self, subject: Subject, group: str) -> None:
        client, topic = await self._lab.clients.one(), self._topics.topic(subject)
        async with asyncio.timeout(SETTLED_S):
            while await client.ask("unsettled", subject, topic=topic, group=group):  # noqa: ASYNC110
                await asyncio.sleep(0.05)


def _what(workers: int, level: Level) -> str:
    return f"work queue, {workers} worker{'s' if workers > 1 else ''}, {level}"


def _goal(_: str, __: str) -> Goal:
    return GOAL
