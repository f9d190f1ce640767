"""Consumers and workers for code without an event loop.

Leases are kept alive by the client's own thread, however long the caller is busy with a record
(up to `max_processing_ms`). Records are taken from a batch without a change of threads, and
answers go to the loop pile by pile.
"""

import threading
from collections.abc import Awaitable, Callable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

from logbroker.client.audience import TopicPartition
from logbroker.client.consumer import Consumer
from logbroker.client.consumer_stats import ConsumerStats, LostRecords
from logbroker.client.delivered import Delivered, DeliveredBatch
from logbroker.client.loop_thread import LoopThread
from logbroker.client.settlements import PendingSettlement
from logbroker.client.worker import Worker
from logbroker.client.worker_stats import WorkerStats
from logbroker.errors import LogbrokerError

T = TypeVar("T")
Answer = tuple[Callable[..., PendingSettlement], tuple[Any, ...]]


class AnswerPile:
    """Answers on their way from threads to the loop, and what became of them there."""

    __slots__ = ("answers", "is_taken", "settlements")

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.settlements: list[PendingSettlement] = []
        self.is_taken = threading.Event()

    def take(self) -> None:
        """Gives the answers, on the loop."""
        self.settlements = [verb(*arguments) for verb, arguments in self.answers]
        self.answers = []
        self.is_taken.set()


class BlockingSettlement:
    """An answer that is on its way: ask for its `result` to know that it is kept."""

    __slots__ = ("_index", "_pile", "_thread")

    def __init__(self, thread: LoopThread, pile: AnswerPile, index: int) -> None:
        self._thread = thread
        self._pile = pile
        self._index = index

    def done(self) -> bool:
        """Tells whether it is confirmed or refused."""
        return self._pile.is_taken.is_set() and self._pile.settlements[self._index].done()

    def error(self) -> LogbrokerError | None:
        """Returns why it is refused, or not known; None if it is confirmed or open."""
        return self._pile.settlements[self._index].error() if self.done() else None

    def result(self, timeout_ms: int | None = None) -> None:
        """Returns once it is confirmed; raises what awaiting a PendingSettlement raises.

        TimeoutError after `timeout_ms`, which changes nothing for the answer.
        """
        self._thread.check()
        if not self._pile.is_taken.wait(None if timeout_ms is None else timeout_ms / 1_000):
            raise TimeoutError
        self._thread.wait(self._pile.settlements[self._index], timeout_ms)


class BlockingConsumer:
    """Reads as a member of a group; iterate over it. See `Consumer`.

    One thread iterates; any thread may settle.
    """

    def __init__(self, thread: LoopThread, consumer: Consumer) -> None:
        self._thread = thread
        self._consumer = consumer
        self._cursor = consumer.cursor
        self._lock = threading.Lock()
        self._pile = AnswerPile()

    def open(self) -> Self:
        """Returns once it is a member of its group."""
        self._thread.wait(self._consumer.open())
        return self

    def close(self) -> None:
        """Settles what counts as done, gives back the rest, and leaves the group."""
        self._thread.wait(self._after_pile(self._consumer.close))

    def acknowledge(self, what: Delivered | DeliveredBatch) -> BlockingSettlement:
        """Settles a record, or a whole batch: done. Returns at once."""
        return self._give(self._consumer.acknowledge, what)

    def retry(
        self, what: Delivered | DeliveredBatch, delay_ms: int | None = None, reason: str = ""
    ) -> BlockingSettlement:
        """Counts a failure: again after the group's back-off, or after `delay_ms`."""
        return self._give_in_order(self._consumer.retry, what, delay_ms, reason)

    def release(self, what: Delivered | DeliveredBatch) -> BlockingSettlement:
        """Gives back what is not done and has not failed."""
        return self._give_in_order(self._consumer.release, what)

    def reject(self, what: Delivered | DeliveredBatch, reason: str = "") -> BlockingSettlement:
        """Gives up on what is hopeless."""
        return self._give_in_order(self._consumer.reject, what, reason)

    def commit(self) -> None:
        """Acknowledges all that is handed out and not answered; returns once that is kept."""
        self._thread.wait(self._after_pile(self._consumer.commit))

    def flush(self) -> None:
        """Returns once all answers given so far are confirmed or refused."""
        self._thread.wait(self._after_pile(self._consumer.flush))

    def pause(self, topic: str, partition: int) -> None:
        """Hands out nothing more of a partition."""
        self._call(self._consumer.pause, topic, partition)

    def resume(self, topic: str, partition: int) -> None:
        """Goes on with a partition."""
        self._call(self._consumer.resume, topic, partition)

    def set_limits(self, max_outstanding_records: int, max_outstanding_bytes: int) -> None:
        """Changes how much may be delivered and not settled."""
        self._call(self._consumer.set_limits, max_outstanding_records, max_outstanding_bytes)

    def on_lost(self, callback: Callable[[LostRecords], None] | None) -> None:
        """Calls back, on the client's thread, when records were answered too late."""
        self._consumer.on_lost = callback

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        """In partition order, what belongs to it now."""
        return self._consumer.assignment

    @property
    def caught_up(self) -> frozenset[TopicPartition]:
        """Partitions of which everything there was had been delivered, last we heard."""
        return frozenset(self._call(lambda: self._consumer.caught_up))

    def positions(self) -> dict[TopicPartition, int]:
        """Returns, of each partition it got records of, one past the last one handed out."""
        return self._call(self._consumer.positions)

    def committed_offsets(self) -> dict[TopicPartition, int]:
        """Returns the committed offsets of the group, as of the last answers."""
        return self._call(self._consumer.committed_offsets)

    def stats(self) -> ConsumerStats:
        """Returns what it has done so far."""
        return self._call(self._consumer.stats)

    def batches(self) -> Iterator[DeliveredBatch]:
        """Yields batches: the fastest way. A batch is done as a whole."""
        while (batch := self._thread.wait(self._after_pile(self._consumer.next_batch))) is not None:
            yield batch

    def poll(self, timeout_ms: int) -> Delivered | None:
        """Returns the next record, or None if there is none in this time, or no more."""
        try:
            return self._next(timeout_ms)
        except TimeoutError:
            return None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Delivered:
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

    def _next(self, timeout_ms: int | None) -> Delivered | None:
        while (record := self._cursor.take()) is None:
            if not self._thread.wait(self._after_pile(self._consumer.begin_next), timeout_ms):
                return None
        return record

    def _give(self, verb: Callable[..., PendingSettlement], *arguments: Any) -> BlockingSettlement:
        self._thread.check()
        with self._lock:
            pile = self._pile
            index = len(pile.answers)
            pile.answers.append((verb, arguments))
            if index == 0:
                self._thread.call_soon(self._take)
        return BlockingSettlement(self._thread, pile, index)

    def _give_in_order(
        self, verb: Callable[..., PendingSettlement], *arguments: Any
    ) -> BlockingSettlement:
        """Gives an answer after which nothing behind it may be handed out: waits for the loop."""
        settlement = self._give(verb, *arguments)
        self._call(self._take)
        return settlement

    def _take(self) -> None:
        with self._lock:
            pile, self._pile = self._pile, AnswerPile()
        pile.take()

    async def _after_pile(self, verb: Callable[[], Awaitable[T]]) -> T:
        """Does something once the answers given before it are taken."""
        self._take()
        return await verb()

    def _call(self, verb: Callable[..., T], *arguments: Any) -> T:
        """Returns what a verb of the loop gives there."""

        async def called() -> T:
            return verb(*arguments)

        return self._thread.wait(called())


class BlockingWorker:
    """Handles the records of a group, in threads. See `Worker`.

    `run()` returns after `stop()`, which any thread may call, or, in order, at Ctrl-C. As a
    context manager it runs meanwhile.
    """

    def __init__(self, thread: LoopThread, worker: Worker) -> None:
        self._thread = thread
        self._worker = worker

    def __call__(self, record: Delivered) -> Any:
        """Calls the handler."""
        return self._worker.handler(record)

    def run(self) -> None:
        """Handles records until `stop()`. Raises why it is no member, or not any more."""
        running = self._thread.start(self._worker.run())
        try:
            running.result()
        except KeyboardInterrupt:
            self.stop()
            running.result()
            raise

    def stop(self) -> None:
        """Begins nothing more; what is not begun is given back at once."""
        self._thread.call_soon(self._worker.stop)

    def stats(self) -> WorkerStats:
        """Returns what it has done so far."""
        return self._worker.stats()

    def __enter__(self) -> Self:
        self._thread.wait(self._worker.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._thread.wait(self._worker.__aexit__(kind, error, trace))
