"""What does reading as a group cost, against plain reading?

Plain reading is `async for record in reader`. A group reads the same topic: in `partition`
order with automatic settlement, where a whole batch is one settlement, and in `none` and `key`
order with every record acknowledged by itself, in a loop and by the handler of a worker. A
row ends when all is settled: the broker is asked.
"""

from collections.abc import Awaitable, Callable
from itertools import count
from time import perf_counter

from bench.lab import WRITTEN, Lab, write
from bench.records import Shape, stored_bytes
from bench.rows import AtLeast, Row
from logbroker.client.delivered import Delivered
from logbroker.group.settings import GroupSettings, Order, Start

SHAPE = Shape(100, 1_000)
TOPIC = "settle"
CONCURRENCY = 16
"""Handlers at a time: as many as one has that wait for a database now and then."""
PLAIN, PLAIN_BATCHES = "plain reading, 100 B", "plain reading, 100 B, batches"
AUTOMATIC_GOAL = AtLeast(0.7)
EACH_GOAL = AtLeast(0.1)


class Settle:
    """Groups, each the only reader."""

    title = "Reading as a group, 100 B x 1,000"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._batches = max(4, lab.scale.group_bytes // stored_bytes(SHAPE))
        self._all = self._batches * SHAPE.record_count
        self._some = self._batches // 4 * SHAPE.record_count
        """Records of the rows that settle each by itself: the last quarter of the topic."""
        self._numbers = count()

    async def prepare(self) -> None:
        """Writes what is read."""
        await self._lab.client.admin.create_topic(TOPIC, settings=WRITTEN)
        await write(self._lab.client, TOPIC, SHAPE, self._batches)

    async def run_round(self) -> None:
        """Measures plain reading, and next to it every way to settle."""
        add = self._lab.samples.add
        add(PLAIN, await self._rate(self._read))
        add(_auto(Order.PARTITION), await self._group_rate(Order.PARTITION, self._automatic))
        add(PLAIN_BATCHES, await self._rate(self._read_batches))
        name = f"{_auto(Order.PARTITION)}, batches"
        add(name, await self._group_rate(Order.PARTITION, self._automatic_batches))
        for order in (Order.NONE, Order.KEY):
            add(_auto(order), await self._group_rate(order, self._automatic))
            add(_each(order), await self._group_rate(order, self._acknowledge_each))
            add(_worker(order), await self._group_rate(order, self._work))

    async def close(self) -> None:
        """Has nothing to let go."""

    def rows(self) -> list[Row]:
        """Returns the rows."""
        unit = "records/s"
        auto = _auto(Order.PARTITION)
        rows = [
            Row(name=PLAIN, unit=unit),
            Row(name=PLAIN_BATCHES, unit=unit),
            Row(name=auto, unit=unit, limit=PLAIN, goal=AUTOMATIC_GOAL),
            Row(name=f"{auto}, batches", unit=unit, limit=PLAIN_BATCHES),
        ]
        for order, goal in {Order.NONE: EACH_GOAL, Order.KEY: None}.items():
            rows += [
                Row(name=_auto(order), unit=unit, limit=PLAIN),
                Row(name=_each(order), unit=unit, limit=PLAIN, goal=goal),
                Row(name=_worker(order), unit=unit, limit=PLAIN, goal=goal),
            ]
        return rows

    async def _rate(self, read: Callable[[], Awaitable[float]]) -> float:
        return self._all / await read()

    async def _group_rate(
        self, order: Order, read: Callable[[str, int], Awaitable[float]]
    ) -> float:
        """Returns records a second of a new group that reads to the end of the topic."""
        admin, group = self._lab.client.admin, f"settle-{next(self._numbers)}"
        wanted = self._all if order is Order.PARTITION else self._some
        start = self._all - wanted
        settings = GroupSettings(order=order, start=Start.OFFSET, start_offset=start)
        await admin.create_group(group, settings)
        seconds = await read(group, wanted)
        (progress,) = (await admin.get_group(group)).progress
        assert progress.committed_offset == self._all, progress
        await admin.delete_group(group)
        return wanted / seconds

    # Reading without a group. Everything returns the seconds since the first record came.

    async def _read(self) -> float:
        async with self._lab.client.reader(TOPIC) as reader:
            await anext(reader)
            begun, number = perf_counter(), 1
            async for record in reader:
                number += 1
                assert record.value
            assert number == self._all
            return perf_counter() - begun

    async def _read_batches(self) -> float:
        async with self._lab.client.reader(TOPIC) as reader:
            batches = reader.batches()
            number = (await anext(batches)).record_count
            begun = perf_counter()
            async for batch in batches:
                number += batch.record_count
            assert number == self._all
            return perf_counter() - begun

    # Reading as a group, until the broker has answered the last settlement.

    async def _automatic(self, group: str, wanted: int) -> float:
        async with self._lab.client.consumer(group, TOPIC, follow=False) as consumer:
            await anext(consumer)
            begun, number = perf_counter(), 1
            async for record in consumer:
                number += 1
                assert record.value
            assert number == wanted
            return perf_counter() - begun

    async def _automatic_batches(self, group: str, wanted: int) -> float:
        async with self._lab.client.consumer(group, TOPIC, follow=False) as consumer:
            batches = consumer.batches()
            number = (await anext(batches)).record_count
            begun = perf_counter()
            async for batch in batches:
                number += batch.record_count
            assert number == wanted
            return perf_counter() - begun

    async def _acknowledge_each(self, group: str, wanted: int) -> float:
        client = self._lab.client
        async with client.consumer(group, TOPIC, follow=False, auto_settle=False) as consumer:
            consumer.acknowledge(await anext(consumer))
            begun, number = perf_counter(), 1
            async for record in consumer:
                number += 1
                assert record.value
                consumer.acknowledge(record)
            assert number == wanted
            return perf_counter() - begun

    async def _work(self, group: str, wanted: int) -> float:
        begun, number = 0.0, 0

        async def handle(record: Delivered) -> None:
            nonlocal begun, number
            number += 1
            assert record.value
            if number == 1:
                begun = perf_counter()
            elif number == wanted:
                worker.stop()

        worker = self._lab.client.worker(group, TOPIC, handle, concurrency=CONCURRENCY)
        await worker.run()
        assert number == wanted
        return perf_counter() - begun


def _auto(order: Order) -> str:
    return f"{order} order, automatic"


def _each(order: Order) -> str:
    return f"{order} order, each acknowledged"


def _worker(order: Order) -> str:
    return f"{order} order, worker of {CONCURRENCY}"
