"""How fast does a producer take records one at a time, every receipt checked?

`send` for each record, as code that handles one event at a time does. Beside it stand
batches of 1,000 that were handed over whole.
"""

from time import perf_counter

from bench.lab import WRITTEN, Lab
from bench.produce import batches_per_second
from bench.records import Shape, records_of
from bench.rows import AtLeast, Row
from logbroker.client.producer import Producer
from logbroker.client.receipts import PendingReceipt

SHAPES = [Shape(100, 1_000), Shape(1_000, 1_000)]
GOAL = AtLeast(0.4)
UNCHECKED = 10_000
"""Receipts kept before they are checked, while the records after them are on their way."""


class SendEach:
    """(e): records one at a time."""

    title = "send, one record at a time, every receipt checked, written"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    async def prepare(self) -> None:
        """Has nothing to make."""

    async def run_round(self) -> None:
        """Measures both sizes, and next to each the batches it is compared with."""
        for shape in SHAPES:
            batches = await batches_per_second(self._lab, WRITTEN, shape)
            self._lab.samples.add(_batches(shape), batches * shape.record_count)
            self._lab.samples.add(_name(shape), await self._records_per_second(shape))

    async def close(self) -> None:
        """Has nothing to let go."""

    def rows(self) -> list[Row]:
        """Returns two rows for each size."""
        rows = []
        for shape in SHAPES:
            rows += [
                Row(name=_batches(shape), unit="records/s"),
                Row(name=_name(shape), unit="records/s", limit=_batches(shape), goal=GOAL),
            ]
        return rows

    async def _records_per_second(self, shape: Shape) -> float:
        lab = self._lab
        lab.touch_memory()
        async with lab.topic(WRITTEN) as topic, lab.client.producer(topic) as producer:
            await producer.publish(b"")  # it is connected now
            begun = perf_counter()
            sent = await _send(producer, shape, begun + lab.scale.seconds)
            return sent / (perf_counter() - begun)


async def _send(producer: Producer, shape: Shape, end: float) -> int:
    """Sends until `end`; returns how many records, once all receipts are checked."""
    sent = 0
    earlier: list[PendingReceipt] = []
    pending: list[PendingReceipt] = []
    while not (earlier or pending) or perf_counter() < end:
        for values, keys in records_of(shape):
            for value, key in zip(values, keys, strict=True):
                pending.append(await producer.send(value, key))
        if len(pending) >= UNCHECKED:
            for receipt in earlier:
                await receipt
            sent += len(earlier)
            earlier, pending = pending, []
    await producer.flush()
    for receipt in (*earlier, *pending):
        await receipt
    assert receipt.offset == sent + len(earlier) + len(pending), "offsets follow one another"
    return receipt.offset


def _batches(shape: Shape) -> str:
    return f"send_many, {shape}, records"


def _name(shape: Shape) -> str:
    return f"send, {shape.record_bytes:,} B"
