"""(e) How long from a publisher to a consumer, at 1,000 and at 10,000 records a second?

Two processes, one clock. A record carries the time at which it was due to be sent (`pace.py`),
so a system that cannot keep the rate shows in its latencies how far it is behind; `kept` says
which part of the rate it had.
"""

from collections.abc import Mapping
from functools import partial

from bench.peers.client import Subject, consuming
from bench.peers.lab import Lab, wait_answer
from bench.peers.quantiles import PERCENTILES, percentiles
from bench.peers.rows import Goal, Row, beside
from bench.peers.system import Level
from bench.peers.systems import OURS
from bench.rows import AtMost

SIZE = 100
RATES = (1_000, 10_000)
GOAL = AtMost(1)
"""Of p99 at 10,000 a second, against every peer: so against the best."""


class Pace:
    """One publisher, one consumer, one topic of one partition."""

    title = "From publisher to consumer at a rate, 100 bytes"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    async def prepare(self) -> None:
        """Has nothing to make."""

    async def run_round(self) -> None:
        """Measures all."""
        for level in Level:
            for rate in RATES:
                for subject in self._lab.subjects(level):
                    action = partial(self._latencies, subject, rate)
                    await self._lab.measure(_what(level, rate), subject, action)

    async def close(self) -> None:
        """Has nothing to let go."""

    def rows(self) -> list[Row]:
        """Returns the percentiles of each level and rate, and how much of the rate was kept."""
        rows = []
        for level in Level:
            theirs = self._lab.names(level=level)
            for rate in RATES:
                what = _what(level, rate)
                for percentile in PERCENTILES:
                    goal = partial(_goal, percentile, rate)
                    rows += beside(f"{what}, {percentile}", "us", [OURS.name], theirs, goal)
                rows += beside(f"{what}, kept", "%", [OURS.name], theirs)
        return rows

    async def _latencies(self, subject: Subject, rate: int) -> Mapping[str, float]:
        publisher, consumer = await self._lab.clients.some(2)
        seconds = self._lab.scale.pace_seconds
        async with self._lab.topic(subject) as topic:
            groups = [self._lab.new_name()]
            async with consuming([consumer], subject, topic, groups, take="stamp") as members:
                await wait_answer(publisher, subject, topic, is_new=False)
                await members.check_count(1)
                found = await publisher.ask(
                    "pace", subject, topic=topic, rate=rate, seconds=seconds, size=SIZE
                )
                await members.check_count(1 + found["count"])
                taken = await members.end()
        what, who = _what(subject.level, rate), subject.system.name
        self._lab.note_latencies(what, who, taken.latencies)
        return {
            f"{what}, kept": 100 * found["rate"] / rate,
            **{f"{what}, {name}": time for name, time in percentiles(taken.latencies).items()},
        }


def _what(level: Level, rate: int) -> str:
    return f"end to end at {rate:,}/s, {level}"


def _goal(percentile: str, rate: int, _: str, __: str) -> Goal:
    return GOAL if percentile == "p99" and rate == max(RATES) else None
