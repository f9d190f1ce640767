"""logbroker through its Python client, with its defaults."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from bench.peers.system import Level, Sending, Take
from bench.records import Records
from logbroker import (
    Client,
    Durability,
    GroupSettings,
    Order,
    PendingReceipt,
    PendingReceipts,
    Producer,
    TopicSettings,
)

UNANSWERED = 64
"""Calls of `send_many` that are not answered: more than a producer has on their way."""
LEASED = 5_000
"""Records that a worker has at hand; the default is 20,000, which eight would rarely share."""
UNCHECKED = 10_000
"""Receipts kept before they are looked at, while the records after them are on their way."""


async def connect(address: str, level: Level) -> "Connection":
    """Returns a client of that server."""
    return Connection(Client(address), level)


class Connection:
    """A client, connected."""

    def __init__(self, client: Client, level: Level) -> None:
        self._client = client
        self._settings = TopicSettings(durability=Durability(level))

    async def create_topic(self, topic: str, partition_count: int) -> None:
        """Makes a topic."""
        await self._client.admin.create_topic(
            topic, partition_count=partition_count, settings=self._settings
        )

    async def delete_topic(self, topic: str) -> None:
        """Removes a topic."""
        await self._client.admin.delete_topic(topic)

    @asynccontextmanager
    async def sender(
        self, topic: str, sending: Sending
    ) -> AsyncIterator["ManySender | EachSender"]:
        """Returns a publisher."""
        linger_ms = 0 if sending in (Sending.PROMPT, Sending.PACED) else 5
        async with self._client.producer(topic, linger_ms=linger_ms) as producer:
            yield ManySender(producer) if sending is Sending.FASTEST else EachSender(producer)

    async def replay(self, topic: str, count: int, how: str) -> int:
        """Reads so many records from the start: one by one, by batch, or batches undecoded."""
        size = found = 0
        async with self._client.reader(topic) as reader:
            if how == "records":
                async for record in reader:
                    size += len(record.value or b"")
                    found += 1
            else:
                async for batch in reader.batches():
                    found += batch.record_count
                    if how == "raw":
                        size += batch.size_bytes
                    else:
                        size += sum([len(record.value or b"") for record in batch.records()])
        assert found >= count, f"{found} of {count} records"
        return size

    @asynccontextmanager
    async def consume(self, topic: str, group: str, take: Take) -> AsyncIterator[None]:
        """Reads as a member of a group, settled batch by batch."""

        async def read() -> None:
            async for batch in consumer.batches():
                for record in batch.records():
                    take(record.value or b"")

        async with self._client.consumer(group, topic) as consumer:
            reading = asyncio.create_task(read())
            yield
            await _end(reading)

    @asynccontextmanager
    async def work(self, topic: str, group: str, take: Take) -> AsyncIterator[None]:
        """Leases records in no order, and acknowledges each."""

        async def read() -> None:
            async for record in consumer:
                take(record.value or b"")
                consumer.acknowledge(record)

        settings = GroupSettings(order=Order.NONE)
        async with self._client.consumer(
            group, topic, settings=settings, auto_settle=False, max_outstanding_records=LEASED
        ) as consumer:
            reading = asyncio.create_task(read())
            yield
            await _end(reading)
            await consumer.flush()

    async def unsettled(self, _: str, group: str) -> int | None:
        """Returns the group's lag."""
        return (await self._client.admin.get_group(group)).lag

    async def close(self) -> None:
        """Disconnects."""
        await self._client.close()


class ManySender:
    """Hands records over by the list."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._unanswered: deque[PendingReceipts] = deque()

    async def send(self, records: Records) -> None:
        """Takes records."""
        if len(self._unanswered) == UNANSWERED:
            await self._unanswered.popleft()
        self._unanswered.append(await self._producer.send_many(*records))

    async def flush(self) -> None:
        """Returns when all are answered."""
        while self._unanswered:
            await self._unanswered.popleft()

    async def confirm(self, value: bytes, key: bytes) -> None:
        """Publishes one."""
        await self._producer.publish(value, key)


class EachSender:
    """Hands records over one by one, and looks at every receipt."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._earlier: list[PendingReceipt] = []
        self._pending: list[PendingReceipt] = []

    async def send(self, records: Records) -> None:
        """Takes records."""
        send, append = self._producer.send, self._pending.append
        for value, key in zip(records.values, records.keys, strict=True):
            append(await send(value, key))
        if len(self._pending) >= UNCHECKED:
            for receipt in self._earlier:
                await receipt
            self._earlier, self._pending = self._pending, []

    async def flush(self) -> None:
        """Returns when every receipt is there."""
        await self._producer.flush()
        for receipt in (*self._earlier, *self._pending):
            await receipt
        self._earlier, self._pending = [], []

    async def confirm(self, value: bytes, key: bytes) -> None:
        """Publishes one."""
        await self._producer.publish(value, key)


async def _end(task: "asyncio.Task[None]") -> None:
    """Ends a loop that waits for records; raises what it raised."""
    task.cancel()
    with suppress(asyncio.CancelledError):  # by us
        await task
