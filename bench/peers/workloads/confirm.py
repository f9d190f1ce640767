"""(d) How long does one record take, published and confirmed, with nothing else under way?

In turns of a few records each, so that all meet the same noise. `limit` is what logbroker
cannot do without: a message and its answer on a bare gRPC stream, and where the answer waits
for the disk an fdatasync after an append of as many bytes.
"""

import asyncio
import os
from collections import defaultdict
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from time import perf_counter

from bench.bare import Ping
from bench.peers.client import Subject
from bench.peers.lab import Lab
from bench.peers.rows import Goal, beside
from bench.peers.system import Level
from bench.peers.systems import OURS
from bench.publish import PERCENTILES, percentile_of
from bench.records import Shape, records_of, request_bytes
from bench.rows import AtMost, Row

SHAPE = Shape(100, 1)
TURNS = 5
LIMIT = "limit"
LIMIT_GOAL = AtMost(1.25)
"""Of p50."""
BEST_GOAL = AtMost(1)
"""Of p99, against every peer: so against the best."""


class Confirm:
    """One publisher, which waits for each answer."""

    title = "One record of 100 bytes, published and confirmed"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._stack = AsyncExitStack()
        self._ping: Ping | None = None
        self._file = -1

    async def prepare(self) -> None:
        """Opens the bare stream and a file."""
        self._file = os.open(self._lab.directory / "synced", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        self._stack.callback(os.close, self._file)
        self._ping = await self._lab.bare.open_ping(request_bytes(SHAPE))
        self._stack.push_async_callback(self._ping.close)

    async def run_round(self) -> None:
        """Measures all in turns."""
        for level in Level:
            subjects = self._lab.subjects(level)
            taken: defaultdict[str, list[float]] = defaultdict(list)
            async with AsyncExitStack() as stack:
                topics = {
                    subject: await stack.enter_async_context(self._lab.topic(subject))
                    for subject in subjects
                }
                for _ in range(TURNS):
                    taken[LIMIT] += await self._limits(level)
                    for subject in subjects:
                        name = subject.system.name
                        turn = partial(self._turn, subject, topics[subject], taken[name])
                        await self._lab.measure(_what("turn", level), name, turn)
            for name, times in taken.items():
                await self._lab.measure(_what("all", level), name, partial(_found, level, times))
                self._lab.note_latencies(_distribution(level), name, times)

    async def close(self) -> None:
        """Closes the stream and the file."""
        await self._stack.aclose()

    def rows(self) -> list[Row]:
        """Returns a row for each percentile of each."""
        rows = []
        for level in Level:
            theirs = [LIMIT, *self._lab.names(level=level)]
            for percentile in PERCENTILES:
                goal = partial(_goal, percentile)
                rows += beside(_what(percentile, level), "us", [OURS.name], theirs, goal)
        return rows

    async def _turn(self, subject: Subject, topic: str, taken: list[float]) -> Mapping[str, float]:
        client = await self._lab.clients.one()
        count = max(1, self._lab.scale.confirm_count // TURNS)
        order = client.ask("confirm", subject, topic=topic, size=SHAPE.record_bytes, count=count)
        taken += await order
        return {}

    async def _limits(self, level: Level) -> list[float]:
        """Returns the times of pings, with that of an fdatasync on top of each where one is."""
        assert self._ping
        value, times = records_of(SHAPE)[0].values[0], []
        for _ in range(max(1, self._lab.scale.confirm_count // TURNS)):
            begun = perf_counter()
            await self._ping()
            if level is Level.SYNCED:
                os.write(self._file, value)
                os.fdatasync(self._file)
            times.append(perf_counter() - begun)
            await asyncio.sleep(0)
        return times


async def _found(level: Level, times: list[float]) -> Mapping[str, float]:
    return {
        _what(percentile, level): percentile_of(times, part) * 1e6
        for percentile, part in PERCENTILES.items()
    }


def _what(percentile: str, level: Level) -> str:
    return f"confirmed, {level}, {percentile}"


def _distribution(level: Level) -> str:
    return f"confirmed, {level}"


def _goal(percentile: str, _: str, their: str) -> Goal:
    if their == LIMIT:
        return LIMIT_GOAL if percentile == "p50" else None
    return BEST_GOAL if percentile == "p99" else None
