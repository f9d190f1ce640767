"""How far the records of a delivered batch are handed out, and which of them count as done.

    done <= handed - 1 < handed <= count        of the records of the batch

The record handed out last is done when the next one is asked for.
"""

import threading
from collections.abc import Iterator, Sequence
from operator import length_hint

from logbroker.client.delivered import Delivered, DeliveredBatch
from logbroker.record.offset_ranges import Range


class DeliveredCursor:
    """A place in a batch. Whoever takes from `records` moves it."""

    __slots__ = ("_done", "_offsets", "_running", "batch", "lock", "records")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        """Held while `records` is changed in the middle of a batch; for other threads."""
        self.batch: DeliveredBatch | None = None
        self.records: Iterator[Delivered] = iter(())
        self._running: Iterator[int] = iter(())
        self._offsets: Sequence[int] = ()
        self._done = 0

    def begin(self, batch: DeliveredBatch) -> None:
        """Goes on with this batch."""
        self.records, self._running = batch.iterate()
        self._offsets = batch.offsets
        self._done = 0
        self.batch = batch

    def take(self) -> Delivered | None:
        """Returns the next record of the batch, if there is one, to any thread."""
        with self.lock:
            return next(self.records, None)

    @property
    def left(self) -> int:
        """How many records are not handed out."""
        return length_hint(self._running)

    @property
    def handed(self) -> int:
        """How many records are handed out."""
        return len(self._offsets) - self.left

    @property
    def next_offset(self) -> int | None:
        """The offset of the next record; None if there is none."""
        return self._offsets[-self.left] if self.left else None

    def take_done(self) -> Range | None:
        """Returns what is done and was not told before: all that is handed out but the last."""
        return self._take(self.handed - 1)

    def take_handed(self) -> Range | None:
        """Returns what is handed out and was not told before."""
        return self._take(self.handed)

    def cut(self) -> None:
        """Leaves out what is lost of the records that are not handed out yet."""
        with self.lock:
            batch = self.batch
            if batch is None or not self.left or batch.lease.lost is None:
                return
            lost, handed = batch.lease.lost, self.handed
            coming = self._offsets[handed:]
            kept = [offset for offset in coming if offset not in lost]
            if len(kept) == len(coming):
                return
            records = {one.ledger_offset: one for one in self.records}
            self._offsets = [*self._offsets[:handed], *kept]
            self._running = iter(kept)
            self.records = (records[offset] for offset in self._running)

    def drop(self) -> DeliveredBatch | None:
        """Forgets the batch; returns what of it is not handed out."""
        with self.lock:
            rest = None
            if self.batch is not None and (offset := self.next_offset) is not None:
                rest = self.batch.rest(offset)
            self.batch, self._offsets, self._done = None, (), 0
            self.records, self._running = iter(()), iter(())
            return rest

    def forked(self) -> None:
        """Forgets the batch, whoever holds the lock: in a child process nobody does."""
        self.lock = threading.Lock()
        self.drop()

    def _take(self, count: int) -> Range | None:
        if count <= self._done:
            return None
        found = self._offsets[self._done], self._offsets[count - 1] + 1
        self._done = count
        return found
