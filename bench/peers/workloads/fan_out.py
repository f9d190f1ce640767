"""(g) Fan-out: five groups read one topic, each in a process of its own.

The records of all five together, a second; beside it one group alone. Settling is in bulk, as
a log's reader does it. The first quarter of what is read is not in the rate, see `filled.py`
and `client.Consumed`.
"""

from collections.abc import Mapping
from functools import partial

from bench.peers.client import Subject
from bench.peers.lab import Lab
from bench.peers.rows import Row, beside
from bench.peers.system import Ability, Level
from bench.peers.systems import OURS
from bench.peers.workloads.filled import FilledTopics

GROUPS = (1, 5)


class FanOut:
    """One topic of one partition."""

    title = "Fan-out: groups read one topic, 100 bytes"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._topics = FilledTopics(lab, "consume")

    async def prepare(self) -> None:
        """Writes what is read."""
        for level in Level:
            await self._topics.prepare(self._lab.subjects(level, Ability.GROUPS))

    async def run_round(self) -> None:
        """Measures all; the warm-up is of one alone."""
        for level in Level:
            for groups in GROUPS if self._lab.round_number else GROUPS[:1]:
                for subject in self._lab.subjects(level, Ability.GROUPS):
                    action = partial(self._rate, subject, groups)
                    await self._lab.measure(_what(groups, level), subject, action)

    async def close(self) -> None:
        """Removes what was read."""
        await self._topics.close()

    def rows(self) -> list[Row]:
        """Returns the rows of each level and number of groups."""
        rows = []
        for level in Level:
            theirs = self._lab.names(Ability.GROUPS, level=level)
            for groups in GROUPS:
                rows += beside(_what(groups, level), "records/s", [OURS.name], theirs)
        return rows

    async def _rate(self, subject: Subject, groups: int) -> Mapping[str, float]:
        taken, _ = await self._topics.read(subject, members=groups, groups=groups)
        return {_what(groups, subject.level): taken.rate}


def _what(groups: int, level: Level) -> str:
    return f"fan-out, {groups} group{'s' if groups > 1 else ''}, {level}"
