"""How fast are batches produced, of small and large records, few and many?

A row is the bytes of the requests that were answered, a second: encoded by the client,
sent, checked, stored, and every receipt looked at. Beside each stands the bare limit of
messages of that size.
"""

from collections import deque
from time import perf_counter

from bench.lab import SYNCED, WRITTEN, Lab
from bench.records import Records, Shape, records_of, request_bytes
from bench.rows import AtLeast, Row
from logbroker.client.producer import Producer
from logbroker.client.receipts import PendingReceipts
from logbroker.topic.topic import TopicSettings

SHAPES = [Shape(size, count) for size in (100, 1_000) for count in (1, 100, 1_000, 5_000)]
DURABILITIES = {"written": WRITTEN, "synced": SYNCED}
GOALS = {"written": AtLeast(0.70), "synced": AtLeast(0.45)}
GOAL_COUNT = 1_000
"""The batches that have a goal."""
UNANSWERED = 64
"""Batches given to the producer and not answered: more than it has on their way."""


class ProduceBatches:
    """(a) and (b): the bare limit, and produce."""

    title = "Produce, client encoding included"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    async def prepare(self) -> None:
        """Makes the records."""
        for shape in SHAPES:
            records_of(shape)

    async def run_round(self) -> None:
        """Measures the bare limit of each shape, and next to it what the broker makes of it."""
        lab, seconds = self._lab, self._lab.scale.seconds
        for shape in SHAPES:
            size = request_bytes(shape)
            rates = {
                f"bare {shape}": await lab.bare.push(size, seconds),
                f"bare {shape}, default malloc": await lab.bare_as_it_comes.push(size, seconds),
            }
            for durability, settings in DURABILITIES.items():
                rates[f"{durability} {shape}"] = await batches_per_second(lab, settings, shape)
            for name, rate in rates.items():
                lab.samples.add(name, rate * size / 1e6)

    async def close(self) -> None:
        """Has nothing to let go."""

    def rows(self) -> list[Row]:
        """Returns four rows for each shape."""
        rows = []
        for shape in SHAPES:
            bare = f"bare {shape}"
            rows += [
                Row(name=bare, unit="MB/s"),
                Row(name=f"{bare}, default malloc", unit="MB/s", limit=bare),
            ]
            for durability, goal in GOALS.items():
                has_goal = shape.record_count == GOAL_COUNT
                name = f"{durability} {shape}"
                rows.append(
                    Row(name=name, unit="MB/s", limit=bare, goal=goal if has_goal else None)
                )
        return rows


async def batches_per_second(lab: Lab, settings: TopicSettings, shape: Shape) -> float:
    """Produces to a new topic for `scale.seconds`; returns batches answered a second."""
    lab.touch_memory()
    async with (
        lab.topic(settings) as topic,
        lab.client.producer(topic, max_batch_bytes=64 << 20) as producer,
    ):
        return await send_for(producer, shape, lab.scale.seconds)


async def send_for(producer: Producer, shape: Shape, seconds: float) -> float:
    """Sends to an empty partition for so long; returns batches answered a second."""
    records = records_of(shape)
    await _check(await producer.send_many(*records[0], partition=0), 0)  # it is connected now
    begun = perf_counter()
    sent = await _send(producer, records, begun + seconds)
    return sent / (perf_counter() - begun)


async def _send(producer: Producer, records: list[Records], end: float) -> int:
    """Sends until `end`; returns how many batches, once all are answered."""
    unanswered: deque[PendingReceipts] = deque()
    size, sent, answered = len(records[0].values), 0, 0
    while not sent or perf_counter() < end:
        if len(unanswered) == UNANSWERED:
            answered += 1
            await _check(unanswered.popleft(), answered * size)
        unanswered.append(await producer.send_many(*records[sent % len(records)], partition=0))
        sent += 1
    for pending in unanswered:
        answered += 1
        await _check(pending, answered * size)
    return sent


async def _check(pending: PendingReceipts, offset: int) -> None:
    (receipt,) = await pending
    assert receipt.base_offset == offset, f"expected {offset}: {receipt}"
