"""Who writes to a partition with sequences: next, duplicate, or gap. Pure.

Sequences are counted by producer and partition, from 0, modulo 2^32. The table is a view
of the headers in the log, so it survives restarts: replaying headers rebuilds it.
"""

from collections import OrderedDict, deque
from itertools import chain
from typing import NamedTuple

from logbroker.errors import ConflictError, InvalidError
from logbroker.limits import SEQUENCE_WINDOW
from logbroker.record.batch import BatchHeader

SEQUENCES = 1 << 32

OWN_PRODUCER_ID = 1 << 62
"""Ids from here on are the broker's own: never given out, never forgotten."""


ROW_NUMBERS, BATCH_NUMBERS = 2, 4
"""Of a row: id and epoch; and what each batch of it takes."""


class Stored(NamedTuple):
    """A batch that is in the log."""

    base_sequence: int
    record_count: int
    base_offset: int
    append_time_ms: int


class _Producer:
    __slots__ = ("epoch", "stored")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.stored: deque[Stored] = deque(maxlen=SEQUENCE_WINDOW)


class ProducerTable:
    """The producers of one partition, the last one heard of at the end."""

    def __init__(self) -> None:
        self._producers: OrderedDict[int, _Producer] = OrderedDict()

    def check(self, header: BatchHeader) -> Stored | None:
        """Returns None for the batch that comes next, or where an equal one is stored.

        ConflictError: SEQUENCE_GAP with the sequence expected; SEQUENCE_TOO_OLD for a batch
        from before the remembered ones; PRODUCER_FENCED for an epoch that is over.
        InvalidError (BAD_BATCH) for a stored sequence with another count.
        """
        producer = self._producers.get(header.producer_id)
        if producer is None or header.producer_epoch > producer.epoch:
            if header.base_sequence != 0:
                raise _gap(header.base_sequence, 0)
            return None
        if header.producer_epoch < producer.epoch:
            message = f"producer {header.producer_id} is at epoch {producer.epoch} now"
            raise ConflictError("PRODUCER_FENCED", message, producer_epoch=producer.epoch)
        last = producer.stored[-1]
        expected = (last.base_sequence + last.record_count) % SEQUENCES
        if header.base_sequence == expected:
            return None
        for stored in producer.stored:
            if stored.base_sequence == header.base_sequence:
                if stored.record_count == header.record_count:
                    return stored
                message = (
                    f"sequence {header.base_sequence} was stored with {stored.record_count} "
                    f"records, not {header.record_count}"
                )
                raise InvalidError("BAD_BATCH", message, base_sequence=header.base_sequence)
        if (expected - header.base_sequence) % SEQUENCES < SEQUENCES // 2:
            message = f"sequence {header.base_sequence} is stored, and no longer remembered where"
            raise ConflictError("SEQUENCE_TOO_OLD", message, expected_sequence=expected)
        raise _gap(header.base_sequence, expected)

    def apply(self, header: BatchHeader) -> None:
        """Takes note of a batch as it is stored."""
        if not header.producer_id:
            return
        producer = self._producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = self._producers[header.producer_id] = _Producer(header.producer_epoch)
        producer.stored.append(
            Stored(
                header.base_sequence,
                header.record_count,
                header.base_offset,
                header.append_time_ms,
            )
        )
        self._producers.move_to_end(header.producer_id)

    def last_of(self, producer_id: int) -> tuple[int, int]:
        """Returns the epoch of this producer and which sequence comes next; 0 and 0 if unknown."""
        producer = self._producers.get(producer_id)
        if producer is None:
            return 0, 0
        last = producer.stored[-1]
        return producer.epoch, last.base_sequence + last.record_count

    def forget(self, before_ms: int) -> None:
        """Drops the producers whose last batch is older than this append time."""
        old = []
        for producer_id, producer in self._producers.items():
            if producer.stored[-1].append_time_ms >= before_ms:
                break
            if producer_id < OWN_PRODUCER_ID:
                old.append(producer_id)
        for producer_id in old:
            del self._producers[producer_id]

    def rows_below(self, offset: int) -> list[list[int]]:
        """Returns what is stored below `offset`: id, epoch, then four numbers a batch."""
        rows = []
        for producer_id, producer in self._producers.items():
            stored = [batch for batch in producer.stored if batch.base_offset < offset]
            if stored:
                rows.append([producer_id, producer.epoch, *chain.from_iterable(stored)])
        return rows

    @classmethod
    def from_rows(cls, rows: list[list[int]]) -> "ProducerTable":
        """Returns the table that `rows_below` told of."""
        table = cls()
        for producer_id, epoch, *numbers in rows:
            producer = table._producers[producer_id] = _Producer(epoch)
            producer.stored.extend(
                Stored(*numbers[at : at + BATCH_NUMBERS])
                for at in range(0, len(numbers), BATCH_NUMBERS)
            )
        return table

    @staticmethod
    def check_rows(rows: list[list[int]]) -> None:
        """Raises ValueError or TypeError for what `from_rows` could make nothing of."""
        for row in rows:
            if len(row) % BATCH_NUMBERS != ROW_NUMBERS or len(row) == ROW_NUMBERS:
                raise ValueError("a row has two numbers, and four for each of its batches")
            if set(map(type, row)) != {int}:
                raise TypeError("a row holds whole numbers alone")

    def __len__(self) -> int:
        return len(self._producers)


def _gap(sequence: int, expected: int) -> ConflictError:
    message = f"sequence {expected} comes next, not {sequence}"
    return ConflictError("SEQUENCE_GAP", message, expected_sequence=expected)
