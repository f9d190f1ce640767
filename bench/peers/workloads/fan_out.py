"""(g) Fan-out: five groups read one topic, each in a process of its own.

The records of all five together, a second, from when all have joined to the last that any of
them gets; beside it one group alone. Settling is in bulk, as a log's reader does it.
"""

from collections.abc import Mapping
from functools import partial

from bench.peers.client import Subject, consuming
from bench.peers.lab import Lab
from bench.peers.rows import beside
from bench.peers.system import Ability, Level
from bench.peers.systems import OURS
from bench.rows import Row

SIZE = 100
GROUPS = (1, 5)


class FanOut:
    """One topic of one partition."""

    title = "Fan-out: groups read one topic, 100 bytes"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._topics: dict[Subject, str] = {}

    async def prepare(self) -> None:
        """Writes what is read."""
        client = await self._lab.clients.one()
        for level in Level:
            for subject in self._lab.subjects(level, Ability.GROUPS):
                topic = self._topics[subject] = self._lab.new_name()
                await client.ask("create", subject, topic=topic, partitions=1)
                await client.publish(subject, topic, SIZE, count=self._lab.scale.group_count)

    async def run_round(self) -> None:
        """Measures all."""
        for level in Level:
            for groups in GROUPS:
                for subject in self._lab.subjects(level, Ability.GROUPS):
                    action = partial(self._rate, subject, groups)
                    await self._lab.measure(_what(groups, level), subject.system.name, action)

    async def close(self) -> None:
        """Removes what was read."""
        client = await self._lab.clients.one()
        for subject, topic in self._topics.items():
            await client.ask("delete", subject, topic=topic)

    def rows(self) -> list[Row]:
        """Returns the rows of each level and number of groups."""
        rows = []
        for level in Level:
            theirs = self._lab.names(Ability.GROUPS, level=level)
            for groups in GROUPS:
                rows += beside(_what(groups, level), "records/s", [OURS.name], theirs)
        return rows

    async def _rate(self, subject: Subject, groups: int) -> Mapping[str, float]:
        names = [self._lab.new_name() for _ in range(groups)]
        clients, join_s = await self._lab.clients.some(groups), self._lab.scale.join_seconds
        topic, count = self._topics[subject], groups * self._lab.scale.group_count
        async with consuming(clients, subject, topic, names, join_s=join_s) as members:
            await members.check_count(count)
            taken = await members.end()
        return {_what(groups, subject.level): taken.rate}


def _what(groups: int, level: Level) -> str:
    return f"fan-out, {groups} group{'s' if groups > 1 else ''}, {level}"
