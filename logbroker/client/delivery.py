"""Carries the batches of a producer to the broker: one stream, answers in order, again if need be.

Each pass sends what may go, lane by lane. A stream that breaks is opened anew after a
back-off, and what was not answered goes again, in order and with its sequences.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from grpc.aio import EOF, AioRpcError, StreamStreamCall

from logbroker.client import leftovers
from logbroker.client.connection import Connection
from logbroker.client.entries import Entries
from logbroker.client.lane import Lane
from logbroker.client.logs import ClientLog
from logbroker.client.outgoing_batch import OutgoingBatch
from logbroker.client.preparation import Preparation
from logbroker.client.retry import failure_of, may_pass, unreachable, wait_ms
from logbroker.client.under_way import UnderWay
from logbroker.client.writer import Writer
from logbroker.errors import InternalError, LogbrokerError
from logbroker.record.compression import Codec
from logbroker.topic.topic import Topic
from logbroker.v1 import produce_service_pb2 as pb
from logbroker.v1.record_pb2 import ProduceResult
from logbroker.wire.convert import receipt_of
from logbroker.wire.produce_request import produce_request
from logbroker.wire.status import error_from

REQUEST_BYTES = 1 << 20
"""What is ready goes in one request up to this size: gRPC carries large ones at less cost."""
REQUESTS_UNDER_WAY = 2
"""While so many are not answered, what is less than REQUEST_BYTES waits for more..."""
LANES_LOOKED_AT = 16
"""... as far as these tell, of the lanes that wait..."""
STREAM_BYTES = 8 << 20
"""... and while so much is not answered, everything waits: half of what a broker takes at once."""

log = ClientLog(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySettings:
    """How batches travel."""

    codec: Codec
    max_in_flight: int
    is_idempotent: bool
    delivery_timeout_ms: int


class _StreamLostError(Exception):
    """The stream ended; `error` says why."""

    def __init__(self, error: LogbrokerError) -> None:
        super().__init__(str(error))
        self.error = error


class Delivery:
    """The lanes of one producer, and the tasks that empty them."""

    def __init__(
        self,
        connection: Connection,
        settings: DeliverySettings,
        *,
        seal: Callable[[Lane], None],
        on_answered: Callable[[OutgoingBatch], None],
    ) -> None:
        self._connection = connection
        self._clock = connection.clock
        self._settings = settings
        self._seal = seal
        self._preparation = Preparation(
            connection, settings.codec, seal=seal, on_retry=self._note_error
        )
        self._on_answered = on_answered
        self._entries = Entries(is_idempotent=settings.is_idempotent)
        self.lanes: list[Lane] = []
        self._ready: deque[Lane] = deque()
        self._wake = asyncio.Event()
        self._by_age: deque[tuple[OutgoingBatch, Lane]] = deque()
        self._lingering: deque[tuple[OutgoingBatch, Lane]] = deque()
        self._has_batches = asyncio.Event()
        self._lingers = asyncio.Event()
        self._unprepared: deque[Lane] = deque()
        self._under_way = UnderWay()
        self._writer: Writer | None = None
        """Of the open stream; None while `_send` prepares a lane."""
        self._attempt = 0
        self._last_error: LogbrokerError | None = None
        self._tasks: asyncio.TaskGroup | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self, topic: Topic) -> None:
        """Begins to carry."""
        self.grow(topic)
        self._task = asyncio.create_task(self._run(), name=f"producer of {topic.topic}")
        self._task.add_done_callback(self._ended)

    def grow(self, topic: Topic) -> None:
        """Makes lanes for the topic's new partitions."""
        self._entries.topic = topic
        idempotent = self._settings.is_idempotent
        most = self._settings.max_in_flight if idempotent else 1
        for partition in range(len(self.lanes), topic.partition_count):
            self.lanes.append(Lane(partition, max_under_way=most, is_idempotent=idempotent))

    def accept(self, batch: OutgoingBatch, lane: Lane) -> None:
        """Takes responsibility for a batch, open or sealed. `look_at` its lane then."""
        if not self._by_age:
            leftovers.hold(self)
            self._has_batches.set()
        self._by_age.append((batch, lane))
        if batch.is_sealed:
            lane.push(batch)
        elif lane.unresolved:
            self._lingering.append((batch, lane))
            self._lingers.set()

    def look_at(self, lane: Lane) -> None:
        """Puts the lane in line if something of it may go, and has it sent unless that waits."""
        if self._line_up(lane) and not self._wake.is_set() and not self._must_wait():
            self._wake.set()

    def send_now(self, lane: Lane) -> None:
        """Does what `look_at` does; where nothing stands in the way, the lane's next batch goes."""
        if self._ready or self._writer is None or self._must_wait():
            self.look_at(lane)
        else:
            lane.is_ready = True
            self._ready.append(lane)
            self._send_request(self._writer)
            if self._ready or self._unprepared:
                self._wake.set()

    def unsent_count(self) -> int:
        """Returns how many records are not known to be stored."""
        return sum(
            batch.record_count or len(batch.values)
            for batch, _ in self._by_age
            if not batch.is_answered
        )

    def unanswered(self) -> list[OutgoingBatch]:
        """Returns the batches that are neither stored nor failed, oldest first."""
        return [batch for batch, _ in self._by_age if not batch.is_answered]

    def hurry(self) -> None:
        """Lets open batches go without waiting for more records."""
        for lane in self.lanes:
            if lane.open is not None:
                lane.open.is_overdue = True
                self.look_at(lane)

    async def stop(self) -> None:
        """Ends the tasks. What is not answered yet fails, outcome unknown if it was sent."""
        if self._task:
            self._task.cancel()
            await asyncio.wait({self._task})
        self._fail_all(unreachable("the producer was closed before the records were sent"))

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (fault := task.exception()):
            log.error("a producer failed", error=repr(fault), exc_info=fault)
            self._fail_all(InternalError("BROKER_FAULT", f"the producer failed: {fault!r}"))

    def _fail_all(self, why: LogbrokerError) -> None:
        for batch, lane in list(self._by_age):
            if not batch.is_answered:
                self._give_up(batch, lane, why)
        self._drop_answered()

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as self._tasks:
            self._tasks.create_task(self._give_up_in_time())
            self._tasks.create_task(self._end_lingering())
            while True:
                while not self._ready:
                    self._wake.clear()
                    await self._wake.wait()
                await self._run_stream()

    async def _run_stream(self) -> None:
        """Sends and reads until the stream is lost; then waits for the back-off."""
        try:
            await self._connection.wait_ready(
                self._clock.monotonic_ms() + self._connection.timeout_ms
            )
            call = self._connection.open_stream(
                "ProduceService/Produce", pb.ProduceResponse.FromString
            )
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._read_answers(call))
                    await self._send(call)
            finally:
                call.cancel()
        except* _StreamLostError as group:
            error = group.exceptions[0]
            assert isinstance(error, _StreamLostError)
            await self._recover(error.error)
        except* LogbrokerError as group:
            failed = group.exceptions[0]
            assert isinstance(failed, LogbrokerError)
            await self._recover(failed)

    async def _recover(self, error: LogbrokerError) -> None:
        if (task := asyncio.current_task()) and task.cancelling():
            raise asyncio.CancelledError  # TaskGroup before 3.13 lets the error go before `stop`
        if self._attempt == 0:
            log.warning(
                "producer lost the broker, sends again what was not answered",
                target=self._connection.target, reason=error.reason, error=str(error),
            )  # fmt: skip
        self._attempt += 1
        self._last_error = error
        culprit = self._under_way.first()
        was_in_doubt = culprit is not None and culprit[0].in_doubt
        self._under_way.clear()
        self._unprepared.clear()
        for lane in self.lanes:
            lane.lose_connection()
        if not may_pass(error):
            if culprit is None and self._by_age:
                culprit = self._by_age[0]
            if culprit and not culprit[0].is_answered:
                culprit[0].in_doubt = was_in_doubt or not error.no_effect
                self._give_up(*culprit, error)
        delay_ms = wait_ms(error, self._attempt, self._connection.backoff, self._connection.random)
        await self._clock.wait_until(self._clock.monotonic_ms() + delay_ms)
        for lane in self.lanes:
            self.look_at(lane)

    async def _send(self, call: StreamStreamCall[bytes, pb.ProduceResponse]) -> None:
        writer = Writer(call, self._written)
        try:
            while True:
                self._writer = writer
                while not self._unprepared and (not self._ready or self._must_wait()):
                    self._wake.clear()
                    await self._wake.wait()
                    if writer.fault:
                        raise writer.fault
                if self._unprepared:
                    self._writer = None
                    lane = self._unprepared.popleft()
                    await self._preparation.run(lane)
                    self.look_at(lane)
                else:
                    self._send_request(writer)
        finally:
            self._writer = None

    def _written(self) -> None:
        if self._ready or self._unprepared or (self._writer and self._writer.fault):
            self._wake.set()

    def _must_wait(self) -> bool:
        """Whether what is ready waits for an answer or for more, to travel at less cost."""
        if self._writer is None:
            return False
        under_way = self._under_way
        if not self._writer.is_free or under_way.size_bytes >= STREAM_BYTES:
            return True
        if under_way.request_count < REQUESTS_UNDER_WAY:
            return False
        # Of many lanes a few are looked at: this is asked with every answer of every lane.
        seen = [lane.waiting_bytes for lane in islice(self._ready, LANES_LOOKED_AT)]
        return sum(seen) * len(self._ready) < REQUEST_BYTES * len(seen) or not seen

    def _send_request(self, writer: Writer) -> None:
        """Begins to write a request of what is ready, unless all of that is to be prepared."""
        entries: list[tuple[bytes | memoryview, ...]] = []
        started: list[tuple[OutgoingBatch, Lane]] = []
        size, now_ms = 0, self._clock.monotonic_ms()
        while self._ready and size < REQUEST_BYTES:
            lane = self._ready.popleft()
            lane.is_ready = False
            if not lane.may_go(now_ms=now_ms):
                continue
            if not self._preparation.is_done(lane):
                self._unprepared.append(lane)
                continue
            next_size = lane.next_size_bytes
            if entries and size + next_size > REQUEST_BYTES:
                lane.is_ready = True
                self._ready.appendleft(lane)
                break
            batch = lane.start()
            started.append((batch, lane))
            entries.append(self._entries.of(batch, lane))
            size += next_size
            if lane.may_go(now_ms=now_ms):
                lane.is_ready = True
                self._ready.append(lane)
        if started:
            self._under_way.add_request(started)
            writer.begin(produce_request(entries))

    def _line_up(self, lane: Lane) -> bool:
        """Puts the lane in line if something of it may go, and tells whether it is there."""
        if not lane.is_ready and lane.may_go(now_ms=self._clock.monotonic_ms()):
            lane.is_ready = True
            self._ready.append(lane)
        return lane.is_ready

    def _note_error(self, error: LogbrokerError) -> None:
        self._last_error = error

    async def _read_answers(self, call: StreamStreamCall[bytes, pb.ProduceResponse]) -> None:
        try:
            while (response := await call.read()) is not EOF:
                assert isinstance(response, pb.ProduceResponse)
                for result in response.results:
                    self._take_answer(*self._under_way.pop(), result)
                if self._ready and not self._must_wait():
                    self._wake.set()
                if len(response.results) == 1:
                    await asyncio.sleep(0)  # who waits for it goes first: reading costs a moment
            raise _StreamLostError(unreachable("the broker ended the stream"))
        except AioRpcError as failure:
            raise _StreamLostError(failure_of(failure)) from failure

    def _take_answer(self, batch: OutgoingBatch, lane: Lane, result: ProduceResult) -> None:
        before = lane.identity
        answer = (
            receipt_of(result.receipt) if result.HasField("receipt") else error_from(result.error)
        )
        was_answered = batch.is_answered
        should_rest = lane.answer(batch, answer)
        if before is not None and lane.identity is None:
            self._preparation.forget(before)
        if isinstance(answer, LogbrokerError):
            log.debug("batch refused", partition=lane.partition, reason=answer.reason)
        elif self._attempt:
            self._attempt = 0
            log.info("producer has the broker again", target=self._connection.target)
        if batch.is_answered and not was_answered:
            self._on_answered(batch)
            self._drop_answered()
        if should_rest and not lane.is_resting and self._tasks:
            assert isinstance(answer, LogbrokerError)
            lane.is_resting = True
            self._tasks.create_task(self._rest(lane, answer))
        self._line_up(lane)  # whether it goes now is asked once, behind all answers of a message

    async def _rest(self, lane: Lane, error: LogbrokerError) -> None:
        delay_ms = wait_ms(
            error, lane.failures_in_row, self._connection.backoff, self._connection.random
        )
        await self._clock.wait_until(self._clock.monotonic_ms() + delay_ms)
        lane.is_resting = False
        self.look_at(lane)

    async def _end_lingering(self) -> None:
        """Lets batches go once they waited long enough for more records."""
        while True:
            while not self._lingering:
                self._lingers.clear()
                await self._lingers.wait()
            batch, lane = self._lingering.popleft()
            if not batch.is_sealed:
                await self._clock.wait_until(batch.lingers_until_ms)
                batch.is_overdue = True
                self.look_at(lane)

    async def _give_up_in_time(self) -> None:
        """Fails batches whose time is over, connected or not."""
        while True:
            while not self._by_age:
                self._has_batches.clear()
                await self._has_batches.wait()
            batch, lane = self._by_age[0]
            await self._clock.wait_until(batch.deadline_ms)
            if not batch.is_answered:
                timeout_ms = self._settings.delivery_timeout_ms
                why = self._last_error or unreachable(f"nothing was sent in {timeout_ms} ms")
                self._give_up(batch, lane, why)
            self._drop_answered()

    def _give_up(self, batch: OutgoingBatch, lane: Lane, why: LogbrokerError) -> None:
        if not batch.is_sealed:
            self._seal(lane)
        lane.give_up(batch, why)
        self._on_answered(batch)
        self.look_at(lane)

    def _drop_answered(self) -> None:
        while self._by_age and self._by_age[0][0].is_answered:
            self._by_age.popleft()
        if not self._by_age:
            leftovers.release(self)
