"""Records that carry their writer and their number, so that none is lost or doubled unseen.

value = b"<writer>:<number>:", filled up with dots to 100 bytes
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence

from logbroker.client import Client, PendingReceipt
from logbroker.record.record import Record

VALUE_BYTES = 100
UNDER_WAY = 64


def value_of(number: int, writer: int = 0, size: int = VALUE_BYTES) -> bytes:
    """Returns the value of a writer's record."""
    return b"%d:%d:" % (writer, number) + b"." * (size - len(b"%d:%d:" % (writer, number)))


def number_of(value: bytes | None) -> tuple[int, int]:
    """Returns the writer and the number that a value carries; AssertionError for any other."""
    assert value is not None
    writer, number, filling = value.split(b":")
    assert filling.strip(b".") == b"", value
    return int(writer), int(number)


class NumberedWriter:
    """Writes records 0, 1, 2, ... to a partition, and notes where those lie that are answered."""

    def __init__(self, client: Client, topic: str, writer: int = 0, partition: int = 0) -> None:
        self.writer = writer
        self.acked: dict[int, int] = {}
        """Number to offset."""
        self._client = client
        self._topic = topic
        self._partition = partition

    async def run(self, stop: asyncio.Event) -> None:
        """Writes until `stop` is set, over restarts of the broker; then awaits what is open."""
        under_way: deque[tuple[int, PendingReceipt]] = deque()
        number = 0
        async with self._client.producer(self._topic, linger_ms=1) as producer:
            while not stop.is_set():
                value = value_of(number, self.writer)
                under_way.append((number, await producer.send(value, partition=self._partition)))
                number += 1
                if len(under_way) >= UNDER_WAY:
                    await self._note(*under_way.popleft())
            while under_way:
                await self._note(*under_way.popleft())

    async def _note(self, number: int, receipt: PendingReceipt) -> None:
        self.acked[number] = (await receipt).offset


async def write_numbered(
    client: Client,
    topic: str,
    numbers: Iterable[int],
    *,
    partition: int = 0,
    size: int = VALUE_BYTES,
    timestamps_ms: Sequence[int] | None = None,
    idempotent: bool = True,
) -> None:
    """Writes these records, each in a batch of its own."""
    async with client.producer(
        topic, max_batch_bytes=1, max_in_flight=60, idempotent=idempotent
    ) as producer:
        for index, number in enumerate(numbers):
            timestamp_ms = None if timestamps_ms is None else timestamps_ms[index]
            await producer.send(
                value_of(number, size=size), partition=partition, timestamp_ms=timestamp_ms
            )


async def read_records(
    client: Client, topic: str, partition: int = 0, **how: object
) -> list[Record]:
    """Returns the records of a partition, as far as it goes now."""
    async with client.reader(topic, partition=partition, **how) as reader:  # type: ignore[arg-type]
        return [record async for batch in reader.batches() for record in batch.records()]


async def read_numbers(client: Client, topic: str, partition: int = 0, **how: object) -> list[int]:
    """Returns the numbers of the records of a partition, all by writer 0."""
    records = await read_records(client, topic, partition, **how)
    return [number_of(record.value)[1] for record in records]
