"""Client: the way to one broker. Everything else is made by it."""

import asyncio
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self
from weakref import WeakSet

from logbroker.client.admin import Admin
from logbroker.client.connection import Connection
from logbroker.client.consumer import Consumer
from logbroker.client.consumer_settings import (
    ConsumerSettings,
    Settle,
    order_of,
    settle_of,
    topics_of,
)
from logbroker.client.handler import Handler
from logbroker.client.partition_stream import Timestamp
from logbroker.client.producer import Producer
from logbroker.client.producer_settings import ProducerSettings
from logbroker.client.reader import AnyStart, Reader, ReaderSettings
from logbroker.client.topics import get_topic
from logbroker.client.worker import Worker
from logbroker.clock import Clock, SystemClock
from logbroker.errors import InvalidError
from logbroker.group.settings import GroupSettings, Order
from logbroker.limits import BATCH_BYTES_CEILING, RESPONSE_BYTES, RESPONSE_FIELDS_BYTES
from logbroker.record.compression import Codec
from logbroker.v1 import fetch_service_pb2

MAX_RESPONSE_BYTES = BATCH_BYTES_CEILING + RESPONSE_BYTES
"""What a client receives unless told otherwise: any batch there can be."""


class Client:
    """A broker's client. Connects when first used, and again after the broker restarts.

    Use it as a context manager: leaving it flushes its producers, and its consumers and
    workers leave their groups. It belongs to the event
    loop and to the process in which it is used; in a child process it raises
    PreconditionError CLIENT_CLOSED at once.
    """

    def __init__(
        self,
        target: str = "127.0.0.1:9470",
        *,
        timeout_ms: int = 30_000,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        clock: Clock | None = None,
    ) -> None:
        """Remembers how to reach the broker at `target`, a host:port.

        `timeout_ms` bounds every call, connecting included; records have a time of their
        own (`delivery_timeout_ms`). A batch larger than `max_response_bytes` cannot be read.
        """
        least = 2 * RESPONSE_FIELDS_BYTES
        if timeout_ms < 1 or max_response_bytes < least:
            message = f"timeout_ms must be at least 1, max_response_bytes at least {least}"
            raise InvalidError("INVALID_SETTING", message)
        self._connection = Connection(
            target,
            timeout_ms=timeout_ms,
            max_response_bytes=max_response_bytes,
            clock=clock or SystemClock(),
        )
        self.admin = Admin(self._connection)
        self._producers: WeakSet[Producer] = WeakSet()
        self._readers: WeakSet[Reader] = WeakSet()
        self._consumers: WeakSet[Consumer] = WeakSet()
        self._workers: WeakSet[Worker] = WeakSet()

    def producer(
        self,
        topic: str,
        *,
        codec: Codec | str = Codec.NONE,
        max_batch_bytes: int = 1 << 20,
        linger_ms: int = 5,
        max_in_flight: int = 32,
        buffer_bytes: int = 64 << 20,
        idempotent: bool = True,
        delivery_timeout_ms: int = 120_000,
    ) -> Producer:
        """Returns a producer for one topic; `ProducerSettings` says what the options mean."""
        self._connection.check_open()
        settings = ProducerSettings(
            codec=codec,
            max_batch_bytes=max_batch_bytes,
            linger_ms=linger_ms,
            max_in_flight=max_in_flight,
            buffer_bytes=buffer_bytes,
            idempotent=idempotent,
            delivery_timeout_ms=delivery_timeout_ms,
        )
        producer = Producer(self._connection, topic, settings)
        self._producers.add(producer)
        return producer

    def reader(
        self,
        topic: str,
        *,
        partition: int | Sequence[int] | None = None,
        start: AnyStart = "earliest",
        stop_offset: int | None = None,
        stop_timestamp_ms: int | None = None,
        follow: bool = False,
        skip_damage: bool = False,
        out_of_range: str = "earliest",
        prefetch_bytes: int = 8 << 20,
    ) -> Reader:
        """Returns a reader of one topic; `ReaderSettings` says what the options mean."""
        self._connection.check_open()
        settings = ReaderSettings(
            partition=partition,
            start=start,
            stop_offset=stop_offset,
            stop_timestamp_ms=stop_timestamp_ms,
            follow=follow,
            skip_damage=skip_damage,
            out_of_range=out_of_range,
            prefetch_bytes=prefetch_bytes,
        )
        reader = Reader(self._connection, topic, settings)
        self._readers.add(reader)
        return reader

    def consumer(
        self,
        group: str,
        topics: str | Sequence[str],
        *,
        order: Order | str | None = None,
        settings: GroupSettings | None = None,
        auto_settle: bool = True,
        settle: Settle | str = Settle.AFTER,
        max_outstanding_records: int = 20_000,
        max_outstanding_bytes: int = 16 << 20,
        client_id: str = "",
        instance_id: str = "",
        follow: bool = True,
        max_processing_ms: int = 300_000,
    ) -> Consumer:
        """Returns a member-to-be of a group; `ConsumerSettings` says what the options mean."""
        self._connection.check_open()
        consumer_settings = ConsumerSettings(
            group=group,
            topics=topics_of(topics),
            order=order_of(order),
            settings=settings,
            auto_settle=auto_settle,
            settle=settle_of(settle),
            max_outstanding_records=max_outstanding_records,
            max_outstanding_bytes=max_outstanding_bytes,
            client_id=client_id,
            instance_id=instance_id,
            follow=follow,
            max_processing_ms=max_processing_ms,
        )
        consumer = Consumer(self._connection, consumer_settings)
        self._consumers.add(consumer)
        return consumer

    def worker(
        self,
        group: str,
        topics: str | Sequence[str],
        handler: Handler,
        *,
        concurrency: int = 4,
        cancel_lost: bool = False,
        order: Order | str | None = None,
        settings: GroupSettings | None = None,
        max_outstanding_records: int = 1_000,
        max_outstanding_bytes: int = 16 << 20,
        client_id: str = "",
        instance_id: str = "",
        max_processing_ms: int = 300_000,
    ) -> Worker:
        """Returns a worker that runs `handler` for each record of a group.

        `Worker` says what its own options mean, `ConsumerSettings` the others.
        """
        self._connection.check_open()
        consumer_settings = ConsumerSettings(
            group=group,
            topics=topics_of(topics),
            order=order_of(order),
            settings=settings,
            max_outstanding_records=max_outstanding_records,
            max_outstanding_bytes=max_outstanding_bytes,
            client_id=client_id,
            instance_id=instance_id,
            max_processing_ms=max_processing_ms,
        )
        worker = Worker(
            self._connection,
            consumer_settings,
            handler,
            concurrency=concurrency,
            cancel_lost=cancel_lost,
        )
        self._workers.add(worker)
        return worker

    def handles(
        self, group: str, topics: str | Sequence[str], **options: Any
    ) -> Callable[[Handler], Worker]:
        """Returns a decorator that makes a worker of a handler; takes what `worker` takes.

        @client.handles("billing", "orders", concurrency=8)
        async def bill(record): ...

        await bill.run()
        """
        return lambda handler: self.worker(group, topics, handler, **options)

    async def find_offset(
        self, topic: str, partition: int, timestamp_ms: int | Timestamp
    ) -> int | None:
        """Returns the first offset, in log order, of a record that late; None if there is none."""
        found = await get_topic(self._connection, topic)
        request = fetch_service_pb2.FindOffsetRequest(
            topic=topic,
            topic_id=found.topic_id,
            partition=partition,
            timestamp_ms=timestamp_ms[0] if isinstance(timestamp_ms, tuple) else timestamp_ms,
        )
        response = await self._connection.call(
            "FetchService/FindOffset", request, fetch_service_pb2.FindOffsetResponse
        )
        return response.offset if response.HasField("offset") else None

    def check_open(self) -> None:
        """Raises PreconditionError CLIENT_CLOSED unless the client can be used here."""
        self._connection.check_open()

    async def close(self) -> None:
        """Leaves all groups, flushes the producers, and ends everything, whatever that raises."""
        await self._close(is_clean=True)

    async def __aenter__(self) -> Self:
        self.check_open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._close(is_clean=error is None)

    async def leave_groups(self) -> None:
        """Closes consumers and workers, all at once: what they hold is given back, uncounted."""
        members: list[Consumer | Worker] = [*self._consumers, *self._workers]
        for result in await asyncio.gather(
            *(member.close() for member in members), return_exceptions=True
        ):
            if isinstance(result, Exception):
                raise result

    async def _close(self, *, is_clean: bool) -> None:
        try:
            await self.leave_groups()
            for producer in list(self._producers):
                await (producer.close() if is_clean else producer.abandon())
        finally:
            await self.leave_groups()  # if the first time was cancelled
            for reader in list(self._readers):
                await reader.close()
            for producer in list(self._producers):
                await producer.abandon(timeout_ms=0)
            await self._connection.close()
