"""What a group's member is handed: records and batches, under a lease."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple, Self

from logbroker.client.lease import Lease
from logbroker.client.record_batch import RecordBatch
from logbroker.errors import DataLossError
from logbroker.group.dead_letter import DeadLetter, dead_letter_of, own_headers
from logbroker.record.columns import Columns
from logbroker.record.record import Record
from logbroker.v1.consume_service_pb2 import LeasedRange


class StableId(NamedTuple):
    """What names a record for good: however often, and from wherever, it is delivered."""

    topic_id: str
    """The topic's incarnation."""
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic_id}/{self.partition}/{self.offset}"


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What records side by side have in common."""

    lease: Lease
    delivery_number: int
    failures: int
    redrives: int
    ledger_offset: int | None = None
    """Of one redriven record: its offset in the dead-letter topic, by which it is settled."""
    dead_letter: DeadLetter | None = None
    """Of one redriven record: where it came from, and why."""


class Delivered(Record):
    """A record under a lease: the fields of Record, and what its group knows of it.

    A redriven dead letter comes as the record it was: with the offset and the headers it had
    in its topic; `dead_letter` says why it failed. Pickled, it is a plain Record.
    """

    __slots__ = ()

    @property
    def run(self) -> Run:
        """What it has in common with its neighbours."""
        run: Run = self[6]  # type: ignore[misc]  # one more than a Record has
        return run

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.run.lease.topic

    @property
    def delivery_number(self) -> int:
        """How often it has been delivered to the group, this time included; from 1."""
        return self.run.delivery_number

    @property
    def failures(self) -> int:
        """How often it has failed since it was last redriven."""
        return self.run.failures

    @property
    def redrives(self) -> int:
        """How often it has been redriven."""
        return self.run.redrives

    @property
    def dead_letter(self) -> DeadLetter | None:
        """Of a redriven record: where it came from and why it failed; else None."""
        return self.run.dead_letter

    @property
    def stable_id(self) -> StableId:
        """What names the record for good, redriven or not: the key of a consumed-once table."""
        letter = self.run.dead_letter
        topic_id = letter.topic_id if letter else self.run.lease.topic_id
        return StableId(topic_id, self.partition, self.offset)

    @property
    def lease_lost(self) -> bool:
        """Whether it was taken back before it was settled: another member may have it now."""
        return self.run.lease.has_lost(self.ledger_offset)

    @property
    def ledger_offset(self) -> int:
        """The offset by which it is settled."""
        offset: int | None = self[6].ledger_offset  # type: ignore[misc]
        return self[0] if offset is None else offset

    def __reduce__(self) -> tuple[Any, ...]:
        return Record, tuple(self[:6])

    def __repr__(self) -> str:
        plain = ", ".join(
            f"{name}={value!r}" for name, value in zip(self._fields, self, strict=False)
        )
        return f"Delivered({plain}, topic={self.topic!r}, delivery_number={self.delivery_number})"


_new_tuple: Callable[[type[Delivered], tuple[Any, ...]], Delivered] = tuple.__new__


class DeliveredBatch:
    """Records of one partition that were delivered as one, under one lease.

    Of a redriven one (`dead_letter_topic` is not empty) offsets and columns are those of the
    dead-letter topic; its `records()` are as they were in their topic.
    """

    __slots__ = ("_batch", "_ranges", "lease")

    def __init__(self, lease: Lease, batch: RecordBatch, ranges: Sequence[LeasedRange]) -> None:
        self.lease = lease
        self._batch = batch
        self._ranges = ranges

    @property
    def topic(self) -> str:
        """The topic's name: of redriven records, of the one they came from."""
        return self.lease.topic

    @property
    def topic_id(self) -> str:
        """The topic's incarnation."""
        return self.lease.topic_id

    @property
    def dead_letter_topic(self) -> str:
        """Where redriven records lie; else empty."""
        return self.lease.dead_letter_topic

    @property
    def partition(self) -> int:
        """Of both topics, from 0."""
        return self._batch.partition

    @property
    def first_offset(self) -> int:
        """The first offset it may hold."""
        return self._batch.first_offset

    @property
    def end_offset(self) -> int:
        """One past the last offset it may hold."""
        return self._batch.end_offset

    @property
    def append_time_ms(self) -> int:
        """When the broker took the records, in ms since 1970."""
        return self._batch.append_time_ms

    @property
    def record_count(self) -> int:
        """How many records it holds."""
        return self._batch.record_count

    @property
    def size_bytes(self) -> int:
        """As it travelled."""
        return self._batch.size_bytes

    @property
    def offsets(self) -> Sequence[int]:
        """The records' offsets."""
        return self._batch.offsets

    @property
    def values(self) -> Sequence[bytes | None]:
        """The records' values."""
        return self._batch.values

    @property
    def keys(self) -> Sequence[bytes | None] | None:
        """The records' keys; None: every key is null."""
        return self._batch.keys

    def columns(self) -> Columns:
        """Returns the columns, decoded once: the fastest way to read. DataLossError if damaged."""
        return self._batch.columns()

    def records(self) -> list[Delivered]:
        """Returns the records. DataLossError if damaged."""
        return list(self.iterate()[0])

    def iterate(self) -> tuple[Iterator[Delivered], Iterator[int]]:
        """Returns an iterator that makes each record when asked, and one of offsets beside it.

        The length hint of the second says how many are left.
        """
        offsets, *others = self._batch.parts()
        running = iter(offsets)
        runs = self._runs(offsets)
        rows: Iterable[tuple[Any, ...]] = zip(running, *others, runs, strict=False)
        if self.lease.dead_letter_topic:
            rows = map(_as_it_was, rows)
        return map(_new_tuple, repeat(Delivered), rows), running

    def rest(self, first: int) -> Self:
        """Returns the same batch from this offset on."""
        return type(self)(self.lease, self._batch.behind(first), self._ranges)

    def held(self) -> list[Self]:
        """Returns what of it is still held: one batch, or several where a part is lost."""
        if self.lease.lost is None:
            return [self]
        within = self.lease.held.within(self.first_offset, self.end_offset)
        return [type(self)(self.lease, self._batch.part(*one), self._ranges) for one in within]

    def __iter__(self) -> Iterator[Delivered]:
        return self.iterate()[0]

    def __len__(self) -> int:
        return self.record_count

    def __repr__(self) -> str:
        place = f"{self.topic}/{self.partition}"
        return f"<DeliveredBatch {place} {self.first_offset}..{self.end_offset}>"

    def _runs(self, offsets: Sequence[int]) -> Iterable[Run]:
        """Returns what is known of each record: once for all, where it is the same."""
        ranges = self._ranges
        numbers = {(one.delivery_number, one.failures, one.redrives) for one in ranges}
        if len(numbers) == 1:
            return repeat(Run(self.lease, *numbers.pop()), len(offsets))
        found: list[Run] = []
        for one in ranges:
            start, stop = (
                bisect_left(offsets, one.first_offset),
                bisect_left(offsets, one.end_offset),
            )
            run = Run(self.lease, one.delivery_number, one.failures, one.redrives)
            found += repeat(run, stop - start)
        if len(found) != len(offsets):
            message = f"the ranges of lease {self.lease.token} are not those of its batches"
            raise DataLossError("DAMAGED_BATCH", message, token=self.lease.token)
        return found


def _as_it_was(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the fields of a redriven record with the offset and headers it had in its topic."""
    offset, timestamp_ms, key, value, headers, partition, run = row
    letter = dead_letter_of(headers)
    of_one = Run(run.lease, run.delivery_number, run.failures, run.redrives, offset, letter)
    return letter.offset, timestamp_ms, key, value, own_headers(headers), partition, of_one
