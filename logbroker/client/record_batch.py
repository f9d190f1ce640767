"""A batch as it was read: its columns and records are decoded when asked for.

    first_offset <= every offset it hands out < end_offset

Stored batches travel whole. What lies before the start of a reader, or behind its stop,
is trimmed here.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from operator import length_hint
from typing import Any

from crc32c import crc32c

from logbroker.record.batch import Batch
from logbroker.record.columns import Columns, parse_records, unreadable
from logbroker.record.record import Header, Record
from logbroker.wire.convert import headers_of

_new_tuple: Callable[[type[Record], tuple[Any, ...]], Record] = tuple.__new__


class RecordBatch:
    """Records of one partition that were produced, stored and fetched as one."""

    __slots__ = (
        "_batch",
        "_columns",
        "_offsets",
        "end_offset",
        "first_offset",
        "partition",
    )

    def __init__(self, batch: Batch, partition: int, first_offset: int, end_offset: int) -> None:
        self.partition = partition
        self.first_offset = max(first_offset, batch.header.base_offset)
        """The first offset that may be handed out."""
        self.end_offset = min(end_offset, batch.header.next_offset)
        """Where to read on: one past the last offset that may be handed out."""
        self._batch = batch
        self._columns: Columns | None = None
        self._offsets: Sequence[int] | None = None

    @property
    def base_offset(self) -> int:
        """The offset of the first record; that of the next one where there is none."""
        return self.offsets[0] if len(self.offsets) else self.end_offset

    @property
    def append_time_ms(self) -> int:
        """When the broker took them, in ms since 1970."""
        return self._batch.header.append_time_ms

    @property
    def max_timestamp_ms(self) -> int:
        """The greatest timestamp; of all records, where they have none of their own."""
        return self._batch.header.max_timestamp_ms

    @property
    def record_count(self) -> int:
        """How many records it hands out."""
        return len(self.offsets)

    @property
    def size_bytes(self) -> int:
        """Of the stored batch, as it travelled."""
        return self._batch.header.size_bytes

    @property
    def offsets(self) -> Sequence[int]:
        """The records' offsets."""
        header = self._batch.header
        if self._offsets is None:
            if header.offset_span == header.record_count:
                self._offsets = range(self.first_offset, self.end_offset)
            else:
                self.columns()
        assert self._offsets is not None
        return self._offsets

    @property
    def values(self) -> Sequence[bytes | None]:
        """The records' values."""
        return self.columns().values

    @property
    def keys(self) -> Sequence[bytes | None] | None:
        """The records' keys; None: every key is null."""
        return self.columns().keys

    def columns(self) -> Columns:
        """Returns the columns, decoded once: the fastest way to read. DataLossError if damaged."""
        if self._columns is None:
            self._columns = self._decode()
        return self._columns

    def records(self) -> list[Record]:
        """Returns the records, as new objects each time. DataLossError if damaged."""
        return list(self.iterate()[0])

    def iterate(self) -> tuple[Iterator[Record], Iterator[int]]:
        """Returns an iterator that makes each record when it is asked for, and its offsets.

        What is made and dropped one by one costs half of what a list of them does. The second
        iterator runs along with the first: its length hint says how many are left.
        """
        offsets, *others = self.parts()
        running = iter(offsets)
        rows = zip(running, *others, strict=False)
        return map(_new_tuple, repeat(Record), rows), running

    def parts(self) -> tuple[Sequence[int], *tuple[Iterable[Any], ...]]:
        """Returns the records as columns, one for each field of Record. DataLossError if damaged.

        All but the offsets can be iterated over once.
        """
        columns, offsets = self.columns(), self.offsets
        count = len(offsets)
        headers: Iterable[tuple[Header, ...]] = repeat((), count)
        if columns.headers:
            rows = dict(columns.headers)
            headers = [tuple(rows.get(index, ())) for index in range(count)]
        return (
            offsets,
            columns.timestamps_ms or repeat(self._batch.header.max_timestamp_ms, count),
            columns.keys or repeat(None, count),
            columns.values,
            headers,
            repeat(self.partition, count),
        )

    def behind(self, offset: int) -> "RecordBatch":
        """Returns the same batch, from this offset on."""
        return self.part(offset, self.end_offset)

    def part(self, first_offset: int, end_offset: int) -> "RecordBatch":
        """Returns the same batch, from one offset up to another."""
        return RecordBatch(self._batch, self.partition, first_offset, end_offset)

    def __iter__(self) -> Iterator[Record]:
        return self.iterate()[0]

    def __len__(self) -> int:
        return self.record_count

    def __repr__(self) -> str:
        return f"<RecordBatch partition {self.partition} {self.first_offset}..{self.end_offset}>"

    def _decode(self) -> Columns:
        header = self._batch.header
        records = parse_records(self._batch)
        offsets: Sequence[int] = range(header.base_offset, header.base_offset + len(records.values))
        if records.offset_deltas:
            offsets = [header.base_offset + delta for delta in records.offset_deltas]
        start = bisect_left(offsets, self.first_offset)
        end = bisect_left(offsets, self.end_offset)
        self._offsets = offsets[start:end]
        return Columns(
            _nulled(records.values, records.null_values)[start:end],
            _nulled(records.keys, records.null_keys)[start:end] if records.keys else None,
            records.timestamps_ms[start:end] if records.timestamps_ms else None,
            [
                (row.record - start, headers_of(row.headers))
                for row in records.headers
                if start <= row.record < end
            ],
        )


class RecordCursor:
    """How far the records of a batch have been handed out."""

    __slots__ = ("_batch", "_offsets", "records")

    def __init__(self) -> None:
        self._batch: RecordBatch | None = None
        self._offsets: Iterator[int] = iter(())
        self.records: Iterator[Record] = iter(())
        """The records to hand out next. Whoever takes one moves the cursor."""

    def begin(self, batch: RecordBatch) -> None:
        """Goes on with this batch. DataLossError if it is damaged."""
        self.records, self._offsets = batch.iterate()
        self._batch = batch

    def offset(self, partition: int) -> int | None:
        """Returns the offset of the next record, if there is one of this partition."""
        left = length_hint(self._offsets)
        if self._batch is None or not left or self._batch.partition != partition:
            return None
        return self._batch.offsets[-left]

    def drop(self) -> RecordBatch | None:
        """Forgets the batch; returns what of it is not handed out yet."""
        batch, left = self._batch, length_hint(self._offsets)
        self._batch, self.records, self._offsets = None, iter(()), iter(())
        return batch.behind(batch.offsets[-left]) if batch is not None and left else None


def check_records(batch: Batch) -> None:
    """Raises DataLossError unless a fetched batch's records are what was produced."""
    if crc32c(batch.records) != batch.header.records_crc:
        raise unreadable(batch.header, "their checksum does not hold")


def _nulled(column: Sequence[bytes], nulls: Sequence[int]) -> Sequence[bytes | None]:
    if not nulls:
        return column
    with_nulls: list[bytes | None] = list(column)
    for index in nulls:
        with_nulls[index] = None
    return with_nulls
