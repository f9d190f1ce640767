"""Worker: runs a handler for each record of a group, and settles by how that ends.

    returns                done
    raises Retry           failed: again after the given delay, or the group's back-off
    raises Reject          hopeless: a dead letter now
    raises anything else   failed, with the exception's text as the reason
    takes too long         failed: after `max_processing_ms` it is cancelled

A handler that is not async runs in a thread, and a thread cannot be cancelled: it holds up
what comes behind its record, here. In partition order the record's lease is extended no more;
when it is over another member gets the partition, if there is one. Give whatever may block a
time limit of its own.

A record may be handled more than once: see `logbroker.client.consumer` on delivery guarantees.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from logbroker.client.connection import Connection
from logbroker.client.consumer_settings import ConsumerSettings
from logbroker.client.delivered import Delivered, DeliveredBatch
from logbroker.client.handler import Handler, Reject, Retry, is_async, reason_of
from logbroker.client.handler_lanes import HandlerLane, HandlerLanes
from logbroker.client.lease import Lease, minus
from logbroker.client.logs import ClientLog
from logbroker.client.membership import Membership
from logbroker.client.runner import NoMoreThreads, Runner
from logbroker.client.settlements import Turn
from logbroker.client.worker_stats import WorkerStats
from logbroker.errors import InvalidError
from logbroker.group.settings import Order
from logbroker.record.offset_ranges import OffsetRanges, Range
from logbroker.v1 import consume_service_pb2 as pb

CLOSE_MS = 5_000
"""How long handlers may run on when the client is closed under their worker."""
TURN_RECORDS = 32
"""After so many records a runner lets others run, whatever its handler does."""

log = ClientLog(__name__)


class Worker:
    """Handles the records of a group. Made by `Client.worker`, also as a decorator.

    `await worker.run()` returns after `stop()`: running handlers finish and are settled, what
    was prefetched is given back at once. As a context manager it runs meanwhile. Calling the
    worker calls its handler.
    """

    def __init__(
        self,
        connection: Connection,
        settings: ConsumerSettings,
        handler: Handler,
        *,
        concurrency: int = 4,
        cancel_lost: bool = False,
    ) -> None:
        """Runs up to `concurrency` handlers at a time. A thread is made for each sync one.

        `cancel_lost`: whether a handler is cancelled when its record's lease is lost; else
        only `record.lease_lost` tells it.
        """
        if concurrency < 1:
            raise InvalidError("INVALID_ARGUMENT", "concurrency must be at least 1")
        self.settings = settings
        self.handler = handler
        self._clock = connection.clock
        self._member = Membership(connection, settings, self)
        self._outbox = self._member.outbox
        self._lanes = HandlerLanes()
        self._runners = [Runner() for _ in range(concurrency)]
        self._idle: deque[asyncio.Future[None]] = deque()
        self._cancel_lost = cancel_lost
        self._is_async = is_async(handler)
        self._pool: ThreadPoolExecutor | None = None
        self._has_ended = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._was_run = self._is_stopping = self._is_stuck = False
        self._delivered = self._done = self._retried = self._rejected = self._late = 0

    def __call__(self, record: Delivered) -> Any:
        """Calls the handler."""
        return self.handler(record)

    async def run(self) -> None:
        """Handles records until `stop()`. Raises why it is no member, or not any more."""
        if self._was_run:
            raise InvalidError("INVALID_ARGUMENT", "a worker runs once; make another one")
        self._was_run = True
        if not self._is_async:
            self._pool = ThreadPoolExecutor(len(self._runners), "logbroker worker")
        try:
            if not self._is_stopping:
                await self._member.join()
            async with asyncio.TaskGroup() as tasks:
                watching = tasks.create_task(self._watch())
                for runner in self._runners:
                    runner.task = tasks.create_task(self._run(runner))
                await asyncio.wait([runner.task for runner in self._runners if runner.task])
                watching.cancel()
            if self._member.failure is not None:
                raise self._member.failure.again()
        finally:
            self._is_stopping = True
            self._lanes.clear()
            try:
                await self._member.leave()
            finally:
                if self._pool is not None:
                    self._pool.shutdown(wait=False, cancel_futures=True)
                self._has_ended.set()

    def stop(self) -> None:
        """Begins nothing more; what is not begun is given back at once. `run` returns then."""
        if not self._is_stopping:
            self._is_stopping = True
            self._give_back()
            self._wake(len(self._idle))

    async def close(self) -> None:
        """Stops, waits a while for handlers that run, and leaves the group.

        What they have not finished in CLOSE_MS is given back, and their answers come too late.
        """
        self.stop()
        if self._was_run:
            with suppress(TimeoutError):
                await self._clock.wait_for(self._has_ended.wait(), CLOSE_MS)
        await self._member.leave()

    def stats(self) -> WorkerStats:
        """Returns what it has done so far."""
        return WorkerStats(
            delivered_count=self._delivered,
            done_count=self._done,
            retry_count=self._retried,
            reject_count=self._rejected,
            late_count=self._late,
            lost_count=self._member.lost_count,
            running_count=sum(runner.record is not None for runner in self._runners),
        )

    async def __aenter__(self) -> Self:
        try:
            await self._member.join()
        except BaseException:
            await self._member.leave()  # else it becomes a member that nobody runs
            raise
        self._running = asyncio.create_task(self.run(), name=f"worker of {self.settings.group}")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        assert self._running is not None
        await self._running

    # What the member tells

    def take(self, batch: DeliveredBatch) -> None:
        """Takes a batch from the broker."""
        self._delivered += batch.record_count
        if self._is_stopping or self._is_stuck:
            self._member.release(batch.lease, [(batch.first_offset, batch.end_offset)])
            return
        assert self._member.group_settings is not None
        self._lanes.order = self._member.group_settings.order
        self._lanes.add(batch)
        self._wake(batch.record_count)

    def drop(self) -> None:
        """Hears that leases are lost; lanes leave out what is. Handlers hear it if they want."""
        for runner in self._runners:
            if self._cancel_lost and runner.record is not None and runner.record.lease_lost:
                runner.is_answered = self._is_async  # nothing is asked of it any more
                self._cancel(runner)

    def note_lost(self, lease: Lease, range_: Range) -> None:
        """Hears of answers that came too late: counted and logged before."""

    def wake(self) -> None:
        """Hears that something changed: perhaps the end."""
        if self._member.failure is not None:
            self._wake(len(self._idle))

    def may_extend(self, lease: Lease, now_ms: int) -> bool:
        """Tells whether nothing of it takes too long and is not answered for that."""
        return not any(
            runner.is_late and not runner.is_answered and record.run.lease is lease
            for runner in self._runners
            if (record := runner.record) is not None
        )

    # Running

    async def _run(self, runner: Runner) -> None:
        handle = self.handler if self._pool is None else self._handle_in_thread
        count = 0
        while not self._is_stopping and self._member.failure is None:
            found = self._lanes.next()
            if found is None:
                await self._wait()
                continue
            lane, record = found
            runner.record, runner.begun_ms = record, self._clock.monotonic_ms()
            try:
                with runner.attempt:
                    await handle(record)
                if runner.is_late:
                    self._is_only_late(runner)  # it ended in spite of being cancelled
            except NoMoreThreads:
                runner.record = None
                offset = record.ledger_offset
                self._member.release(record.run.lease, [(offset, offset + 1)])
                self.stop()
                return
            except asyncio.CancelledError:
                if not self._is_only_late(runner):
                    raise
                cancelled = Retry(reason="its handler was cancelled")
                runner.attempt.error = self._too_late() if runner.is_late else cancelled
            runner.record = None
            self._settle(runner, lane, record)
            count += 1
            if count % TURN_RECORDS == 0:
                await asyncio.sleep(0)

    def _is_only_late(self, runner: Runner) -> bool:
        """Tells whether a cancellation was meant for the handler, and ends it here if so."""
        assert runner.task is not None
        if runner.is_late and self._is_async:
            return runner.task.uncancel() == 0
        return runner.task.cancelling() == 0

    async def _handle_in_thread(self, record: Delivered) -> None:
        assert self._pool is not None
        try:
            running = self._pool.submit(self.handler, record)
        except RuntimeError as error:  # the interpreter is about to end
            raise NoMoreThreads from error
        await asyncio.wrap_future(running)

    def _settle(self, runner: Runner, lane: HandlerLane | None, record: Delivered) -> None:
        """Answers by how the handler ended, and lets its lane go on when that is known."""
        was_answered, was_late = runner.is_answered, runner.is_late
        runner.is_answered = runner.is_late = False
        if was_late:
            self._go_on()
        if was_answered:
            pass  # long ago
        elif runner.attempt.error is None:
            self._done += 1
            self._outbox.note_done(record.run.lease, record.ledger_offset)
        else:
            turn = self._answer(record, runner.attempt.error)
            if lane is not None and not turn.is_done:
                turn.on_done = self._when_done(lane)
                return
        if lane is not None:
            self._lanes.done(lane)

    def _answer(self, record: Delivered, error: Exception) -> Turn:
        outcome, delay_ms, reason = pb.OUTCOME_RETRY, None, ""
        match error:
            case Retry():
                delay_ms, reason = error.delay_ms, error.reason
            case Reject():
                outcome, reason = pb.OUTCOME_REJECT, error.reason
            case _:
                reason = reason_of(error)
        if outcome == pb.OUTCOME_REJECT:
            self._rejected += 1
        else:
            self._retried += 1
        log.info(
            "handler failed", group=self.settings.group, topic=record.topic,
            partition=record.partition, offset=record.offset, reason=reason,
        )  # fmt: skip
        offset = record.ledger_offset
        ranges = [(offset, offset + 1)]
        return self._outbox.answer(
            record.run.lease, ranges, outcome, delay_ms=delay_ms, reason=reason
        )

    def _when_done(self, lane: HandlerLane) -> Callable[[], None]:
        def go_on() -> None:
            self._lanes.done(lane)
            self._wake(1)

        return go_on

    async def _watch(self) -> None:
        """Ends handlers that take too long."""
        limit_ms = self.settings.max_processing_ms
        while True:
            begun = [runner.begun_ms for runner in self._busy() if not runner.is_late]
            now_ms = self._clock.monotonic_ms()
            await self._clock.wait_until(min(begun, default=now_ms) + limit_ms)
            now_ms = self._clock.monotonic_ms()
            for runner in self._busy():
                if not runner.is_late and now_ms - runner.begun_ms >= limit_ms:
                    self._end_late(runner)

    def _end_late(self, runner: Runner) -> None:
        assert runner.record is not None
        record, limit_ms = runner.record, self.settings.max_processing_ms
        log.warning(
            "handler takes too long", group=self.settings.group,
            topic=record.topic, partition=record.partition, offset=record.offset,
            max_processing_ms=limit_ms,
        )  # fmt: skip
        runner.is_late = True
        self._late += 1
        if self._lanes.order is not Order.PARTITION:  # else when it ends, or its lease runs out
            runner.is_answered = True
            self._answer(record, self._too_late())
            record.run.lease.note_lost(record.ledger_offset)
        self._cancel(runner)
        if all(each.is_late for each in self._runners):
            self._is_stuck = True
            self._give_back()

    def _too_late(self) -> Retry:
        return Retry(reason=f"its handler took longer than {self.settings.max_processing_ms} ms")

    def _cancel(self, runner: Runner) -> None:
        if self._is_async and runner.task is not None:
            runner.is_late = True
            runner.task.cancel()

    def _go_on(self) -> None:
        """Takes records again, if no runner was left for any."""
        if self._is_stuck and not self._is_stopping:
            self._is_stuck = False
            settings = self.settings
            self._member.set_limits(
                settings.max_outstanding_records, settings.max_outstanding_bytes
            )

    def _give_back(self) -> None:
        """Releases what is not begun, and wants nothing more."""
        self._lanes.clear()
        self._member.set_limits(0, 0)
        self._outbox.seal()
        begun: dict[int, OffsetRanges] = {}
        for runner in self._busy():
            assert runner.record is not None
            offset = runner.record.ledger_offset
            begun.setdefault(runner.record.run.lease.token, OffsetRanges()).add(offset, offset + 1)
        for lease in list(self._member.held.by_token.values()):
            held = lease.held.ranges()
            self._member.release(lease, minus(held, begun.get(lease.token, OffsetRanges())))

    def _busy(self) -> list[Runner]:
        return [runner for runner in self._runners if runner.record is not None]

    async def _wait(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._idle.append(waiter)
        await waiter

    def _wake(self, count: int) -> None:
        while count > 0 and self._idle:
            waiter = self._idle.popleft()
            if not waiter.done():
                waiter.set_result(None)
                count -= 1
