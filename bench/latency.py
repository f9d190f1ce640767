"""How long until a record that is published is in the hands of a group's handler?

One record at a time: the next is published when the one before was handled and its receipt
is there. Publisher and handler are one process, so one clock times both; beside it stands a
message and its answer on a bare stream.
"""

import asyncio
from contextlib import AsyncExitStack
from time import perf_counter

from bench.bare import Ping
from bench.lab import WRITTEN, Lab
from bench.publish import BLOCKS, PERCENTILES, percentile_of, ping_times
from bench.records import Shape, records_of, request_bytes
from bench.rows import AtMost, Row
from logbroker.client.consumer import Consumer
from logbroker.client.delivered import Delivered
from logbroker.client.producer import Producer

SHAPE = Shape(100, 1)
PING, LOOP, WORKER = "ping-pong beside deliveries", "to a consumer's loop", "to a worker's handler"
P50_GOAL = AtMost(3)
TIMEOUT_S = 60
"""For a block: a record that is not delivered is a failure, and no endless wait."""


class Latency:
    """A producer, and two groups of one member: a loop over a consumer, and a worker."""

    title = "From publish to the handler, one record of 100 bytes at a time, written"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._stack = AsyncExitStack()
        self._producers: dict[str, Producer] = {}
        self._ping: Ping | None = None
        self._handled: asyncio.Future[float]

    async def prepare(self) -> None:
        """Opens streams, producers and members."""
        lab, enter = self._lab, self._stack.enter_async_context
        self._ping = await lab.bare.open_ping(request_bytes(SHAPE))
        self._stack.push_async_callback(self._ping.close)
        for name in (LOOP, WORKER):
            topic = await enter(lab.topic(WRITTEN))
            self._producers[name] = await enter(lab.client.producer(topic))
            if name == WORKER:
                await enter(lab.client.worker("latency", topic, self._handle))
            else:
                consumer = await enter(lab.client.consumer("latency-loop", topic))
                reading = asyncio.create_task(self._read(consumer))
                self._stack.callback(reading.cancel)
            await self._deliver(name, 10)

    async def run_round(self) -> None:
        """Measures all in turns."""
        assert self._ping
        each = max(1, self._lab.scale.publish_count // BLOCKS)
        taken: dict[str, list[float]] = {PING: [], LOOP: [], WORKER: []}
        for _ in range(BLOCKS):
            taken[PING] += await ping_times(self._ping, each)
            taken[LOOP] += await self._deliver(LOOP, each)
            taken[WORKER] += await self._deliver(WORKER, each)
        for percentile, part in PERCENTILES.items():
            for name, times in taken.items():
                self._lab.samples.add(f"{name} {percentile}", percentile_of(times, part) * 1e6)

    async def close(self) -> None:
        """Closes streams, producers and members."""
        await self._stack.aclose()

    def rows(self) -> list[Row]:
        """Returns a row for each percentile of each of the three."""
        rows = [Row(name=f"{PING} {percentile}", unit="us") for percentile in PERCENTILES]
        for name in (LOOP, WORKER):
            p50 = f"{name} p50"
            rows += [
                Row(name=p50, unit="us", limit=f"{PING} p50", goal=P50_GOAL),
                Row(name=f"{name} p99", unit="us", limit=p50),
                Row(name=f"{name} p99.9", unit="us", limit=p50),
            ]
        return rows

    async def _deliver(self, name: str, count: int) -> list[float]:
        producer, times = self._producers[name], []
        value, key = (column[0] for column in records_of(SHAPE)[0])
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(TIMEOUT_S):
            for _ in range(count):
                self._handled = loop.create_future()
                begun = perf_counter()
                await producer.publish(value, key)
                times.append(await self._handled - begun)
        return times

    async def _handle(self, record: Delivered) -> None:
        assert record.value
        self._handled.set_result(perf_counter())

    async def _read(self, consumer: Consumer) -> None:
        async for record in consumer:
            await self._handle(record)
