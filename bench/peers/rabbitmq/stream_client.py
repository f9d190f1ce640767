"""RabbitMQ streams through rstream.

A stream knows no keys; the key stands before the value in the body, which costs least.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

from rstream import (
    ConfirmationStatus,
    Consumer,
    ConsumerOffsetSpecification,
    OffsetType,
    Producer,
)
from rstream.exceptions import OffsetNotFound

from bench.peers.system import Level, Sending, Take
from bench.records import Records

USER = "guest"
FRAME_BYTES = 500_000
"""Of one publish command; the server takes 1 MiB."""
UNCONFIRMED = 50_000
CREDIT = 50
"""Chunks that the server may have sent beyond what was taken."""
STORED_EACH = 10_000
"""So many records lie between the offsets that a group stores, as RabbitMQ's guide advises."""
ANSWER_S = 60


async def connect(address: str, level: Level) -> "Connection":
    """Returns a client of that server."""
    host, _, port = address.split(":")
    return Connection({"host": host, "port": int(port), "username": USER, "password": USER})


class Connection:
    """What the clients of one measurement have in common."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options

    async def create_topic(self, topic: str, partition_count: int) -> None:
        """Makes a stream."""
        assert partition_count == 1, "partitions would be streams of their own"
        async with Producer(**self._options) as producer:
            await producer.create_stream(topic)

    async def delete_topic(self, topic: str) -> None:
        """Removes a stream."""
        async with Producer(**self._options) as producer:
            await producer.delete_stream(topic)

    @asynccontextmanager
    async def sender(self, topic: str, _: Sending) -> "AsyncIterator[Sender]":
        """Returns a publisher."""
        async with Producer(**self._options) as producer:
            sender = Sender(producer, topic)
            yield sender
            await sender.flush()

    async def replay(self, topic: str, count: int, _: str) -> int:
        """Reads so many records from the first on."""
        size = found = 0
        done = asyncio.get_running_loop().create_future()

        def take(body: bytes, _: Any) -> None:
            nonlocal size, found
            size += len(body) - 2 - body[0] - (body[1] << 8)
            found += 1
            if found == count:
                done.set_result(None)

        async with Consumer(**self._options) as consumer:
            await consumer.subscribe(topic, take, decoder=bytes, initial_credit=CREDIT)
            await asyncio.wait_for(done, ANSWER_S)
        return size

    @asynccontextmanager
    async def consume(self, topic: str, group: str, take: Take) -> AsyncIterator[None]:
        """Reads from where the group is, and stores where that is now and then."""
        reached = stored = -1

        async def note(body: bytes, context: Any) -> None:
            nonlocal reached, stored
            take(body[2 + body[0] + (body[1] << 8) :])
            reached = context.offset
            if reached - stored >= STORED_EACH:
                stored = reached
                await consumer.store_offset(topic, group, reached)

        async with Consumer(**self._options) as consumer:
            try:
                first = 1 + await consumer.query_offset(topic, group)
                start = ConsumerOffsetSpecification(OffsetType.OFFSET, first)
            except OffsetNotFound:
                start = ConsumerOffsetSpecification(OffsetType.FIRST, None)
            await consumer.subscribe(
                topic,
                note,
                decoder=bytes,
                offset_specification=start,
                subscriber_name=group,
                initial_credit=CREDIT,
            )
            yield
            if reached >= 0:
                await consumer.store_offset(topic, group, reached)

    def work(self, topic: str, group: str, take: Take) -> Any:
        """Is not what a stream does."""
        raise NotImplementedError

    async def unsettled(self, topic: str, group: str) -> int | None:
        """Cannot tell: streams know no settlements."""
        return None

    async def close(self) -> None:
        """Has nothing to do: every client here ends with what it was for."""


class Sender:
    """Publishes to one stream; the server confirms each record."""

    def __init__(self, producer: Producer, stream: str) -> None:
        self._producer = producer
        self._stream = stream
        self._sent = self._confirmed = 0
        self._refused = ""
        self._moved = asyncio.Event()

    async def send(self, records: Records) -> None:
        """Takes records."""
        for messages in _frames(records):
            self._sent += len(messages)
            await self._producer.send_batch(self._stream, messages, on_publish_confirm=self._note)
        await self._wait_below(UNCONFIRMED)

    async def flush(self) -> None:
        """Returns when all are confirmed."""
        await self._wait_below(1)
        if self._refused:
            raise RuntimeError(self._refused)

    async def confirm(self, value: bytes, key: bytes) -> None:
        """Publishes one."""
        await self._producer.send_wait(self._stream, _body(value, key), timeout=ANSWER_S)

    async def _wait_below(self, count: int) -> None:
        while self._sent - self._confirmed >= count:
            self._moved.clear()
            await asyncio.wait_for(self._moved.wait(), ANSWER_S)

    def _note(self, status: ConfirmationStatus) -> None:
        self._confirmed += 1
        if not status.is_confirmed:
            self._refused = f"refused with {status.response_code}"
        self._moved.set()


def _frames(records: Records) -> Iterator[list[bytes]]:
    """Yields the bodies, as many as go into one command."""
    frame: list[bytes] = []
    size = 0
    for value, key in zip(records.values, records.keys, strict=True):
        frame.append(body := _body(value, key))
        size += len(body)
        if size >= FRAME_BYTES:
            yield frame
            frame, size = [], 0
    if frame:
        yield frame


def _body(value: bytes, key: bytes) -> bytes:
    return len(key).to_bytes(2, "little") + key + value
