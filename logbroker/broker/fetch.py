"""Reading a partition: a byte budget; read or wait; stop conditions, heartbeats."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from logbroker.broker.partitions import Partition, Partitions
from logbroker.broker.response_room import ResponseRoom, Taken
from logbroker.clock import Clock
from logbroker.config import LimitsConfig
from logbroker.errors import InvalidError, OffsetOutOfRangeError
from logbroker.limits import FETCH_BYTES, RESPONSE_BYTES, RESPONSE_FIELDS_BYTES
from logbroker.storage.engine import Bounds, PartitionLog, Run
from logbroker.topic.catalog import TopicCatalog

FIRST_BYTES = 64 << 10
"""A stream's first response; each is twice the one before, up to the budget, while the
client keeps up. So a client that does not read costs the broker little memory."""

SLOW_MS = 1_000
"""A response that took this long to go out was to a client that does not keep up."""


class Edge(Enum):
    """An end of a partition."""

    EARLIEST = auto()
    LATEST = auto()


class At(NamedTuple):
    """A moment, in ms since 1970."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSpec:
    """What to read."""

    topic: str
    topic_id: str = ""
    partition: int = 0
    start: int | Edge | At = Edge.EARLIEST
    stop_offset: int | None = None
    stop_timestamp_ms: int | None = None
    follow: bool = False
    max_bytes: int = 0
    """Of batches in one response; 0: FETCH_BYTES."""
    max_response_bytes: int = 0
    """What the client can receive at once; 0: RESPONSE_BYTES."""

    def __post_init__(self) -> None:
        for name in ("stop_offset", "max_bytes", "max_response_bytes"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise InvalidError(
                    "INVALID_ARGUMENT", f"{name} must be at least 0, not {value}", **{name: value}
                )
        if 0 < self.max_response_bytes < 2 * RESPONSE_FIELDS_BYTES:
            message = f"max_response_bytes must be at least {2 * RESPONSE_FIELDS_BYTES}"
            raise InvalidError("INVALID_ARGUMENT", message, given=self.max_response_bytes)
        if isinstance(self.start, int) and self.start < 0:
            message = f"offset must be at least 0, not {self.start}"
            raise InvalidError("INVALID_OFFSET", message, offset=self.start)


class Fetched(NamedTuple):
    """One response; without batches it only tells how things are."""

    batches: bytes | memoryview
    high_watermark: int
    log_start_offset: int
    next_offset: int
    start_offset: int


class Fetch:
    """Reads partitions for whoever asks."""

    def __init__(
        self, catalog: TopicCatalog, partitions: Partitions, limits: LimitsConfig, clock: Clock
    ) -> None:
        self._catalog = catalog
        self._partitions = partitions
        self._heartbeat_ms = limits.idle_heartbeat_ms
        self._clock = clock
        self.fetched_bytes = 0

    def room(self) -> ResponseRoom:
        """Returns room for the responses to one connection."""
        return ResponseRoom(self._clock)

    async def fetch(
        self, spec: FetchSpec, room: ResponseRoom | None = None
    ) -> AsyncGenerator[Fetched]:
        """Yields responses until a stop condition, or without end.

        Streams that share a `room` wait for one another when much is under way. Raises what
        `TopicCatalog.partition` and `PartitionLog.read` raise, and InvalidError
        (RESPONSE_TOO_LARGE) for a batch the client says it cannot receive.
        """
        partition = self._partition(spec.topic, spec.topic_id, spec.partition)
        log = partition.log
        offset = start = await self._start(partition, spec.start)
        stop = await self._stop(partition, spec)
        cap = (spec.max_response_bytes or RESPONSE_BYTES) - RESPONSE_FIELDS_BYTES
        budget = min(spec.max_bytes or FETCH_BYTES, RESPONSE_BYTES - RESPONSE_FIELDS_BYTES, cap)
        size, expected, is_due, is_told = min(FIRST_BYTES, budget), FETCH_BYTES, True, False
        room = room or self.room()
        while True:
            bounds = log.bounds()
            if offset < bounds.high_watermark and (stop is None or offset < stop):
                try:
                    run, taken = await _read(log, offset, size, max(size, expected), room)
                except OffsetOutOfRangeError:
                    if is_told or isinstance(spec.start, int):
                        raise
                    offset = start = await self._start(partition, spec.start)  # it has moved
                    continue
                is_told = True
                expected = len(run.batches)
                try:
                    if len(run.batches) > cap:
                        raise _too_large(len(run.batches), cap, offset)
                    offset = run.next_offset
                    self.fetched_bytes += len(run.batches)
                    begun_ms = self._clock.monotonic_ms()
                    found = [_fetched(run.batches, log.bounds(), offset, start)]
                    del run  # only whoever takes the response holds its bytes
                    yield found.pop()
                finally:
                    taken.give_back()
                room.response_went_out()
                is_slow = self._clock.monotonic_ms() - begun_ms > SLOW_MS
                size = min(FIRST_BYTES if is_slow else size * 2, budget)
                is_due = False
                continue
            if is_due:
                is_told = True
                yield _fetched(b"", bounds, offset, start)
            if stop is not None and offset >= stop:
                return
            is_due = not await self._wait_more(partition, offset)

    async def find_offset(
        self, topic: str, topic_id: str, partition: int, timestamp_ms: int
    ) -> int | None:
        """Returns the first offset, in log order, of a record that late; None if there is none."""
        return await self._partition(topic, topic_id, partition).log.find(timestamp_ms)

    def _partition(self, topic: str, topic_id: str, partition: int) -> Partition:
        _, partition_id = self._catalog.partition(topic, topic_id, partition)
        return self._partitions.get(partition_id)

    async def _start(self, partition: Partition, start: int | Edge | At) -> int:
        bounds = partition.log.bounds()
        match start:
            case Edge.EARLIEST:
                return bounds.log_start_offset
            case Edge.LATEST:
                return bounds.high_watermark
            case At(timestamp_ms):
                found = await partition.log.find(timestamp_ms)
                return bounds.high_watermark if found is None else found
            case int(offset):
                if not bounds.log_start_offset <= offset <= bounds.high_watermark:
                    raise out_of_range(offset, bounds)
                return offset
        raise AssertionError(start)

    async def _stop(self, partition: Partition, spec: FetchSpec) -> int | None:
        """Returns the offset to end before; None to go on without end."""
        stops = [] if spec.stop_offset is None else [spec.stop_offset]
        if spec.stop_timestamp_ms is not None:
            found = await partition.log.find(spec.stop_timestamp_ms)
            stops += [] if found is None else [found]
        if not spec.follow:
            stops.append(partition.log.bounds().high_watermark)
        return min(stops, default=None)

    async def _wait_more(self, partition: Partition, offset: int) -> bool:
        """Returns True once there is more to read, False when it is time for a heartbeat."""
        try:
            await self._clock.wait_for(partition.log.wait_beyond(offset), self._heartbeat_ms)
        except TimeoutError:
            return False
        return True


async def _read(
    log: PartitionLog, offset: int, max_bytes: int, expected: int, room: ResponseRoom
) -> tuple[Run, Taken]:
    """Reads once there is room for `expected` bytes; again, if there are more, once there is."""
    taken = await room.wait_room(expected)
    try:
        run = await log.read(offset, max_bytes)
        while not taken.resize(size := len(run.batches)):
            taken.give_back()
            del run  # what waits for room must not take any
            taken = await room.wait_room(size)
            run = await log.read(offset, max_bytes)
    except BaseException:
        taken.give_back()
        raise
    return run, taken


def _fetched(
    batches: bytes | memoryview, bounds: Bounds, next_offset: int, start_offset: int
) -> Fetched:
    mark, log_start = bounds.high_watermark, bounds.log_start_offset
    return Fetched(batches, mark, log_start, next_offset, start_offset)


def out_of_range(offset: int, bounds: Bounds) -> OffsetOutOfRangeError:
    """Returns the error for an offset outside what can be read."""
    start, end = bounds.log_start_offset, bounds.high_watermark
    message = f"offset {offset} is out of range: {start} to {end} can be read"
    return OffsetOutOfRangeError(
        "OFFSET_OUT_OF_RANGE", message, offset=offset, log_start_offset=start, high_watermark=end
    )


def _too_large(size: int, cap: int, offset: int) -> InvalidError:
    message = (
        f"the batch at offset {offset} has {size} bytes; this client says it can receive {cap} "
        "(max_response_bytes, less 1024)"
    )
    return InvalidError("RESPONSE_TOO_LARGE", message, offset=offset, size=size, cap=cap)
