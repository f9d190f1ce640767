"""How long does one record take, published and confirmed, with nothing else under way?

Beside it stand what no broker can do without: a message and its answer on a bare stream,
and for `synced` an fdatasync after an append of 100 bytes to a file, and the sum of the two.
"""

import os
from contextlib import AsyncExitStack
from time import perf_counter

from bench.bare import Ping
from bench.lab import SYNCED, WRITTEN, Lab
from bench.records import Shape, records_of, request_bytes
from bench.rows import AtMost, Row
from logbroker.client.producer import Producer

SHAPE = Shape(100, 1)
BLOCKS = 20
"""In so many turns of a few records each is a round measured, so that all meet the same noise."""
PERCENTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
PING, SYNC, SUM = "bare ping-pong", "bare fdatasync", "ping-pong + fdatasync"
LIMITS = {"written": PING, "synced": SUM}
P50_GOAL = AtMost(1.25)
P99_GOAL = AtMost(3)
"""As a multiple of its own p50."""


class PublishOne:
    """(d): one record at a time, the next when the receipt is there."""

    title = "One record of 100 bytes, published and confirmed"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._stack = AsyncExitStack()
        self._producers: dict[str, Producer] = {}
        self._ping: Ping | None = None
        self._file = -1

    async def prepare(self) -> None:
        """Opens streams and producers."""
        lab, enter = self._lab, self._stack.enter_async_context
        self._file = os.open(lab.directory / "bare", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        self._stack.callback(os.close, self._file)
        self._ping = await lab.bare.open_ping(request_bytes(SHAPE))
        self._stack.push_async_callback(self._ping.close)
        for name, settings in {"written": WRITTEN, "synced": SYNCED}.items():
            topic = await enter(lab.topic(settings))
            self._producers[name] = await enter(lab.client.producer(topic))
            await self._publish(name, 10)

    async def run_round(self) -> None:
        """Measures all in turns."""
        each = max(1, self._lab.scale.publish_count // BLOCKS)
        taken: dict[str, list[float]] = {PING: [], "written": [], SYNC: [], "synced": []}
        for _ in range(BLOCKS):
            taken[PING] += await self._pings(each)
            taken["written"] += await self._publish("written", each)
            taken[SYNC] += self._syncs(each)
            taken["synced"] += await self._publish("synced", each)
        for percentile, part in PERCENTILES.items():
            found = {name: percentile_of(times, part) for name, times in taken.items()}
            found[SUM] = found[PING] + found[SYNC]
            for name, time in found.items():
                self._lab.samples.add(f"{name} {percentile}", time * 1e6)

    async def close(self) -> None:
        """Closes streams and producers."""
        await self._stack.aclose()

    def rows(self) -> list[Row]:
        """Returns a row for each percentile of each of the five."""
        rows = [
            Row(name=f"{name} {percentile}", unit="us")
            for name in (PING, SYNC, SUM)
            for percentile in PERCENTILES
        ]
        for name, limit in LIMITS.items():
            p50 = f"{name} p50"
            rows += [
                Row(name=p50, unit="us", limit=f"{limit} p50", goal=P50_GOAL),
                Row(name=f"{name} p99", unit="us", limit=p50, goal=P99_GOAL),
                Row(name=f"{name} p99.9", unit="us", limit=p50),
            ]
        return rows

    async def _pings(self, count: int) -> list[float]:
        assert self._ping
        times = []
        for _ in range(count):
            begun = perf_counter()
            await self._ping()
            times.append(perf_counter() - begun)
        return times

    async def _publish(self, name: str, count: int) -> list[float]:
        producer, times = self._producers[name], []
        value, key = (column[0] for column in records_of(SHAPE)[0])
        for _ in range(count):
            begun = perf_counter()
            await producer.publish(value, key)
            times.append(perf_counter() - begun)
        return times

    def _syncs(self, count: int) -> list[float]:
        value, times = records_of(SHAPE)[0].values[0], []
        for _ in range(count):
            begun = perf_counter()
            os.write(self._file, value)
            os.fdatasync(self._file)
            times.append(perf_counter() - begun)
        return times


def percentile_of(times: list[float], part: float) -> float:
    """Returns the smallest time that at least this part of them do not exceed."""
    return sorted(times)[min(len(times) - 1, int(len(times) * part))]
