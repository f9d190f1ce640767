"""Reads one partition ahead of the application, and goes on where it was when a stream breaks.

position <= ahead      position: the next offset to hand out; ahead: the next to fetch
what lies between them waits in the reader's inbox, some budget_bytes at most
"""

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from grpc.aio import EOF, AioRpcError

from logbroker.client.connection import Connection
from logbroker.client.logs import ClientLog
from logbroker.client.record_batch import RecordBatch, check_records
from logbroker.client.retry import failure_of, may_pass, unreachable, wait_ms
from logbroker.errors import DataLossError, LogbrokerError, OffsetOutOfRangeError
from logbroker.record.batch import Batch
from logbroker.topic.topic import Topic
from logbroker.v1 import fetch_service_pb2 as pb
from logbroker.wire.fetch_response import Response, read_fetch_response

NO_STOP = 1 << 63
LEAST_FETCH_BYTES = 64 << 10
MOST_FETCH_BYTES = 1 << 20

log = ClientLog(__name__)


class Edge(StrEnum):
    """An end of a partition."""

    EARLIEST = "earliest"
    LATEST = "latest"


class Timestamp(NamedTuple):
    """A place in a partition: the first record, in log order, that is at least this late."""

    timestamp_ms: int


class Reset(NamedTuple):
    """A jump to where reading can go on: the offset wanted was out of range."""

    partition: int
    from_offset: int
    to_offset: int
    skipped_count: int


Start = Edge | int | Timestamp


class OutOfRange(StrEnum):
    """What to do at an offset that cannot be read."""

    EARLIEST = "earliest"
    LATEST = "latest"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """How a partition is read."""

    follow: bool
    skip_damage: bool
    out_of_range: OutOfRange
    budget_bytes: int


class Inbox(Protocol):
    """Where a stream puts what it read."""

    def put(self, stream: "PartitionStream", item: "RecordBatch | BaseException | None") -> None:
        """Takes a batch, the error that ended the stream, or None: something else changed."""

    def note_reset(self, reset: Reset) -> None:
        """Takes note of a reset."""

    def note_skipped(self, count: int) -> None:
        """Takes note of records that were skipped for damage."""


class PartitionStream:
    """One partition, read ahead."""

    def __init__(
        self,
        connection: Connection,
        topic: Topic,
        partition: int,
        start: Start,
        stop_offset: int | None,
        settings: StreamSettings,
        inbox: Inbox,
    ) -> None:
        self.partition = partition
        self.is_finished = False
        self.failure: LogbrokerError | None = None
        self.position: int | None = start if isinstance(start, int) else None
        """The next offset to hand out, as far as whole batches go; None: not known yet."""
        self.has_started = asyncio.Event()
        """The first answer is there, or the stream has failed."""
        self._connection = connection
        self._clock = connection.clock
        self._topic = topic
        self._start = start
        self._ahead = start if isinstance(start, int) else 0
        self._stop = NO_STOP if stop_offset is None else stop_offset
        self._settings = settings
        self._inbox = inbox
        self._buffered_bytes = 0
        self._has_room = asyncio.Event()
        self._attempt = 0
        self._is_placed = False
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Starts to read."""
        name = f"reader of {self._topic.topic}/{self.partition}"
        self._task = asyncio.create_task(self._run(), name=name)

    def end(self) -> None:
        """Reads no more."""
        if self._task:
            self._task.cancel()

    def taken(self, batch: RecordBatch) -> None:
        """Hears that the application has this batch now."""
        self.position = batch.end_offset
        self._buffered_bytes -= batch.size_bytes
        self._has_room.set()

    def resume_offset(self) -> int | None:
        """Returns where to begin anew after the failure: behind damage, else where it was."""
        if isinstance(self.failure, DataLossError) and "next_offset" in self.failure.details:
            return int(self.failure.details["next_offset"])
        return self._ahead if self._is_placed else None

    async def _run(self) -> None:
        try:
            while not self.is_finished:
                await self._read_on()
        except LogbrokerError as error:
            self.failure = error
            self._inbox.put(self, error)
        except asyncio.CancelledError:
            raise
        except BaseException as fault:
            self._inbox.put(self, fault)
            raise
        finally:
            self.is_finished = True
            self.has_started.set()
            self._inbox.put(self, None)

    async def _read_on(self) -> None:
        """Reads until the end, or until there is something to wait for; raises what ends it."""
        try:
            await self._read()
        except AioRpcError as failure:
            self._connection.check_open()
            await self._overcome(failure_of(failure))
        except LogbrokerError as error:
            await self._overcome(error)

    async def _overcome(self, error: LogbrokerError) -> None:
        if isinstance(error, OffsetOutOfRangeError):
            self._reset(error)
        elif isinstance(error, DataLossError):
            self._pass_damage(error)
        elif may_pass(error):
            await self._wait(error)
        else:
            raise error

    async def _read(self) -> None:
        timeout_ms = self._connection.timeout_ms
        await self._connection.wait_ready(self._clock.monotonic_ms() + timeout_ms)
        call = self._connection.open_answers(
            "FetchService/Fetch", self._request(), read_fetch_response
        )
        try:
            while (response := await call.read()) is not EOF:
                assert isinstance(response, Response)
                self._take(response)
                del response  # its bytes go when the application has dropped its batches
                if self.is_finished:
                    return
                while self._buffered_bytes >= self._settings.budget_bytes:
                    self._has_room.clear()
                    await self._has_room.wait()
        finally:
            call.cancel()
        if self._settings.follow:
            raise unreachable("the broker ended the stream")
        self.is_finished = True

    def _request(self) -> pb.FetchRequest:
        most = min(MOST_FETCH_BYTES, max(LEAST_FETCH_BYTES, self._settings.budget_bytes))
        request = pb.FetchRequest(
            topic=self._topic.topic,
            topic_id=self._topic.topic_id,
            partition=self.partition,
            follow=self._settings.follow,
            max_bytes=most,
            max_response_bytes=self._connection.max_response_bytes,
        )
        if self._stop != NO_STOP:
            request.stop_offset = self._stop
        if self._is_placed or isinstance(self._start, int):
            request.offset = self._ahead
        elif isinstance(self._start, Timestamp):
            request.timestamp_ms = self._start.timestamp_ms
        elif self._start is Edge.LATEST:
            request.position = pb.START_POSITION_LATEST
        else:
            request.position = pb.START_POSITION_EARLIEST
        return request

    def _take(self, response: Response) -> None:
        if self._attempt:
            self._attempt = 0
            log.info("reader has the broker again", partition=self.partition, offset=self._ahead)
        if not self._is_placed:
            self._place(response.start_offset)
            if not self._settings.follow:
                self._stop = min(self._stop, response.high_watermark)
        for stored in response.batches:
            try:
                check_records(stored)
                self._take_batch(stored)
            except DataLossError as error:
                self._pass_damage(error)
        self._ahead = max(self._ahead, response.next_offset)
        self.is_finished = self._ahead >= self._stop

    def _place(self, offset: int) -> None:
        self._is_placed = True
        self._ahead = offset
        self.position = offset
        self.has_started.set()

    def _take_batch(self, stored: Batch) -> None:
        batch = RecordBatch(stored, self.partition, self._ahead, self._stop)
        if batch.first_offset < batch.end_offset:
            self._ahead = batch.end_offset
            self._buffered_bytes += batch.size_bytes
            self._inbox.put(self, batch)

    def _reset(self, error: OffsetOutOfRangeError) -> None:
        policy, bounds = self._settings.out_of_range, error.details
        if (
            policy is OutOfRange.ERROR
            or not {"log_start_offset", "high_watermark"} <= bounds.keys()
        ):
            raise error
        is_earliest = policy is OutOfRange.EARLIEST
        to = int(bounds["log_start_offset" if is_earliest else "high_watermark"])
        reset = Reset(self.partition, self._ahead, to, max(0, to - self._ahead))
        log.warning("reader reset: offset out of range", topic=self._topic.topic, **reset._asdict())
        self._inbox.note_reset(reset)
        self._place(to)
        self.is_finished = to >= self._stop

    def _pass_damage(self, error: DataLossError) -> None:
        if not self._settings.skip_damage or "next_offset" not in error.details:
            raise error
        if not self._is_placed:  # the damage is where it starts, wherever that is
            self._place(int(error.details.get("offset", self._ahead)))
        to = int(error.details["next_offset"])
        if to <= self._ahead:
            raise error
        count = max(0, min(to, self._stop) - self._ahead)
        log.warning(
            "reader skipped damaged records", topic=self._topic.topic, partition=self.partition,
            offset=self._ahead, next_offset=to, skipped=count,
        )  # fmt: skip
        self._inbox.note_skipped(count)
        self._ahead = to
        self.is_finished = self._ahead >= self._stop

    async def _wait(self, error: LogbrokerError) -> None:
        if not self._is_placed and error.reason == "UNREACHABLE" and self._attempt:
            raise error
        if self._attempt == 0:
            log.warning(
                "reader lost the broker, goes on when it is back", topic=self._topic.topic,
                partition=self.partition, offset=self._ahead, reason=error.reason,
            )  # fmt: skip
        self._attempt += 1
        delay_ms = wait_ms(error, self._attempt, self._connection.backoff, self._connection.random)
        await self._clock.wait_until(self._clock.monotonic_ms() + delay_ms)
