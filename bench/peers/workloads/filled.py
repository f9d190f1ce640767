"""Topics that groups read, each as long as reading it takes some time.

One count for all would be nothing to the fastest and too much for the slowest. So each topic
is read once with few records, which tells how fast that goes, and then filled up to what takes
`Scale.consume_seconds`: within the scale's limits, and those of how fast it can be filled.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from time import perf_counter

from bench.peers.client import Consumed, Subject, consuming
from bench.peers.lab import Lab
from bench.peers.scale import Scale
from bench.peers.system import Ability

SIZE = 100


class FilledTopics:
    """One topic of one partition for each system and level."""

    def __init__(self, lab: Lab, way: str) -> None:
        """`way` is how it is read: `consume` or `work`."""
        self._lab = lab
        self._way = way
        self._topics: dict[Subject, str] = {}
        self._counts: dict[Subject, int] = {}

    async def prepare(self, subjects: Iterable[Subject]) -> None:
        """Makes and fills the topics; a system that cannot be prepared is left out."""
        for subject in subjects:
            what = f"fill to {self._way}, {subject.level}"
            await self._lab.measure(what, subject, partial(self._prepare, subject))

    async def read(self, subject: Subject, members: int, groups: int) -> tuple[Consumed, str]:
        """Returns what so many members took, and the last group's name; each has its process.

        RuntimeError if not all of it came to each group.
        """
        if subject not in self._counts:
            raise RuntimeError("there is no topic to read")
        topic, count = self._topics[subject], self._counts[subject]
        if not subject.system.can(Ability.REPLAY):
            await self._lab.fill(subject, topic, SIZE, count)
        names = [self._lab.new_name() for _ in range(groups)] * (members // groups)
        taken = await self._read(subject, names, count * groups)
        return taken, names[-1]

    def topic(self, subject: Subject) -> str:
        """Returns the name of a system's topic."""
        return self._topics[subject]

    async def close(self) -> None:
        """Removes the topics."""
        for subject, topic in self._topics.items():
            await self._lab.remove(subject, topic)

    async def _prepare(self, subject: Subject) -> dict[str, float]:
        lab, least = self._lab, self._lab.scale.consume_counts[0]
        topic = lab.new_name()
        async with lab.filling(subject):
            await lab.create(subject, topic)
            self._topics[subject] = topic
            begun = perf_counter()
            await lab.fill(subject, topic, SIZE, least)
            fill_rate = least / (perf_counter() - begun)
        taken = await self._read(subject, [lab.new_name()], least)
        count = count_of(lab.scale, taken.whole_rate, fill_rate)
        if count > least and subject.system.can(Ability.REPLAY):
            async with lab.filling(subject):
                await lab.fill(subject, topic, SIZE, count - least)
        self._counts[subject] = count
        return {}

    async def _read(self, subject: Subject, groups: Sequence[str], count: int) -> Consumed:
        clients = await self._lab.clients.some(len(groups))
        topic = self._topics[subject]
        async with consuming(
            clients, subject, topic, groups, way=self._way, together=True
        ) as members:
            await members.check_count(count)
            return await members.end()


def count_of(scale: Scale, rate: float, fill_rate: float) -> int:
    """Returns how many records to read, of those that come and go at such rates."""
    least, most = scale.consume_counts
    return int(max(least, min(rate * scale.consume_seconds, fill_rate * scale.fill_seconds, most)))
