"""What a consumer has handed out: which of it counts as done, and how far the reading is.

What was handed out is done when the next record or batch is asked for. With automatic
settlement that is told to the broker; without, it waits for the owner's answers, or a commit.
"""

import asyncio

from logbroker.client.audience import TopicPartition
from logbroker.client.delivered import Delivered, DeliveredBatch
from logbroker.client.delivered_cursor import DeliveredCursor
from logbroker.client.lease import Lease
from logbroker.client.settlements import Outbox, PendingSettlement
from logbroker.clock import Clock
from logbroker.record.offset_ranges import Range

SETTLE_MS = 200
"""How often, within a batch, what counts as done is told to the broker."""
KEPT_RANGES = 256
"""So many handed-out ranges are remembered for `commit` before settled ones are cleared away."""


class HandedOut:
    """The batch that is being read, and the ranges that were read before."""

    def __init__(self, outbox: Outbox, clock: Clock, *, auto_settle: bool) -> None:
        self.cursor = DeliveredCursor()
        """Where it is in the batch that is being read."""
        self.auto_settle = auto_settle
        self._outbox = outbox
        self._clock = clock
        self._ranges: list[tuple[Lease, int, int]] = []
        self._positions: dict[TopicPartition, int] = {}
        self._has_begun = asyncio.Event()

    def begin(self, batch: DeliveredBatch) -> bool:
        """Goes on with this batch, record by record; returns whether it has any."""
        self.cursor.begin(batch)
        left = self.cursor.left
        if left > 1:  # else there is no part of it to settle while it is read
            self._has_begun.set()
        return left > 0

    def note_whole(self, batch: DeliveredBatch) -> None:
        """Takes note of a batch that is handed out as a whole."""
        self._ranges.append((batch.lease, batch.first_offset, batch.end_offset))
        self._note_position(batch.lease, batch.end_offset)

    def note(self) -> None:
        """Takes note of what of the current batch is handed out."""
        batch = self.cursor.batch
        if batch is not None and (handed := self.cursor.take_handed()):
            self._ranges.append((batch.lease, *handed))
            self._note_position(batch.lease, handed[1])

    def note_asked(self) -> None:
        """Hears that the next one is asked for: all that is handed out is done."""
        self.note()
        if self.auto_settle:
            handed, self._ranges = self._ranges, []
            for lease, first, end in handed:
                if ranges := lease.held.within(first, end):
                    self._outbox.note_ranges_done(lease, ranges)
        elif len(self._ranges) > KEPT_RANGES:
            self._ranges = [one for one in self._ranges if one[0].held.within(*one[1:])]

    def settle_done(self) -> None:
        """Settles what is done of the current batch, and leaves the record handed out last.

        Nothing without automatic settlement.
        """
        batch = self.cursor.batch
        if self.auto_settle and batch is not None and (done := self.cursor.take_done()):
            self._note_position(batch.lease, done[1])
            if ranges := batch.lease.held.within(*done):
                self._outbox.acknowledge_ranges(batch.lease, ranges)

    async def settle_as_it_goes(self) -> None:
        """Tells the broker, while a batch is read, how far that is."""
        while self.auto_settle:
            await self._has_begun.wait()
            self._has_begun.clear()
            while self.cursor.left:
                await self._clock.wait_until(self._clock.monotonic_ms() + SETTLE_MS)
                self.settle_done()

    def acknowledge(self) -> list[PendingSettlement]:
        """Acknowledges all that is handed out and not answered, and what of it is lost."""
        self.note()
        handed, self._ranges = self._ranges, []
        pending = []
        for lease, first, end in handed:
            if ranges := ranges_of(lease, first, end):
                pending.append(self._outbox.acknowledge_ranges(lease, ranges))
        return pending

    def put_away(self) -> DeliveredBatch | None:
        """Ends the reading of the current batch; returns what of it is not handed out."""
        self.settle_done()
        self.note()
        return self.cursor.drop()

    def positions(self) -> dict[TopicPartition, int]:
        """Returns, of each partition, one past the last offset handed out."""
        found = dict(self._positions)
        batch, offset = self.cursor.batch, self.cursor.next_offset
        if batch is not None and offset is not None and not batch.dead_letter_topic:
            found[place_of(batch.lease)] = offset
        return found

    def forked(self) -> None:
        """Forgets all: this is a child process."""
        self.cursor.forked()
        self._ranges.clear()

    def _note_position(self, lease: Lease, end: int) -> None:
        if not lease.dead_letter_topic:
            self._positions[place_of(lease)] = end


def ranges_of(lease: Lease, first: int, end: int) -> list[Range]:
    """Returns what of the range is not answered: held, or lost, to be told so."""
    lost = lease.lost.within(first, end) if lease.lost is not None else []
    return lease.held.within(first, end) + lost


def lease_of(what: Delivered | DeliveredBatch) -> Lease:
    """Returns the lease that a record or a batch is held under."""
    return what.run.lease if isinstance(what, Delivered) else what.lease


def answerable(what: Delivered | DeliveredBatch) -> list[Range]:
    """Returns what of a record or a batch is not answered, in offsets of its lease."""
    if isinstance(what, Delivered):
        return [(what.ledger_offset, what.ledger_offset + 1)]
    return ranges_of(what.lease, what.first_offset, what.end_offset)


def place_of(lease: Lease) -> TopicPartition:
    """Returns the partition its records came from."""
    return TopicPartition(lease.topic, lease.partition)
