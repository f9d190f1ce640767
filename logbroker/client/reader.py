"""Reader: a topic's records in order, from a place on, with or without an end.

Partitions are read ahead side by side, and handed out batch by batch in the order in
which they came: no partition waits for another. Within a partition order is kept.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from logbroker.client.batch_iterator import BatchIterator
from logbroker.client.connection import Connection
from logbroker.client.logs import ClientLog
from logbroker.client.partition_stream import (
    Edge,
    OutOfRange,
    PartitionStream,
    Reset,
    Start,
    StreamSettings,
    Timestamp,
)
from logbroker.client.record_batch import RecordBatch, RecordCursor
from logbroker.client.topics import REFRESH_MS, get_topic
from logbroker.client.waiters import Waiters
from logbroker.errors import (
    DataLossError,
    InvalidError,
    LogbrokerError,
    NotFoundError,
    PreconditionError,
)
from logbroker.record.record import Record
from logbroker.topic.topic import Topic
from logbroker.v1 import fetch_service_pb2 as pb

log = ClientLog(__name__)

AnyStart = str | int | Timestamp | Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderSettings:
    """What a reader reads, and how."""

    partition: int | Sequence[int] | None = None
    """One, some, or (None) all, those that the topic grows by while it is followed included."""
    start: AnyStart = "earliest"
    """`earliest`, `latest`, an offset, a Timestamp, or an offset for each partition."""
    stop_offset: int | None = None
    """Ends before this offset, in each partition."""
    stop_timestamp_ms: int | None = None
    """Ends before the first record that late, as far as there is one at the beginning."""
    follow: bool = False
    """Whether to wait for new records at the end; else it ends at what is the end now."""
    skip_damage: bool = False
    """Whether to go on behind damaged records, counting them, instead of DataLossError."""
    out_of_range: str = "earliest"
    """At an offset that cannot be read: `earliest`, `latest`, or `error`."""
    prefetch_bytes: int = 8 << 20
    """About how much is read ahead, all partitions together."""

    def __post_init__(self) -> None:
        if self.out_of_range not in list(OutOfRange):
            message = f"out_of_range must be earliest, latest or error, not {self.out_of_range!r}"
            raise InvalidError("INVALID_ARGUMENT", message, field="out_of_range")
        if isinstance(self.start, str) and self.start not in list(Edge):
            rule = "must be earliest, latest, an offset, a Timestamp or a mapping of offsets"
            raise InvalidError(
                "INVALID_ARGUMENT", f"start {rule}, not {self.start!r}", field="start"
            )
        offsets = self.start.values() if isinstance(self.start, Mapping) else [self.start]
        for offset in (*offsets, self.stop_offset):
            if isinstance(offset, int) and offset < 0:
                message = f"an offset must be at least 0, not {offset}"
                raise InvalidError("INVALID_OFFSET", message, offset=offset)

    def start_of(self, partition: int) -> Start:
        """Returns where one partition starts."""
        match self.start:
            case Timestamp() | int():
                return self.start
            case str():
                return Edge(self.start)
            case _:
                return self.start.get(partition, Edge.EARLIEST)


class Reader:
    """Reads a topic; iterate over it. Made by `Client.reader`.

    Entering it as a context manager fixes where it starts: what is produced after that is
    read, also from `latest`. Iterating raises NotFoundError when the topic is deleted;
    DataLossError, after the good records before it, at damaged ones: that ends the
    iteration, and a new one goes on behind the damage.
    """

    def __init__(self, connection: Connection, topic: str, settings: ReaderSettings) -> None:
        self.topic = topic
        self.resets: list[Reset] = []
        """Where offsets were out of range, and reading went on elsewhere."""
        self.skipped_count = 0
        """Records left out for damage."""
        self._connection = connection
        self._settings = settings
        self._metadata: Topic | None = None
        self._streams: dict[int, PartitionStream] = {}
        self._stops: dict[int, int | None] = {}
        self._inbox: deque[tuple[PartitionStream, RecordBatch | BaseException]] = deque()
        self._waiters = Waiters()
        self._opening: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._is_open = False
        self._is_over = False
        self._is_closed = False
        self._cursor = RecordCursor()

    async def open(self) -> Self:
        """Returns once the place to start is known in every partition. Raises why it is not."""
        self._check_open()
        if not self._is_open:
            self._opening = self._opening or asyncio.create_task(self._open())
            try:
                await asyncio.shield(self._opening)
            finally:
                if self._opening is not None and self._opening.done():
                    self._opening = None
        return self

    async def close(self) -> None:
        """Ends reading."""
        self._is_closed = True
        for task in (self._opening, self._watching):
            if task:
                task.cancel()
        for stream in self._streams.values():
            stream.end()
        self._inbox.clear()
        self._cursor.drop()
        self._waiters.wake()

    def position(self, partition: int) -> int:
        """Returns the next offset of this partition to be handed out.

        NotFoundError if it is not read here; InvalidError before the reader is open.
        """
        if (offset := self._cursor.offset(partition)) is not None:
            return offset
        stream = self._stream(partition)
        if stream.position is None:
            message = "open the reader first: where it starts is not known yet"
            raise InvalidError("INVALID_ARGUMENT", message)
        return stream.position

    def positions(self) -> dict[int, int]:
        """Returns the next offset of each partition: what `start` takes to go on from here."""
        return {partition: self.position(partition) for partition in sorted(self._streams)}

    async def seek(self, partition: int, offset: int) -> None:
        """Goes on at this offset of the partition, wherever it was."""
        await self.open()
        self._stream(partition)
        if self._cursor.offset(partition) is not None:
            self._cursor.drop()
        self._begin(partition, offset)
        self._is_over = False

    def batches(self) -> BatchIterator[RecordBatch]:
        """Returns an iterator over whole batches, decoded when asked for: the fastest way."""
        self._go_on()
        return BatchIterator(self.next_batch)

    def __aiter__(self) -> Self:
        self._go_on()
        return self

    async def __anext__(self) -> Record:
        # A cancelled wait loses nothing: what was fetched stays here until it is handed out.
        for record in self._cursor.records:
            return record
        return await self._next_record()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def next_batch(self) -> RecordBatch | None:
        """Returns the next batch, or what is left of the one being read; None at the end."""
        if rest := self._cursor.drop():
            return rest
        return await self._next_batch()

    def pass_damage(self, batch: RecordBatch, error: DataLossError) -> None:
        """Skips a batch that turned out not to be readable, or raises and ends the iteration."""
        if not self._settings.skip_damage:
            self._is_over = True
            raise error
        count = batch.end_offset - batch.first_offset
        log.warning("reader skipped damaged records", topic=self.topic, skipped=count)
        self.skipped_count += count

    def put(self, stream: PartitionStream, item: RecordBatch | BaseException | None) -> None:
        """Takes what a stream has read, and wakes who waits for it."""
        if item is not None and self._streams.get(stream.partition) is stream:
            self._inbox.append((stream, item))
        self._waiters.wake()

    def note_reset(self, reset: Reset) -> None:
        """Takes note of a stream's reset."""
        self.resets.append(reset)

    def note_skipped(self, count: int) -> None:
        """Takes note of records that a stream skipped."""
        self.skipped_count += count

    async def _next_record(self) -> Record:
        while (batch := await self._next_batch()) is not None:
            try:
                self._cursor.begin(batch)
            except DataLossError as error:
                self.pass_damage(batch, error)
                continue
            for record in self._cursor.records:
                return record
        raise StopAsyncIteration

    async def _next_batch(self) -> RecordBatch | None:
        self._check_open()
        if not self._is_open:
            await self.open()
        while not self._is_over:
            if self._inbox:
                stream, item = self._inbox.popleft()
                if isinstance(item, RecordBatch):
                    stream.taken(item)
                    return item
                self._is_over = True
                raise item.again() if isinstance(item, LogbrokerError) else item
            if all(stream.is_finished for stream in self._streams.values()):
                return None
            await self._waiters.wait()
            self._check_open()
        return None

    async def _open(self) -> None:
        topic = await get_topic(self._connection, self.topic)
        match self._settings.partition:
            case None:
                chosen: Sequence[int] = range(topic.partition_count)
            case int(partition):
                chosen = [partition]
            case partitions:
                chosen = list(dict.fromkeys(partitions))
        for partition in chosen:
            if not 0 <= partition < topic.partition_count:
                message = f"{self.topic} has no partition {partition}"
                raise NotFoundError(
                    "PARTITION_NOT_FOUND", message, topic=self.topic, partition=partition
                )
        self._metadata = topic
        stops = await asyncio.gather(*(self._find_stop(partition) for partition in chosen))
        self._stops = dict(zip(chosen, stops, strict=True))
        for partition in chosen:
            self._begin(partition, self._settings.start_of(partition))
        for stream in list(self._streams.values()):
            await stream.has_started.wait()
            if stream.failure is not None and not isinstance(stream.failure, DataLossError):
                failure = stream.failure
                for other in self._streams.values():
                    other.end()
                self._streams.clear()
                self._inbox.clear()
                raise failure.again()
        self._is_open = True
        if self._settings.follow and self._settings.partition is None:
            self._watching = asyncio.create_task(self._watch_growth())

    async def _find_stop(self, partition: int) -> int | None:
        """Returns where to stop in a partition: the lower of the two stop conditions."""
        assert self._metadata is not None
        stop, timestamp_ms = self._settings.stop_offset, self._settings.stop_timestamp_ms
        if timestamp_ms is None:
            return stop
        request = pb.FindOffsetRequest(
            topic=self.topic,
            topic_id=self._metadata.topic_id,
            partition=partition,
            timestamp_ms=timestamp_ms,
        )
        found = await self._connection.call(
            "FetchService/FindOffset", request, pb.FindOffsetResponse
        )
        if not found.HasField("offset"):
            return stop
        return found.offset if stop is None else min(stop, found.offset)

    def _begin(self, partition: int, start: Start) -> None:
        """Starts a stream for the partition; one that was there is forgotten with all it read."""
        assert self._metadata is not None
        if partition in self._streams:
            self._streams.pop(partition).end()
            kept = [entry for entry in self._inbox if entry[0].partition != partition]
            self._inbox = deque(kept)
        settings = StreamSettings(
            follow=self._settings.follow,
            skip_damage=self._settings.skip_damage,
            out_of_range=OutOfRange(self._settings.out_of_range),
            budget_bytes=max(1, self._settings.prefetch_bytes // max(1, len(self._stops))),
        )
        stream = self._streams[partition] = PartitionStream(
            self._connection,
            self._metadata,
            partition,
            start,
            self._stops.get(partition, self._settings.stop_offset),
            settings,
            self,
        )
        stream.begin()

    async def _watch_growth(self) -> None:
        """Reads partitions that the topic grows by, from their beginning."""
        assert self._metadata is not None
        clock = self._connection.clock
        while True:
            await clock.wait_until(clock.monotonic_ms() + REFRESH_MS)
            try:
                grown = await get_topic(self._connection, self.topic, self._metadata.topic_id)
            except LogbrokerError as error:  # the streams meet it too, and tell
                log.info("topic not refreshed", topic=self.topic, reason=error.reason)
                continue
            self._metadata = grown
            for partition in range(grown.partition_count):
                if partition not in self._streams:
                    log.info("reader takes on a partition", topic=self.topic, partition=partition)
                    self._begin(partition, Edge.EARLIEST)

    def _go_on(self) -> None:
        """Begins a new iteration: after an error, behind it."""
        if not self._is_over:
            return
        self._is_over = False
        for partition, stream in list(self._streams.items()):
            if stream.failure is not None:
                offset = stream.resume_offset()
                start = self._settings.start_of(partition) if offset is None else offset
                waiting = [item for owner, item in self._inbox if owner is stream]
                if not waiting:
                    self._begin(partition, start)

    def _stream(self, partition: int) -> PartitionStream:
        if partition not in self._streams:
            message = f"partition {partition} of {self.topic} is not read here"
            raise NotFoundError("PARTITION_NOT_FOUND", message, partition=partition)
        return self._streams[partition]

    def _check_open(self) -> None:
        if self._is_closed:
            raise PreconditionError("CLIENT_CLOSED", "this reader has been closed")
        self._connection.check_open()
