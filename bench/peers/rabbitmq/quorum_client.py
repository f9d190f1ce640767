"""RabbitMQ quorum queues through aio-pika.

A queue has no groups: each record goes to one of its consumers, and is gone when it is settled.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aio_pika
from aio_pika.abc import AbstractIncomingMessage

from bench.peers.system import Level, Sending, Take
from bench.records import Records

PREFETCHED = 300
"""RabbitMQ's guide: 100 to 300 are the best for throughput."""
UNCONFIRMED = 1_000
ANSWER_S = 60


async def connect(address: str, level: Level) -> "Connection":
    """Returns a client of that server."""
    host, port, _ = address.split(":")
    return Connection(await aio_pika.connect(f"amqp://guest:guest@{host}:{port}/"))


class Connection:
    """A client, connected."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def create_topic(self, topic: str, partition_count: int) -> None:
        """Makes a queue."""
        assert partition_count == 1, "partitions would be queues of their own"
        async with self._connection.channel() as channel:
            await channel.declare_queue(topic, durable=True, arguments={"x-queue-type": "quorum"})

    async def delete_topic(self, topic: str) -> None:
        """Removes a queue."""
        async with self._connection.channel() as channel:
            await channel.queue_delete(topic)

    @asynccontextmanager
    async def sender(self, topic: str, _: Sending) -> "AsyncIterator[Sender]":
        """Returns a publisher, whom the server confirms each record."""
        async with self._connection.channel(publisher_confirms=True) as channel:
            yield Sender(channel.default_exchange, topic)

    async def replay(self, topic: str, count: int, how: str) -> int:
        """Is not what a queue does."""
        raise NotImplementedError

    def consume(self, topic: str, group: str, take: Take) -> Any:
        """Is what `work` does: a queue has no other way."""
        return self.work(topic, group, take)

    @asynccontextmanager
    async def work(self, topic: str, group: str, take: Take) -> AsyncIterator[None]:
        """Acknowledges each record."""

        async def settle(message: AbstractIncomingMessage) -> None:
            take(message.body)
            await message.ack()

        channel = await self._connection.channel()
        await channel.set_qos(prefetch_count=PREFETCHED)
        queue = await channel.get_queue(topic, ensure=False)
        tag = await queue.consume(settle)
        yield
        await queue.cancel(tag)
        await channel.close()

    async def unsettled(self, topic: str, group: str) -> int | None:
        """Returns what the queue still has, when all that its workers held is back."""
        async with self._connection.channel() as channel:
            queue = await channel.declare_queue(topic, passive=True)
            return int(queue.declaration_result.message_count)

    async def close(self) -> None:
        """Disconnects."""
        await self._connection.close()


class Sender:
    """Publishes to one queue."""

    def __init__(self, exchange: Any, queue: str) -> None:
        self._exchange = exchange
        self._queue = queue
        self._unconfirmed: deque[asyncio.Task[None]] = deque()

    async def send(self, records: Records) -> None:
        """Publishes all at once; waits for the confirmation of earlier ones."""
        for value, key in zip(records.values, records.keys, strict=True):
            self._unconfirmed.append(asyncio.create_task(self.confirm(value, key)))
        while len(self._unconfirmed) > UNCONFIRMED:
            await self._unconfirmed.popleft()

    async def flush(self) -> None:
        """Returns when all are confirmed."""
        while self._unconfirmed:
            await self._unconfirmed.popleft()

    async def confirm(self, value: bytes, key: bytes) -> None:
        """Publishes one; raises if the server does not confirm it."""
        message = aio_pika.Message(
            value, message_id=key.decode(), delivery_mode=aio_pika.DeliveryMode.PERSISTENT
        )
        await self._exchange.publish(message, self._queue, timeout=ANSWER_S)
