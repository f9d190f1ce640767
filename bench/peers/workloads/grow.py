"""(j) How does cost grow: with partitions, with members, with groups?

Publishing as fast as it goes to a topic of more and more partitions, keys spread over them.
From one publisher to all members of one group, each with a connection of its own; where a
partition has one owner at a time, the topic has as many partitions as there are members at
most, for one member as well. And one topic of one partition to more and more groups, of one
member each. All clients of one kind are in one process, which such members share.
"""

from collections.abc import Mapping
from functools import partial

from bench.peers.client import Subject, consuming
from bench.peers.lab import Lab
from bench.peers.rows import Row, beside
from bench.peers.system import Ability, Level
from bench.peers.systems import OURS

SIZE = 100
LEVEL = Level.WRITTEN


class Grow:
    """The fastest level alone."""

    title = "How cost grows, 100 bytes, written"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    async def prepare(self) -> None:
        """Has nothing to make."""

    async def run_round(self) -> None:
        """Measures all."""
        measure, subjects, scale = self._lab.measure, self._lab.subjects, self._lab.scale
        for count in scale.partitions:
            for subject in subjects(LEVEL, Ability.PARTITIONS):
                action = partial(self._publish, subject, count)
                await measure(_partitions(count), subject, action)
        for count in scale.members:
            for subject in subjects(LEVEL, Ability.SHARED):
                action = partial(self._members, subject, count)
                await measure(_members(count), subject, action)
        for count in scale.groups:
            for subject in subjects(LEVEL, Ability.GROUPS):
                action = partial(self._groups, subject, count)
                await measure(_groups(count), subject, action)

    async def close(self) -> None:
        """Has nothing to let go."""

    def rows(self) -> list[Row]:
        """Returns the rows of each count."""
        scale, rows = self._lab.scale, []
        for what, counts, ability in (
            (_partitions, scale.partitions, Ability.PARTITIONS),
            (_members, scale.members, Ability.SHARED),
            (_groups, scale.groups, Ability.GROUPS),
        ):
            theirs = self._lab.names(ability, level=LEVEL)
            for count in counts:
                rows += beside(what(count), "records/s", [OURS.name], theirs)
        return rows

    async def _publish(self, subject: Subject, partitions: int) -> Mapping[str, float]:
        client = await self._lab.clients.one()
        async with self._lab.topic(subject, partitions) as topic:
            rate = await client.publish(subject, topic, SIZE, seconds=self._lab.scale.seconds)
            return {_partitions(partitions): rate}

    async def _members(self, subject: Subject, count: int) -> Mapping[str, float]:
        """Publishes so many records once all members wait, and waits until they took all."""
        records, has_owners = self._lab.scale.grow_count, subject.system.has_owners
        async with self._lab.topic(
            subject, max(self._lab.scale.members) if has_owners else 1
        ) as topic:
            rate = await self._taken(subject, topic, self._lab.new_name(), count, records)
            return {_members(count): rate}

    async def _groups(self, subject: Subject, count: int) -> Mapping[str, float]:
        """The same, with a group for each member, which takes all."""
        records = self._lab.scale.grow_count // (10 if count > 1 else 1)
        async with self._lab.topic(subject) as topic:
            group = self._lab.new_name() + "-{}"
            rate = await self._taken(subject, topic, group, count, records, count)
            return {_groups(count): rate}

    async def _taken(
        self, subject: Subject, topic: str, group: str, members: int, records: int, times: int = 1
    ) -> float:
        publisher, consumer = await self._lab.clients.some(2)
        async with consuming([consumer], subject, topic, [group], members=members) as joined:
            await publisher.publish(subject, topic, SIZE, count=records)
            await joined.check_count(records * times)
            return (await joined.end()).rate


def _partitions(count: int) -> str:
    return f"publish to {count:,} partition{'s' if count > 1 else ''}"


def _members(count: int) -> str:
    return f"to {count:,} member{'s' if count > 1 else ''} of one group"


def _groups(count: int) -> str:
    return f"to {count:,} group{'s' if count > 1 else ''}, all together"
