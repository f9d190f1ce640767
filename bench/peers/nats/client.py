"""NATS JetStream through nats-py.

A topic is a stream with subjects `<topic>.<partition>.<key>`: a record's key is where NATS
people put it, in the subject.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from zlib import crc32

import nats
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    PersistMode,
    RetentionPolicy,
    StorageType,
    StreamConfig,
)

from bench.peers.system import Level, Sending, Take
from bench.records import Records

Callback = Callable[[Any, int], Awaitable[None]]
"""Is given a message, and how many more are at hand."""

PERSIST = {Level.SYNCED: PersistMode.DEFAULT, Level.WRITTEN: PersistMode.ASYNC}
MAX_PENDING = {Level.SYNCED: 1_000, Level.WRITTEN: 10_000}
"""Records published and not answered; nats-py's default is 4,000. Where each is synced by itself,
more would only wait."""
SETTLED_EACH = 500
LEASED = 10_000
"""The most that a group's members may have together; the server's default is 1,000."""
ANSWER_S = 60


async def connect(address: str, level: Level) -> "Connection":
    """Returns a client of that server."""
    client = await nats.connect(
        address, allow_reconnect=False, error_cb=_pass, pending_size=8 << 20
    )
    return Connection(client, level)


async def _pass(_: Exception) -> None:
    """Leaves an error to whoever waits for an answer; by default the client prints it."""


class Connection:
    """A client, connected."""

    def __init__(self, client: Any, level: Level) -> None:
        self._client = client
        self._level = level
        self._jetstream = client.jetstream(
            timeout=ANSWER_S, publish_async_max_pending=MAX_PENDING[level]
        )

    async def create_topic(self, topic: str, partition_count: int) -> None:
        """Makes a stream; how many partitions it has is written down in its metadata."""
        await self._jetstream.add_stream(
            StreamConfig(
                name=topic,
                subjects=[f"{topic}.*.*"],
                storage=StorageType.FILE,
                retention=RetentionPolicy.LIMITS,
                num_replicas=1,
                persist_mode=PERSIST[self._level],
                metadata={"partitions": str(partition_count)},
            )
        )

    async def delete_topic(self, topic: str) -> None:
        """Removes a stream."""
        await self._jetstream.delete_stream(topic)

    @asynccontextmanager
    async def sender(self, topic: str, _: Sending) -> "AsyncIterator[Sender]":
        """Returns a publisher."""
        info = await self._jetstream.stream_info(topic)
        sender = Sender(self._jetstream, topic, int(info.config.metadata["partitions"]))
        yield sender
        await sender.flush()

    async def replay(self, topic: str, count: int, _: str) -> int:
        """Reads so many records by an ordered consumer, which the server pushes to."""
        size = found = 0
        done = asyncio.get_running_loop().create_future()

        async def take(message: Any) -> None:
            nonlocal size, found
            size += len(message.data)
            found += 1
            if found == count:
                done.set_result(None)

        subscription = await self._jetstream.subscribe(
            f"{topic}.*.*",
            stream=topic,
            cb=take,
            ordered_consumer=True,
            pending_msgs_limit=-1,
            pending_bytes_limit=-1,
        )
        await asyncio.wait_for(done, ANSWER_S)
        await subscription.unsubscribe()
        return size

    @asynccontextmanager
    async def consume(self, topic: str, group: str, take: Take) -> AsyncIterator[None]:
        """Reads as one of a durable consumer; now and then a record settles all before it.

        Also when nothing else is at hand: of many members each may have few.
        """
        count, last = 0, None

        async def note(message: Any, more: int) -> None:
            nonlocal count, last
            take(message.data)
            count += 1
            last = message
            if count % SETTLED_EACH == 0 or not more:
                await message.ack()
                last = None

        async with self._pushed(topic, group, AckPolicy.ALL, note):
            yield
            if last:
                await last.ack()

    @asynccontextmanager
    async def work(self, topic: str, group: str, take: Take) -> AsyncIterator[None]:
        """Reads as one of a durable consumer, and acknowledges each record."""

        async def note(message: Any, _: int) -> None:
            take(message.data)
            await message.ack()

        async with self._pushed(topic, group, AckPolicy.EXPLICIT, note):
            yield

    async def unsettled(self, topic: str, group: str) -> int | None:
        """Returns what the group has not acknowledged, delivered or not."""
        info = await self._jetstream.consumer_info(topic, group)
        return int(info.num_pending + info.num_ack_pending)

    async def close(self) -> None:
        """Disconnects."""
        await self._client.close()

    @asynccontextmanager
    async def _pushed(
        self, topic: str, group: str, ack_policy: AckPolicy, note: Callback
    ) -> AsyncIterator[None]:
        """Calls back for what the server pushes to the members of the group in turn."""
        config = ConsumerConfig(
            durable_name=group,
            deliver_group=group,
            deliver_subject=f"deliver.{group}",  # the same, whichever member comes first
            filter_subject=f"{topic}.*.*",
            ack_policy=ack_policy,
            deliver_policy=DeliverPolicy.ALL,
            max_ack_pending=LEASED,
        )
        subscription = None

        async def called(message: Any) -> None:
            await note(message, subscription.pending_msgs if subscription else 1)

        subscription = await self._jetstream.subscribe(
            f"{topic}.*.*",
            stream=topic,
            durable=group,
            queue=group,
            cb=called,
            config=config,
            manual_ack=True,
            pending_msgs_limit=-1,
            pending_bytes_limit=-1,
        )
        yield
        await subscription.unsubscribe()
        await self._client.flush()


class Sender:
    """A publisher of one stream, which looks at every answer, as the client has no other way."""

    def __init__(self, jetstream: Any, topic: str, partition_count: int) -> None:
        self._jetstream = jetstream
        self._topic = topic
        self._partition_count = partition_count
        self._refused: list[BaseException] = []

    async def send(self, records: Records) -> None:
        """Takes records."""
        publish = self._jetstream.publish_async
        for value, key in zip(records.values, records.keys, strict=True):
            future = await publish(self._subject(key), value)
            future.add_done_callback(self._note)

    async def flush(self) -> None:
        """Returns when all are answered."""
        await asyncio.wait_for(self._jetstream.publish_async_completed(), ANSWER_S)
        if self._refused:
            raise self._refused[0]

    async def confirm(self, value: bytes, key: bytes) -> None:
        """Publishes one."""
        await self._jetstream.publish(self._subject(key), value)

    def _subject(self, key: bytes) -> str:
        count = self._partition_count
        partition = crc32(key) % count if count > 1 else 0
        return f"{self._topic}.{partition}.{key.decode()}"

    def _note(self, future: "asyncio.Future[Any]") -> None:
        error = future.exception()
        if error:
            self._refused.append(error)
