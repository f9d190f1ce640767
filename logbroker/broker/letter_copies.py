"""Copies of what was given up, as they are appended to a dead-letter topic: in bounded parts."""

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

import structlog

from logbroker.broker.partitions import Partition
from logbroker.broker.pending_letters import Letter
from logbroker.errors import DataLossError, OffsetOutOfRangeError
from logbroker.group.dead_letter import DeadLetter, with_dead_letter
from logbroker.group.events import LedgerId
from logbroker.group.group import TopicRead
from logbroker.group.ledger_events import GivenUp
from logbroker.limits import FETCH_BYTES
from logbroker.record.batch import Batch
from logbroker.record.columns import Columns, decode_records
from logbroker.record.record import Record

OWN_BYTES = 500
"""About what our headers take, but for the reason."""

log = structlog.get_logger()


class Row(NamedTuple):
    """A dead letter to write."""

    sequence: int
    event: GivenUp
    record: Record
    append_time_ms: int
    """In the source."""

    @property
    def cost(self) -> int:
        """Returns about how many bytes it takes."""
        record = self.record
        size = len(record.key or b"") + len(record.value or b"") + len(self.event.reason)
        size += sum(len(one.name) + len(one.value or b"") for one in record.headers)
        return size + OWN_BYTES


async def parts(
    letters: Sequence[Letter], source: Partition, written: int
) -> AsyncIterator[list[Row]]:
    """Yields what is to be written from this sequence on, as far as it can be read.

    A part has at most FETCH_BYTES, or is one record, and no gap in its sequences.
    """
    part: list[Row] = []
    size, records = 0, _Source(source, letters[0].ledger_id)
    for letter in letters:
        if letter.is_durable and letter.is_durable.exception():
            continue  # the journal failed: nobody was told that it is settled
        sequence = letter.sequence
        for first, end in letter.event.ranges:
            shift = sequence - first  # makes sequences of offsets
            async for record, append_time_ms in records.read(max(first, written - shift), end):
                row = Row(record.offset + shift, letter.event, record, append_time_ms)
                size += row.cost
                if part and (size > FETCH_BYTES or part[-1].sequence + 1 != row.sequence):
                    yield part
                    part, size = [], row.cost
                part.append(row)
            sequence += end - first
    if part:
        yield part


def columns_of(part: Sequence[Row], topic: TopicRead, ledger_id: LedgerId) -> Columns:
    """Returns the records with our headers, which tell of the source."""
    headers = []
    for index, row in enumerate(part):
        letter = DeadLetter(
            topic.topic,
            topic.topic_id,
            ledger_id.partition,
            row.record.offset,
            row.append_time_ms,
            ledger_id.group,
            row.event.failures,
            row.event.first_ms,
            row.event.at_ms,
            row.event.reason,
        )
        headers.append((index, with_dead_letter(row.record.headers, letter)))
    keys = [row.record.key for row in part]
    return Columns(
        [row.record.value for row in part],
        keys if any(key is not None for key in keys) else None,
        [row.record.timestamp_ms for row in part],
        headers,
    )


class _Source:
    """Reads records of a partition: what lies side by side is read, and taken apart, once."""

    def __init__(self, partition: Partition, ledger_id: LedgerId) -> None:
        self._partition = partition
        self._log = log.bind(ledger=ledger_id)
        self._batches: list[Batch] = []
        self._records: list[Record] = []
        self._batch: Batch | None = None
        """Whose records these are."""

    async def read(self, first: int, end: int) -> AsyncIterator[tuple[Record, int]]:
        """Yields records with their append times, but for what is lost."""
        offset = first
        while offset < end:
            batch = self._find(offset)
            if batch is None:
                offset = await self._load(offset, end)
                continue
            if batch is not self._batch:
                self._batch, self._records = batch, decode_records(batch)
            for record in self._records:
                if offset <= record.offset < end:
                    yield record, batch.header.append_time_ms
            offset = batch.header.next_offset

    def _find(self, offset: int) -> Batch | None:
        """Returns the batch of this offset, or the next one behind it, if it was read."""
        if not self._batches or not self._batches[0].header.base_offset <= offset:
            return None
        return next((one for one in self._batches if offset < one.header.next_offset), None)

    async def _load(self, offset: int, end: int) -> int:
        """Reads on from there, and returns where there is something, or more to try."""
        self._batches = []
        partition = self._partition
        try:
            run = await partition.log.read(offset, FETCH_BYTES)
        except DataLossError as error:
            next_offset = int(error.details["next_offset"])
            self._log.error("dead letters lost to damage", offset=offset, next_offset=next_offset)
            return next_offset
        except OffsetOutOfRangeError:
            self._log.error("dead letters lost to retention", offset=offset, end=end)
            return max(offset + 1, min(end, partition.log.bounds().log_start_offset))
        if not run.batches:
            self._log.error("dead letters lost with the end of their log", offset=offset, end=end)
            return end
        at = 0
        while at < len(run.batches):
            self._batches.append(Batch.decode(run.batches, partition.seed, at))
            at += self._batches[-1].header.size_bytes
        found = [one for one in self._batches if offset < one.header.next_offset]
        return max(offset, found[0].header.base_offset) if found else run.next_offset
