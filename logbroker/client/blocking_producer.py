"""A producer for code without an event loop.

`send` puts records on a pile. The loop takes it away, pile by pile, and hands the records
to the producer there, so that a record costs no change of threads.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from logbroker.client import leftovers
from logbroker.client.batcher import Bytes, HeaderLike, as_bytes
from logbroker.client.loop_thread import LoopThread
from logbroker.client.producer import EXIT_FLUSH_MS, Producer
from logbroker.client.receipts import PendingReceipt
from logbroker.errors import LogbrokerError
from logbroker.record.receipt import Receipt

T = TypeVar("T")

PILE_BYTES = 4 << 20
"""How much may lie on a pile before `send` waits for the loop."""


class BlockingReceipt:
    """The receipt of one record: ask for its `result`."""

    __slots__ = ("_index", "_pile", "_thread")

    def __init__(self, thread: LoopThread, pile: "Pile", index: int) -> None:
        self._thread = thread
        self._pile = pile
        self._index = index

    def done(self) -> bool:
        """Tells whether the record is stored or failed."""
        if not self._pile.is_taken.is_set():
            return False
        outcome = self._pile.outcomes[self._index]
        return isinstance(outcome, LogbrokerError) or outcome.done()

    def result(self, timeout_ms: int | None = None) -> PendingReceipt:
        """Returns the receipt once the record is stored, or raises why it is not.

        TimeoutError after `timeout_ms`, which changes nothing for the record.
        """
        if not self._pile.is_taken.is_set():
            self._thread.check()
        if not self._pile.is_taken.wait(None if timeout_ms is None else timeout_ms / 1_000):
            raise TimeoutError
        outcome = self._pile.outcomes[self._index]
        if isinstance(outcome, LogbrokerError):
            self._pile.seen.add(self._index)
            raise outcome.again()
        if outcome.done():
            if error := outcome.error():
                raise error
            return outcome
        return self._thread.wait(outcome, timeout_ms)


class Pile:
    """Records on their way from threads to the loop, and what became of them there."""

    __slots__ = ("is_taken", "outcomes", "records", "seen", "size")

    def __init__(self) -> None:
        self.records: list[tuple[Any, ...]] = []
        self.size = 0
        self.outcomes: list[PendingReceipt | LogbrokerError] = []
        self.seen: set[int] = set()
        self.is_taken = threading.Event()

    def unseen_error(self) -> LogbrokerError | None:
        """Returns the first error of a record that was refused, and that nobody has seen."""
        for index, outcome in enumerate(self.outcomes):
            if isinstance(outcome, LogbrokerError) and index not in self.seen:
                return outcome
        return None


class BlockingProducer:
    """Sends records to one topic; see `Producer`. Threads may share it."""

    def __init__(self, thread: LoopThread, producer: Producer) -> None:
        self._thread = thread
        self._producer = producer
        self._lock = threading.Lock()
        self._pile = Pile()
        self._taking = asyncio.Lock()
        self._taken_piles: list[Pile] = []
        self._waiting_count = 0
        self._is_closed = False
        leftovers.hold(self)

    def send(
        self,
        value: Bytes | None,
        key: Bytes | None = None,
        headers: Sequence[HeaderLike] | None = None,
        timestamp_ms: int | None = None,
        partition: int | None = None,
    ) -> BlockingReceipt:
        """Takes a record and returns its receipt, to be asked for its result or not.

        Waits for room in the buffer, otherwise not. InvalidError for what is no bytes; what
        else is wrong with a record its receipt says, and `flush`.
        """
        if type(value) is not bytes:
            value = as_bytes(value, "value")
        if key is not None and type(key) is not bytes:
            key = as_bytes(key, "key")
        with self._lock:
            pile = self._pile
            records = pile.records
            index = len(records)
            records.append((value, key, headers, timestamp_ms, partition))
            pile.size += len(value) if value else 0
            if index == 0:
                self._begin(pile)
        if pile.size > PILE_BYTES:
            pile.is_taken.wait()
        return BlockingReceipt(self._thread, pile, index)

    def publish(
        self,
        value: Bytes | None,
        key: Bytes | None = None,
        headers: Sequence[HeaderLike] | None = None,
        timestamp_ms: int | None = None,
        partition: int | None = None,
        expected_offset: int | None = None,
    ) -> PendingReceipt:
        """Sends a record and returns its receipt once it is stored."""
        record = value, key, headers, timestamp_ms, partition, expected_offset
        return self._wait(self._after_pile(self._producer.publish, *record))

    def send_many(
        self,
        values: Sequence[Bytes | None],
        keys: Sequence[Bytes | None] | None = None,
        timestamps_ms: Sequence[int] | None = None,
        headers: Sequence[Sequence[HeaderLike] | None] | None = None,
        partition: int | None = None,
    ) -> list[Receipt]:
        """Sends many records, as columns; returns a receipt for each batch once all are stored."""
        columns = values, keys, timestamps_ms, headers, partition
        pending = self._wait(self._after_pile(self._producer.send_many, *columns))
        return self._thread.wait(pending)

    def flush(self) -> None:
        """Returns once all is answered; raises the first error that nobody has seen, once."""
        self._wait(self._after_pile(self._producer.flush))
        piles, self._taken_piles = self._taken_piles, []
        for pile in piles:
            if error := pile.unseen_error():
                raise error.again()

    def close(self) -> None:
        """Flushes, then ends the producer."""
        if not self._is_closed:
            try:
                self.flush()
            finally:
                self._is_closed = True
                self._wait_end()

    def abandon(self) -> None:
        """Ends the producer after a bounded wait; what is left fails."""
        if not self._is_closed:
            self._is_closed = True
            self._wait_end()

    async def wait_answered(self, timeout_ms: int) -> bool:
        """Waits, on the loop, until all that was taken is answered; returns whether it is."""
        await self._take()
        return await self._producer.wait_answered(timeout_ms)

    def unsent_count(self) -> int:
        """Returns how many records the loop has not even taken."""
        return self._waiting_count + len(self._pile.records)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abandon()

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            self._producer.check_open()
        except LogbrokerError:
            work.close()
            raise
        return self._thread.wait(work)

    def _wait_end(self) -> None:
        self._thread.wait(self._end())
        leftovers.release(self)

    async def _end(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._take(), EXIT_FLUSH_MS / 1_000)
        await self._producer.abandon()

    def _begin(self, pile: Pile) -> None:
        """Tells the loop of a new pile. Under the lock."""
        try:
            self._producer.check_open()
        except LogbrokerError:
            pile.records.clear()
            raise
        self._thread.call_soon(self._take_soon)

    def _take_soon(self) -> None:
        self._task = self._thread.loop.create_task(self._take())

    async def _after_pile(self, verb: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
        """Does something once what was sent before it is taken."""
        await self._take()
        return await verb(*arguments)

    async def _take(self) -> None:
        """Hands the pile to the producer, record by record."""
        async with self._taking:
            with self._lock:
                pile, self._pile = self._pile, Pile()
                self._waiting_count = len(pile.records)
            send, add = self._producer.send, pile.outcomes.append
            has_error = False
            for record in pile.records:
                try:
                    add(await send(*record))
                except LogbrokerError as error:
                    add(error)
                    has_error = True
                self._waiting_count -= 1
            pile.records = []
            pile.is_taken.set()
            if has_error:
                self._taken_piles.append(pile)
