"""What the broker asks of storage: six verbs of a partition, four of an engine.

For every partition:  0 <= log_start_offset <= high_watermark <= next_offset
None of the three ever goes back, whatever a crash left behind.
"""

from asyncio import Future
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from logbroker.config import LogConfig
from logbroker.record.batch import Batch
from logbroker.record.partition_id import PartitionId
from logbroker.storage.failures import Failures

NeededFrom = Callable[[PartitionId], int | None]
"""Tells from which offset on a partition is still needed; None: from none."""


class Bounds(NamedTuple):
    """The three offsets of a partition."""

    log_start_offset: int
    """The first offset that can be read."""
    high_watermark: int
    """One past the last that can be read."""
    next_offset: int
    """What the next record gets."""


class Run(NamedTuple):
    """Whole batches, one after the other."""

    batches: bytes | memoryview
    """As the file has them and FetchResponse takes them. Its bytes never change; while it is
    held, the buffer that it is a view of cannot be used again."""
    next_offset: int
    """Where to read on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStats:
    """What one partition's log tells of itself."""

    size_bytes: int = 0
    segment_count: int = 0
    damaged: tuple[tuple[int, int], ...] = ()
    """Offsets lost to damage with good batches behind it, as half-open ranges."""
    torn_bytes: int = 0
    """Cut from the tail when the log was opened."""
    failure: str = ""
    """Why it takes no writes: the reason of the error, or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStats:
    """What the engine tells of itself."""

    open_file_count: int = 0
    disk_free_bytes: int = 0
    damaged_range_count: int = 0
    damaged_partitions: tuple[str, ...] = ()
    """Where these are, as `topic/partition`."""
    scrubbed_segment_count: int = 0
    """Sealed segments checked in the background since the start..."""
    scrubbed_bytes: int = 0
    """... and what was read for it."""
    scrub_finished_time_ms: int = 0
    """When the last whole pass over all of them ended; 0: never."""
    scrub_failure_count: int = 0
    """Of segments that could not be read."""


class PartitionLog(Protocol):
    """One partition."""

    def append(self, batch: Batch, *, expected_offset: int | None = None) -> Future[Batch]:
        """Takes the batch now; the future gives it as stamped, once it is durable.

        As durable as the log's config says, that is; it is done already where nothing is
        to be waited for. Offsets follow the order of the calls,
        awaited or not. Raises at once, and nothing is written: PreconditionError
        (UNEXPECTED_OFFSET) if `expected_offset` is given and is not the next offset;
        ExhaustedError (DISK_FULL); UnavailableError (STORAGE_FAILED), also from the
        future, where the outcome is unknown.
        """

    async def read(self, offset: int, max_bytes: int) -> Run:
        """Returns whole batches, from the one that holds `offset` or follows the gap there.

        At least one if there is any, however large; none at the high watermark.
        OffsetOutOfRangeError outside the bounds; DataLossError, with details `offset` and
        `next_offset`, where bytes are damaged. Good batches before damage come first.
        """

    async def find(self, timestamp_ms: int) -> int | None:
        """Returns the first offset, in log order, of a record that late; None if there is none."""

    async def trim(self, offset: int) -> None:
        """Raises the log start offset to `offset`, durably. What lies before it may vanish.

        OffsetOutOfRangeError beyond the high watermark; below the log start offset nothing
        changes.
        """

    def wait_beyond(self, offset: int) -> Future[None]:
        """Returns a future, done once the high watermark is greater than `offset`.

        It fails with NotFoundError (PARTITION_NOT_FOUND) when the partition is deleted,
        UnavailableError (SHUTTING_DOWN) when its engine closes, before or meanwhile.
        """

    def call_beyond(self, offset: int, callback: Callable[[], None]) -> None:
        """Calls back, once, when the high watermark is greater than `offset`, or never will be.

        At once where that is so; else in the middle of an `append` or a flush, for which it
        must be brief, change nothing of the log, and raise nothing.
        """

    def bounds(self) -> Bounds:
        """Returns the three offsets, of one moment."""

    def stats(self) -> LogStats:
        """Returns what the log tells of itself."""


class Engine(Protocol):
    """What keeps partitions."""

    failures: Failures
    """Those that take no more writes."""

    async def open(self, partition: PartitionId, config: LogConfig) -> PartitionLog:
        """Returns the partition's log, made if need be. Opened again, it takes the new config."""

    def partitions(self) -> Sequence[PartitionId]:
        """Returns what is there, opened or not, also of topics nobody remembers."""

    def keep_needed(self, needed_from: NeededFrom | None) -> None:
        """Makes retention ask from which offset on a partition is still needed.

        None: that is not known yet, and nothing is removed until it is. It asks before it removes
        anything, and keeps that longer: until it is twice as old, or there is twice as much of it,
        as the config allows. Nothing else changes: `trim` does not ask. An engine without retention
        of its own does nothing here.
        """

    async def delete(self, partition: PartitionId) -> None:
        """Removes the partition and its bytes, durably; nothing if there is none."""

    async def close(self) -> None:
        """Makes all durable and lets go. What waits is woken with UnavailableError."""

    def stats(self) -> EngineStats:
        """Returns what the engine tells of itself."""
