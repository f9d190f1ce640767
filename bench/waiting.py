"""What do records cost that wait to be tried again: memory, CPU, time to start?

A broker of its own. One group acknowledges every record by itself, and the memory is read;
another fails at every record by itself, each with a reason and a delay of its own of an hour
or more, and the memory is read again; both times when the broker has come to rest. Ten
partitions, in each as many records open as a group may have by default. Then the broker has
nothing to do, though a member is there; then it is killed, and starts again.
"""

import asyncio
from collections.abc import Callable
from time import perf_counter

from bench.lab import WRITTEN, Lab, write
from bench.processes import cpu_seconds, rss_bytes
from bench.records import Shape
from bench.rows import AtMost, Row
from logbroker.client.client import Client
from logbroker.client.consumer import Consumer
from logbroker.client.delivered import Delivered
from logbroker.group.settings import GroupSettings, Order

SHAPE = Shape(100, 100)
TOPIC, GROUP = "waiting", "failing"
PARTITIONS = 10
SETTINGS = GroupSettings(order=Order.NONE)
DELAY_MS = 3_600_000
REASON = "the service that it is for did not answer in time"
STILL_S = 0.2
"""What a member that has just joined causes is over after this."""
REST_S = 5
"""After this a broker at rest has given back what a burst took."""
COST_GOAL = AtMost(50)
CPU_GOAL = AtMost(2)


class Waiting:
    """Many records that failed once."""

    title = "Records that failed and wait"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._broker = lab.broker("waiting")
        self._client: Client | None = None
        self._count = lab.scale.waiting_count
        self._before = f"RSS, {self._count:,} acknowledged"
        self._after = f"RSS, {self._count:,} waiting as well"
        self._cost = f"RSS, {self._count:,} waiting, difference"
        self._speed = "retry, each record by itself"
        self._idle_before = "idle CPU, nothing waiting"
        self._idle = f"idle CPU, {self._count:,} waiting"
        self._start = f"start, killed, {self._count:,} waiting"

    async def prepare(self) -> None:
        """Starts the broker and writes the records."""
        await asyncio.to_thread(self._broker.start)
        self._client = Client(self._broker.address)
        await self._client.admin.create_topic(TOPIC, PARTITIONS, WRITTEN)
        batches = self._count // PARTITIONS // SHAPE.record_count
        for number in range(PARTITIONS):
            await write(self._client, TOPIC, SHAPE, batches, partition=number)

    async def run_round(self) -> None:
        """Lets all fail in the first round; then looks at the idle broker, and restarts it."""
        add = self._lab.samples.add
        if not self._lab.samples.of(self._cost):
            await self._fail()
        add(self._idle, await self._idle_percent(GROUP))
        await asyncio.to_thread(self._broker.kill)
        begun = perf_counter()
        await asyncio.to_thread(self._broker.start)
        add(self._start, perf_counter() - begun)
        await self._check_waiting()

    async def close(self) -> None:
        """Stops the broker."""
        if self._client:
            await self._client.close()
            await asyncio.to_thread(self._broker.stop)

    def rows(self) -> list[Row]:
        """Returns the rows."""
        return [
            Row(name=self._speed, unit="records/s"),
            Row(name=self._before, unit="MiB"),
            Row(name=self._after, unit="MiB"),
            Row(name=self._cost, unit="MiB", goal=COST_GOAL),
            Row(name=self._idle_before, unit="%"),
            Row(name=self._idle, unit="%", goal=CPU_GOAL),
            Row(name=self._start, unit="s"),
        ]

    async def _fail(self) -> None:
        """Acknowledges every record in one group and fails at it in another."""
        add = self._lab.samples.add
        await self._answer_all("acknowledging", lambda consumer, one: consumer.acknowledge(one))
        add(self._idle_before, await self._idle_percent("acknowledging"))
        before = await self._rss_mib()
        add(self._speed, await self._answer_all(GROUP, _retry))
        await self._check_waiting()
        after = await self._rss_mib()
        add(self._before, before)
        add(self._after, after)
        add(self._cost, max(after - before, 0))

    async def _answer_all(
        self, group: str, answer: Callable[[Consumer, Delivered], object]
    ) -> float:
        """Answers each record by itself; returns how many a second."""
        assert self._client
        begun, number = perf_counter(), 0
        async with self._client.consumer(
            group, TOPIC, settings=SETTINGS, auto_settle=False
        ) as consumer:
            async for record in consumer:
                answer(consumer, record)
                number += 1
                if number == self._count:
                    break
            await consumer.flush()
        return number / (perf_counter() - begun)

    async def _check_waiting(self) -> None:
        assert self._client
        progress = (await self._client.admin.get_group(GROUP)).progress
        assert sum(one.waiting_count for one in progress) == self._count, progress

    async def _idle_percent(self, group: str) -> float:
        """Returns how much of one CPU the broker takes while a member has nothing to do."""
        assert self._client
        async with self._client.consumer(group, TOPIC):
            await asyncio.sleep(STILL_S)
            pid = self._broker.pid
            begun, used = perf_counter(), cpu_seconds(pid)
            await asyncio.sleep(self._lab.scale.idle_seconds)
            return (cpu_seconds(pid) - used) / (perf_counter() - begun) * 100

    async def _rss_mib(self) -> float:
        await asyncio.sleep(REST_S)
        return rss_bytes(self._broker.pid) / (1 << 20)


def _retry(consumer: Consumer, record: Delivered) -> None:
    consumer.retry(record, delay_ms=DELAY_MS + record.offset, reason=REASON)
