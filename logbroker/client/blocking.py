"""The same verbs for code without an event loop: the async client on a thread of its own.

Nothing is decided here: calls wait for the loop's answer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from logbroker.client import leftovers
from logbroker.client.blocking_admin import BlockingAdmin
from logbroker.client.blocking_consumer import BlockingConsumer, BlockingWorker
from logbroker.client.blocking_producer import BlockingProducer
from logbroker.client.client import MAX_RESPONSE_BYTES, Client
from logbroker.client.handler import Handler
from logbroker.client.loop_thread import LoopThread
from logbroker.client.partition_stream import Reset
from logbroker.client.producer import EXIT_FLUSH_MS
from logbroker.client.reader import Reader
from logbroker.client.record_batch import RecordBatch, RecordCursor
from logbroker.errors import DataLossError, LogbrokerError
from logbroker.record.record import Record

T = TypeVar("T")


class BlockingClient:
    """A broker's client for code without an event loop; see `Client`. Threads may share it."""

    def __init__(
        self,
        target: str = "127.0.0.1:9470",
        *,
        timeout_ms: int = 30_000,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
    ) -> None:
        """Takes what `Client` takes. Starts a thread, which `close` ends."""
        self._client = Client(target, timeout_ms=timeout_ms, max_response_bytes=max_response_bytes)
        self._thread = LoopThread()
        self._producers: list[BlockingProducer] = []
        self._is_closed = False
        self.admin = BlockingAdmin(self.wait, self._client.admin)
        leftovers.before_exit(self._last_chance)

    def wait(self, work: Coroutine[Any, Any, T], timeout_ms: int | None = None) -> T:
        """Returns what the coroutine returns on the client's loop; TimeoutError after the time."""
        try:
            self._client.check_open()
        except LogbrokerError:
            work.close()
            raise
        return self._thread.wait(work, timeout_ms)

    def producer(self, topic: str, **options: Any) -> "BlockingProducer":
        """Returns a producer for one topic; takes the options of `Client.producer`."""
        self._client.check_open()
        producer = BlockingProducer(self._thread, self._client.producer(topic, **options))
        self._producers.append(producer)
        return producer

    def reader(self, topic: str, **options: Any) -> "BlockingReader":
        """Returns a reader of one topic; takes the options of `Client.reader`."""
        return BlockingReader(self, self._client.reader(topic, **options))

    def consumer(
        self, group: str, topics: str | Sequence[str], **options: Any
    ) -> "BlockingConsumer":
        """Returns a member-to-be of a group; takes the options of `Client.consumer`."""
        self._client.check_open()
        return BlockingConsumer(self._thread, self._client.consumer(group, topics, **options))

    def worker(
        self, group: str, topics: str | Sequence[str], handler: Handler, **options: Any
    ) -> "BlockingWorker":
        """Returns a worker that runs `handler` in threads; takes the options of `Client.worker`."""
        self._client.check_open()
        worker = self._client.worker(group, topics, handler, **options)
        return BlockingWorker(self._thread, worker)

    def handles(
        self, group: str, topics: str | Sequence[str], **options: Any
    ) -> Callable[[Handler], "BlockingWorker"]:
        """Returns a decorator that makes a worker of a handler; takes what `worker` takes."""
        return lambda handler: self.worker(group, topics, handler, **options)

    def find_offset(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        """Returns the first offset, in log order, of a record that late; None if there is none."""
        return self.wait(self._client.find_offset(topic, partition, timestamp_ms))

    def close(self) -> None:
        """Flushes the producers and ends everything."""
        self._close(is_clean=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close(is_clean=error is None)

    def _close(self, *, is_clean: bool) -> None:
        if self._is_closed:
            return
        self._client.check_open()
        self._is_closed = True
        try:
            for producer in self._producers:
                producer.close() if is_clean else producer.abandon()
        finally:
            leftovers.cancel(self._last_chance)
            self._thread.wait(self._client.__aexit__(None, None, None))
            self._thread.stop()

    def _last_chance(self) -> None:
        """Leaves groups, and waits a little for what is not sent, when the program ends."""
        with suppress(TimeoutError, LogbrokerError):
            self._thread.wait(self._client.leave_groups(), EXIT_FLUSH_MS)
        waits = (producer.wait_answered(EXIT_FLUSH_MS) for producer in self._producers)
        with suppress(TimeoutError):
            self._thread.wait(_all(waits), EXIT_FLUSH_MS)


async def _all(waits: Iterator[Awaitable[object]]) -> None:
    await asyncio.gather(*waits)


class BlockingReader:
    """Reads a topic; iterate over it. See `Reader`."""

    def __init__(self, client: BlockingClient, reader: Reader) -> None:
        self._client = client
        self._reader = reader
        self._cursor = RecordCursor()

    @property
    def skipped_count(self) -> int:
        """Records left out for damage."""
        return self._reader.skipped_count

    @property
    def resets(self) -> list[Reset]:
        """Where offsets were out of range, and reading went on elsewhere."""
        return list(self._reader.resets)

    def open(self) -> Self:
        """Returns once the place to start is known in every partition."""
        self._client.wait(self._reader.open())
        return self

    def close(self) -> None:
        """Ends reading."""
        self._cursor.drop()
        self._client.wait(self._reader.close())

    def position(self, partition: int) -> int:
        """Returns the next offset of this partition to be handed out."""
        offset = self._cursor.offset(partition)
        return self._reader.position(partition) if offset is None else offset

    def seek(self, partition: int, offset: int) -> None:
        """Goes on at this offset of the partition."""
        if self._cursor.offset(partition) is not None:
            self._cursor.drop()
        self._client.wait(self._reader.seek(partition, offset))

    def batches(self) -> Iterator[RecordBatch]:
        """Yields whole batches, decoded when asked for: the fastest way."""
        self._client.wait(self._go_on())
        while batch := self._next_batch():
            yield batch

    def poll(self, timeout_ms: int) -> Record | None:
        """Returns the next record, or None if there is none in this time, or the end is reached."""
        try:
            return self._next(timeout_ms)
        except TimeoutError:
            return None

    def __iter__(self) -> Iterator[Record]:
        self._client.wait(self._go_on())
        return self

    def __next__(self) -> Record:
        record = self._next(None)
        if record is None:
            raise StopIteration
        return record

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _next(self, timeout_ms: int | None) -> Record | None:
        for record in self._cursor.records:
            return record
        while batch := self._next_batch(timeout_ms):
            try:
                self._cursor.begin(batch)
            except DataLossError as error:
                self._reader.pass_damage(batch, error)
                continue
            for record in self._cursor.records:
                return record
        return None

    def _next_batch(self, timeout_ms: int | None = None) -> RecordBatch | None:
        if rest := self._cursor.drop():
            return rest
        return self._client.wait(self._reader.next_batch(), timeout_ms)

    async def _go_on(self) -> None:
        aiter(self._reader)
