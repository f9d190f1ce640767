"""(a) How fast does one Python client publish keyed records of 100 and 1,000 bytes?

`as fast as it goes` is whatever the client has for that, and at the end all is answered. `each
receipt` is one record at a time and a look at every answer; only of the clients that have a
faster way than that.
"""

from collections.abc import Mapping
from functools import partial

from bench.peers.client import Subject
from bench.peers.lab import Lab
from bench.peers.rows import Goal, Row, beside
from bench.peers.system import Level, Sending
from bench.peers.systems import OURS, SYSTEMS
from bench.rows import AtLeast

SIZES = (100, 1_000)
WAYS = {Sending.FASTEST: "as fast as it goes", Sending.EACH: "each receipt"}
KAFKA = "kafka"


class Publish:
    """One publisher, one topic of one partition."""

    title = "Publish from one Python client"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    async def prepare(self) -> None:
        """Has nothing to make."""

    async def run_round(self) -> None:
        """Measures all, those that are compared one after the other."""
        for level in Level:
            for size in SIZES:
                for sending in WAYS:
                    what = _what(sending, size, level)
                    for subject in self._lab.subjects(level):
                        if sending is Sending.FASTEST or subject.system.is_blind_faster:
                            action = partial(self._rate, subject, size, sending, what)
                            await self._lab.measure(what, subject, action)

    async def close(self) -> None:
        """Has nothing to let go."""

    def rows(self) -> list[Row]:
        """Returns the rows of each level, size and way."""
        rows = []
        for level in Level:
            everyone = self._lab.names(level=level)
            blind = [name for name in everyone if SYSTEMS[name].is_blind_faster]
            for size in SIZES:
                for sending in WAYS:
                    theirs = everyone if sending is Sending.FASTEST else blind
                    goal = _goal_of_all if sending is Sending.FASTEST else _goal_of_each
                    what = _what(sending, size, level)
                    rows += beside(what, "records/s", [OURS.name], theirs, goal)
        return rows

    async def _rate(
        self, subject: Subject, size: int, sending: Sending, what: str
    ) -> Mapping[str, float]:
        client = await self._lab.clients.one()
        async with self._lab.topic(subject) as topic:
            seconds = self._lab.scale.seconds
            rate = await client.publish(subject, topic, size, seconds=seconds, sending=sending)
            return {what: rate}


def _what(sending: Sending, size: int, level: Level) -> str:
    return f"publish {size:,} B, {WAYS[sending]}, {level}"


def _goal_of_all(_: str, their: str) -> Goal:
    return AtLeast(1.5 if their == KAFKA else 2)


def _goal_of_each(_: str, their: str) -> Goal:
    return AtLeast(1) if their == KAFKA else None
