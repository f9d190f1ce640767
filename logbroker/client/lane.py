"""The batches of one partition on their way: which goes next, and what an answer means. Pure.

    unresolved = the batches under way, then those that wait, in the order of their records
    batches under way are the first ones, except while the lane rewinds
    sequences of unresolved batches follow one another, modulo 2**32

A batch that must go again makes the lane *rewind*: nothing more goes until everything
under way is answered (what followed the failed batch fails too, by a sequence gap), then
all goes again from the first unresolved one. So order is kept, and the broker recognises
by its sequence what it had stored.
"""

from collections import deque
from itertools import islice
from typing import NamedTuple

from logbroker.client.outgoing_batch import OutgoingBatch
from logbroker.client.retry import may_pass
from logbroker.errors import LogbrokerError, OutcomeUnknownError
from logbroker.record.receipt import Receipt

SEQUENCES = 1 << 32

UNDER_WAY_BYTES = 4 << 20
"""Beyond this no further batch of a partition goes before one is answered."""


class Identity(NamedTuple):
    """A producer, as the broker knows it."""

    producer_id: int
    producer_epoch: int


NOBODY = Identity(0, 0)
"""Batches of nobody carry no sequences."""


class Lane:
    """One partition's batches. `max_under_way` must be 1 without idempotence."""

    def __init__(self, partition: int, *, max_under_way: int, is_idempotent: bool) -> None:
        assert is_idempotent or max_under_way == 1
        self.partition = partition
        self.open: OutgoingBatch | None = None
        """Takes records. Not among the unresolved ones until it is sealed."""
        self.unresolved: deque[OutgoingBatch] = deque()
        self.under_way_count = 0
        self.identity: Identity | None = None if is_idempotent else NOBODY
        """None: a producer id is needed before anything can go."""
        self.is_ready = False
        """The owner's mark: it stands in line to be looked at."""
        self.is_resting = False
        """The owner's mark: a back-off runs."""
        self.failures_in_row = 0
        self.last_error: LogbrokerError | None = None
        self._max_under_way = max_under_way
        self._under_way_bytes = 0
        self._under_way_room = 0
        self._unresolved_room = 0
        self._is_idempotent = is_idempotent
        self._is_rewinding = False
        self._next_sequence = 0

    def push(self, batch: OutgoingBatch) -> None:
        """Puts a sealed batch behind the others."""
        assert batch.is_sealed
        assert batch is not self.open
        self.unresolved.append(batch)
        self._unresolved_room += batch.granted_bytes

    def may_go(self, *, now_ms: int) -> bool:
        """Tells whether a batch may go now, be it one that must be sealed first."""
        if self._is_rewinding or self.is_resting or self.under_way_count >= self._max_under_way:
            return False
        if self._under_way_bytes >= UNDER_WAY_BYTES:
            return False
        if self.under_way_count < len(self.unresolved):
            return self._keeps_apart(self.unresolved[self.under_way_count])
        if self.open is None:
            return False
        is_due = self.open.is_overdue or now_ms >= self.open.lingers_until_ms
        return self.under_way_count == 0 or is_due

    @property
    def next_size_bytes(self) -> int:
        """Of the batch that goes next, which is encoded."""
        return self.unresolved[self.under_way_count].size_bytes

    @property
    def waiting_bytes(self) -> int:
        """Of the records that wait, be they sealed or not. Less while the lane rewinds."""
        gathered = self.open.granted_bytes - self.open.left if self.open else 0
        return gathered + self._unresolved_room - self._under_way_room

    def _keeps_apart(self, batch: OutgoingBatch) -> bool:
        """Tells whether `batch` may follow what is under way: an expectation goes alone.

        Whether it holds is known only when all before it is stored, and a batch behind it
        must not find that it failed.
        """
        if not self.under_way_count:
            return True
        return batch.expected_offset is None and self.unresolved[0].expected_offset is None

    def follow(self, identity: Identity) -> None:
        """Takes on a producer id; sequences begin again."""
        assert self.under_way_count == 0
        self.identity = identity
        self._next_sequence = 0
        for batch in self.unresolved:
            batch.sequence = None
            batch.in_doubt = False

    def start(self) -> OutgoingBatch:
        """Returns the next batch, now under way and with its sequence."""
        assert self.identity is not None
        batch = self.unresolved[self.under_way_count]
        self._under_way_bytes += batch.size_bytes
        self._under_way_room += batch.granted_bytes
        self.under_way_count += 1
        batch.is_under_way = True
        if batch.sequence is None:
            batch.sequence = self._next_sequence
            if self._is_idempotent:
                self._next_sequence = (batch.sequence + batch.record_count) % SEQUENCES
        return batch

    def answer(self, batch: OutgoingBatch, answer: Receipt | LogbrokerError) -> bool:
        """Takes the broker's answer; returns whether the lane should rest before it goes on."""
        self.under_way_count -= 1
        self._under_way_bytes -= batch.size_bytes
        self._under_way_room -= batch.granted_bytes
        batch.is_under_way = False
        should_rest = False
        if not batch.is_answered:  # else it was given up meanwhile
            if isinstance(answer, Receipt):
                self.failures_in_row, self.last_error = 0, None
                self._resolve(batch, answer)
            else:
                should_rest = self._take_error(batch, answer)
        if self.under_way_count == 0:
            self._is_rewinding = False
        return should_rest

    def _take_error(self, batch: OutgoingBatch, error: LogbrokerError) -> bool:
        if error.reason in ("SEQUENCE_GAP", "PRODUCER_FENCED"):
            if not self._is_rewinding and batch is self.unresolved[0]:
                self.identity = None  # the broker does not know what came before: begin anew
            self._is_rewinding = True
            return False
        if may_pass(error):
            batch.in_doubt |= not error.no_effect
            self.failures_in_row += 1
            self.last_error = error
            self._is_rewinding = True
            return True
        if self._is_idempotent and error.reason in ("SEQUENCE_TOO_OLD", "BAD_BATCH"):
            self.identity = None  # our numbers are not the broker's
            self._is_rewinding = True
        self._fail(batch, error, surely=error.no_effect)
        return False

    def give_up(self, batch: OutgoingBatch, why: LogbrokerError) -> None:
        """Fails a batch whose time is over: outcome unknown if any of it may be stored."""
        error = self.last_error or why
        if not (batch.is_under_way or batch.in_doubt):
            self._fail(batch, error.again(), surely=True)
            return
        self._is_rewinding |= batch.is_under_way  # its answer may still come
        message = f"sent to partition {self.partition}, and not answered in time: {error}"
        self._fail(batch, OutcomeUnknownError("OUTCOME_UNKNOWN", message), surely=False)

    def lose_connection(self) -> None:
        """Takes back what is under way: it may be stored or not, and goes again."""
        for batch in self.unresolved:
            batch.in_doubt |= batch.is_under_way
            batch.is_under_way = False
        self.under_way_count = self._under_way_bytes = self._under_way_room = 0
        self._is_rewinding = False

    def _fail(self, batch: OutgoingBatch, error: LogbrokerError, *, surely: bool) -> None:
        later = list(islice(self.unresolved, self.unresolved.index(batch) + 1, None))
        is_free = surely and not any(each.in_doubt for each in later)
        if is_free and batch.sequence is not None and self._is_idempotent:
            self._next_sequence = batch.sequence  # nothing was stored: number the later ones anew
            for each in later:
                each.sequence = None
        self._is_rewinding |= any(each.is_under_way for each in later)
        self._resolve(batch, error)

    def _resolve(self, batch: OutgoingBatch, answer: Receipt | LogbrokerError) -> None:
        self.unresolved.remove(batch)
        self._unresolved_room -= batch.granted_bytes
        batch.answer(answer)
