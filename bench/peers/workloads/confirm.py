"""(d) How long does one record take, published and confirmed, with nothing else under way?

A slow system publishes fewer of them, for its time ends: then p99.9 may be the slowest of all.

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
from bench.peers.quantiles import PERCENTILES, percentiles
from bench.peers.rows import Goal, Row, beside
from bench.peers.system import Level
from bench.peers.systems import OURS
from bench.records import Shape, records_of, request_bytes
from bench.rows import AtMost

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
            topics: dict[Subject, str] = {}
            for subject in subjects:
                make = partial(self._make, subject, topics)
                await self._lab.measure(_distribution(level), subject, make)
            for _ in range(TURNS):
                taken[LIMIT] += await self._limits(level)
                for subject, topic in topics.items():
                    turn = partial(self._turn, subject, topic, taken[subject.system.name])
                    await self._lab.measure(_distribution(level), subject, turn)
            for name, times in taken.items():
                if times:
                    self._lab.note(name, _found(level, times))
                    self._lab.note_latencies(_distribution(level), name, times)
            for subject, topic in topics.items():
                await self._lab.remove(subject, topic)

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
        client, scale = await self._lab.clients.one(), self._lab.scale
        taken += await client.ask(
            "confirm",
            subject,
            topic=topic,
            size=SHAPE.record_bytes,
            count=max(1, scale.confirm_count // TURNS),
            seconds=scale.confirm_seconds / TURNS,
        )
        return {}

    async def _make(self, subject: Subject, topics: dict[Subject, str]) -> Mapping[str, float]:
        topic = self._lab.new_name()
        await self._lab.create(subject, topic)
        topics[subject] = topic
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


def _found(level: Level, times: list[float]) -> Mapping[str, float]:
    return {_what(percentile, level): time for percentile, time in percentiles(times).items()}


def _what(percentile: str, level: Level) -> str:
    return f"confirmed, {level}, {percentile}"


def _distribution(level: Level) -> str:
    return f"confirmed, {level}"


def _goal(percentile: str, _: str, their: str) -> Goal:
    if their == LIMIT:
        return LIMIT_GOAL if percentile == "p50" else None
    return BEST_GOAL if percentile == "p99" else None
