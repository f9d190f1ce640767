"""A broker's own state as a log: events on an internal partition.

An event is the value of a record; events written together are one batch, so all of them
are there or none. A snapshot is one batch too: its records have the key `snapshot`, the
first holds nothing, the others the events that make an empty state equal to this one. What
lies before a snapshot is trimmed.
"""

import asyncio
from asyncio import Future
from collections.abc import Sequence

import structlog

from logbroker.clock import Clock
from logbroker.config import Durability, LogConfig
from logbroker.errors import DataLossError, LogbrokerError
from logbroker.limits import BATCH_BYTES_CEILING
from logbroker.record.batch import Batch
from logbroker.record.columns import Columns, decode_records, encode_batch
from logbroker.record.partition_id import PartitionId
from logbroker.storage.engine import Engine, PartitionLog

SNAPSHOT_KEY = b"snapshot"
CONFIG = LogConfig(
    durability=Durability.SYNCED,
    retention_ms=0,
    retention_bytes=0,
    segment_bytes=16 << 20,
)
READ_BYTES = 4 << 20
SNAPSHOT_EVERY = 1_000
"""The fewest events between snapshots."""

SNAPSHOT_BYTES = BATCH_BYTES_CEILING
"""A larger snapshot is not made; the journal grows instead."""

log = structlog.get_logger()


class Journal:
    """Appends events; replays them."""

    def __init__(self, name: str, partition_log: PartitionLog, clock: Clock) -> None:
        self._name = name
        self._log = partition_log
        self._clock = clock
        self._seed = PartitionId(name, name, 0).seed
        self._since_snapshot = 0
        self._snapshot_size = 0
        self.damaged: list[tuple[int, int]] = []
        """Ranges of events that replay found damaged, and passed over."""
        self.has_failed = asyncio.Event()
        """Its disk has failed: it takes nothing more, and what waited is not known to be kept."""

    @classmethod
    async def open(cls, engine: Engine, name: str, clock: Clock) -> "Journal":
        """Returns the journal on the internal topic `name`, made if need be."""
        partition_log = await engine.open(PartitionId(name, name, 0), CONFIG)
        return cls(name, partition_log, clock)

    def append(self, events: Sequence[bytes]) -> "Future[Batch]":
        """Takes the events now, all or none of them; the future is done once they are durable.

        Raises what `PartitionLog.append` raises, at once or from the future.
        """
        batch = encode_batch(Columns(events), now_ms=self._clock.now_ms())
        try:
            appended = self._log.append(batch)
        except LogbrokerError:
            self._look()
            raise
        appended.add_done_callback(self._look)
        self._since_snapshot += len(events)
        return appended

    async def replay(self) -> list[bytes]:
        """Returns the events since the last snapshot, its own first.

        Damaged ranges are logged, kept in `damaged`, and passed over.
        """
        events: list[bytes] = []
        self._since_snapshot = self._snapshot_size = 0
        self.damaged.clear()
        bounds = self._log.bounds()
        offset = bounds.log_start_offset
        while offset < bounds.high_watermark:
            try:
                run = await self._log.read(offset, READ_BYTES)
            except DataLossError as error:
                next_offset = int(error.details["next_offset"])
                self.damaged.append((offset, next_offset))
                log.error("journal damaged", journal=self._name, offset=offset, next=next_offset)
                offset = next_offset
                continue
            at = 0
            while at < len(run.batches):
                batch = Batch.decode(run.batches, self._seed, at)
                at += batch.header.size_bytes
                if take_in(batch, events):
                    self._since_snapshot, self._snapshot_size = 0, len(events) + 1
                else:
                    self._since_snapshot += batch.header.record_count
            offset = run.next_offset
        return events

    @property
    def wants_snapshot(self) -> bool:
        """Whether there are so many events that a snapshot would shorten the next replay."""
        return self._since_snapshot > max(SNAPSHOT_EVERY, 2 * self._snapshot_size)

    def _look(self, _: object = None) -> None:
        """Takes note of a failed disk, before whoever waited for it does."""
        if self._log.stats().failure:
            self.has_failed.set()

    async def snapshot(self, events: Sequence[bytes]) -> None:
        """Writes the events as a snapshot, then trims what lies before it."""
        values = [b"", *events]
        if sum(map(len, values)) > SNAPSHOT_BYTES:
            log.warning("snapshot too large, journal kept", journal=self._name, events=len(events))
            self._since_snapshot, self._snapshot_size = 0, len(values)
            return
        columns = Columns(values, [SNAPSHOT_KEY] * len(values))
        appended = self._log.append(encode_batch(columns, now_ms=self._clock.now_ms()))
        self._since_snapshot, self._snapshot_size = 0, len(values)
        try:
            await self._log.trim((await appended).header.base_offset)
        finally:
            self._look()


def take_in(batch: Batch, events: list[bytes]) -> bool:
    """Replays one batch on the events before it; returns whether it is a snapshot of them all."""
    records = decode_records(batch)
    is_snapshot = records[0].key == SNAPSHOT_KEY
    if is_snapshot:
        events.clear()
    events += [record.value or b"" for record in records[is_snapshot:]]
    return is_snapshot
