"""How long until a record that is published is in the hands of a group's handler?

One record at a time, with nothing else under way: the next is published 30 ms after the one
before was handled, when it is settled and all is still. Beside it stands a message and its
answer on a bare stream, at the same pace. Publisher and handler are one process, so one clock
times both.

`in a row` is the next one published at once when the one before is handled, while broker and
client have its settlement to see to; beside it messages on the bare stream in a row.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from time import perf_counter

from bench.bare import Ping
from bench.lab import WRITTEN, Lab
from bench.publish import BLOCKS, percentile_of
from bench.records import Shape, records_of, request_bytes
from bench.rows import AtMost, Row
from logbroker.client.consumer import Consumer
from logbroker.client.delivered import Delivered
from logbroker.client.producer import Producer
from logbroker.client.settlement_pause import GATHER_MS

Once = Callable[[], Awaitable[float]]

SHAPE = Shape(100, 1)
PING, LOOP, WORKER = "ping-pong beside deliveries", "to a consumer's loop", "to a worker's handler"
IN_A_ROW = "in a row"
PERCENTILES = {"p50": 0.5, "p99": 0.99}
PAUSE_S = 1.5 * GATHER_MS / 1_000
"""After this nothing is left to do of a record: its settlement has gathered, and is answered."""
FEWER, FEWEST = 4, 10
"""In a row, and with pauses, are so many times fewer records than the scale says."""
P50_GOAL = AtMost(3)
TIMEOUT_S = 60
"""For a block: a record that is not delivered is a failure, and no endless wait."""


class Latency:
    """A producer, and two groups of one member: a loop over a consumer, and a worker."""

    title = "From publish to the handler, one record of 100 bytes at a time, written"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._stack = AsyncExitStack()
        self._ping: Ping | None = None
        self._ways: dict[str, Once] = {PING: self._message}
        self._handled: asyncio.Future[float]

    async def prepare(self) -> None:
        """Opens streams, producers and members."""
        lab, enter = self._lab, self._stack.enter_async_context
        self._ping = await lab.bare.open_ping(request_bytes(SHAPE))
        self._stack.push_async_callback(self._ping.close)
        for name in (LOOP, WORKER):
            topic = await enter(lab.topic(WRITTEN))
            producer = await enter(lab.client.producer(topic))
            if name == WORKER:
                await enter(lab.client.worker("latency", topic, self._handle))
            else:
                consumer = await enter(lab.client.consumer("latency-loop", topic))
                reading = asyncio.create_task(self._read(consumer))
                self._stack.callback(reading.cancel)
            self._ways[name] = partial(self._record, producer)
            await self._times(self._ways[name], 10, 0)

    async def run_round(self) -> None:
        """Measures all in turns."""
        count = self._lab.scale.publish_count // BLOCKS
        in_a_row, single = max(1, count // FEWER), max(1, count // FEWEST)
        taken: defaultdict[str, list[float]] = defaultdict(list)
        for _ in range(BLOCKS):
            for name, once in self._ways.items():
                taken[name] += await self._times(once, single, PAUSE_S)
            for name, once in self._ways.items():
                taken[f"{name}, {IN_A_ROW}"] += await self._times(once, in_a_row, 0)
        for percentile, part in PERCENTILES.items():
            for name, times in taken.items():
                self._lab.samples.add(f"{name} {percentile}", percentile_of(times, part) * 1e6)

    async def close(self) -> None:
        """Closes streams, producers and members."""
        await self._stack.aclose()

    def rows(self) -> list[Row]:
        """Returns a row for each percentile of each, one at a time and in a row."""
        rows = []
        for how, goal in {"": P50_GOAL, f", {IN_A_ROW}": None}.items():
            ping = f"{PING}{how}"
            rows += [Row(name=f"{ping} {percentile}", unit="us") for percentile in PERCENTILES]
            for name in (LOOP, WORKER):
                p50 = f"{name}{how} p50"
                rows += [
                    Row(name=p50, unit="us", limit=f"{ping} p50", goal=goal),
                    Row(name=f"{name}{how} p99", unit="us", limit=p50),
                ]
        return rows

    async def _times(self, once: Once, count: int, pause_s: float) -> list[float]:
        times = []
        async with asyncio.timeout(TIMEOUT_S):
            for _ in range(count):
                times.append(await once())
                if pause_s:
                    await asyncio.sleep(pause_s)
        return times

    async def _message(self) -> float:
        assert self._ping
        begun = perf_counter()
        await self._ping()
        return perf_counter() - begun

    async def _record(self, producer: Producer) -> float:
        """Returns how long a record takes to its handler, when its receipt is there as well."""
        value, key = (column[0] for column in records_of(SHAPE)[0])
        self._handled = asyncio.get_running_loop().create_future()
        begun = perf_counter()
        await producer.publish(value, key)
        return await self._handled - begun

    async def _handle(self, record: Delivered) -> None:
        assert record.value
        self._handled.set_result(perf_counter())

    async def _read(self, consumer: Consumer) -> None:
        async for record in consumer:
            await self._handle(record)
