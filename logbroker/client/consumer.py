"""Consumer: reads topics as a member of a group, and settles what it has handled.

Delivery guarantees. At-least-once by default: a record that is handed out and not settled when
its consumer ends, or its lease is over, is delivered again, so a handler may see it twice. With
`settle="before"` at-most-once. Exactly-once effects need the handler's help, most simply a
table in its own database that is written in the same transaction as the effect:

    CREATE TABLE consumed (stable_id TEXT PRIMARY KEY);

    async for record in consumer:                       # auto_settle: done when asked on
        with database:                                  # one transaction
            new = database.execute(
                "INSERT INTO consumed VALUES (?) ON CONFLICT DO NOTHING", [str(record.stable_id)]
            ).rowcount
            if new:
                apply(record, database)

The stable id is the same however often the record is delivered, redriven dead letters
included. A row may be deleted once the committed offset of its partition has passed it and no
dead letter of it is left. To move a group elsewhere ("seek") use `Admin.reset_offsets`: a
place in a topic belongs to the group, not to one of its members.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Self

from logbroker.client.connection import Connection
from logbroker.client.consumer_settings import ConsumerSettings, Settle
from logbroker.client.consumer_stats import ConsumerStats, LostRecords
from logbroker.client.delivered import Delivered, DeliveredBatch, Run
from logbroker.client.delivered_cursor import DeliveredCursor
from logbroker.client.forks import tell_of_forks
from logbroker.client.lease import Lease
from logbroker.client.membership import Membership, TopicPartition
from logbroker.client.settlements import PendingSettlement, Turn
from logbroker.client.topics import get_topic
from logbroker.errors import InvalidError, LogbrokerError, PreconditionError
from logbroker.group.settings import Order
from logbroker.record.offset_ranges import Range
from logbroker.v1 import consume_service_pb2 as pb

SETTLE_MS = 200
"""How often, within a batch, what counts as done is told to the broker."""
KEPT_RANGES = 256
"""So many handed-out ranges are remembered for `commit` before settled ones are cleared away."""


class Consumer:
    """Reads as a member of a group. Made by `Client.consumer`; use it as a context manager.

    Iterate over it for records, or over `batches()`. A cancelled wait loses nothing. It joins
    its group again after the broker restarts; what it had not settled then comes again.
    Leaving the context settles what counts as done and gives the rest back at once, uncounted.
    The record handed out last is not done: `acknowledge` it, or `commit()`, before a `break`.
    """

    def __init__(self, connection: Connection, settings: ConsumerSettings) -> None:
        self.settings = settings
        self.on_lost: Callable[[LostRecords], None] | None = None
        """Called when records turn out to have been answered too late."""
        self._connection = connection
        self._clock = connection.clock
        self._member = Membership(connection, settings, self)
        self._outbox = self._member.outbox
        self._buffer: deque[DeliveredBatch] = deque()
        self.cursor = DeliveredCursor()
        """Where it is in the batch that is being read."""
        self._settling: tuple[DeliveredBatch, PendingSettlement] | None = None
        self._handed: list[tuple[Lease, int, int]] = []
        self._paused: set[TopicPartition] = set()
        self._stalled: dict[TopicPartition, int] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._partitions: set[TopicPartition] = set()
        self._waiters: set[asyncio.Future[None]] = set()
        self._has_begun = asyncio.Event()
        self._ticking: asyncio.Task[None] | None = None
        self._delivered_count = 0
        self._is_closed = False
        self._is_suspended = False
        self._signs: tuple[int, ...] = ()
        self._alive_ms = self._clock.monotonic_ms()
        tell_of_forks(self)

    async def open(self) -> Self:
        """Returns once it is a member of its group. Raises why it is not."""
        self._check_open()
        if self._ticking is None:
            self._ticking = asyncio.create_task(self._settle_as_it_goes())
        await self._member.join()
        if not self.settings.follow and not self._partitions:
            for name in self.settings.topics:
                topic = await get_topic(self._connection, name)
                numbers = range(topic.partition_count)
                self._partitions |= {TopicPartition(name, number) for number in numbers}
        return self

    async def close(self) -> None:
        """Settles what counts as done, gives back the rest, and leaves the group.

        Cancelled meanwhile, it goes on in the background; closing again waits for that.
        """
        if not self._is_closed:
            self._is_closed = True
            if self._ticking:
                self._ticking.cancel()
            if self.settings.auto_settle:
                self._settle_done()
            self._note_handed()
            self.cursor.drop()
            self._buffer.clear()
            self.wake()
        await self._member.leave()

    # Settling

    def acknowledge(self, what: Delivered | DeliveredBatch) -> PendingSettlement:
        """Settles a record, or a whole batch: done. Await the result to know that it is kept.

        Returns at once: what is acknowledged in one turn of the loop travels as ranges.
        """
        if type(what) is Delivered:  # one by one: every call and property counts
            run: Run = what[6]  # type: ignore[misc]
            lease = run.lease
            turn = lease.turn
            if turn is None or turn.may_wait:
                turn = self._outbox.begin(lease)
            offset = what[0] if run.ledger_offset is None else run.ledger_offset
            turn.offsets.append(offset)
            return PendingSettlement(turn, offset)
        ranges = self._ranges_of(what)
        return self._outbox.acknowledge_ranges(_lease_of(what), ranges)

    def retry(
        self, what: Delivered | DeliveredBatch, delay_ms: int | None = None, reason: str = ""
    ) -> PendingSettlement:
        """Counts a failure: again after the group's back-off, or after `delay_ms`.

        In partition order nothing behind it is handed out before it is through.
        """
        return self._answer(what, pb.OUTCOME_RETRY, delay_ms, reason)

    def release(self, what: Delivered | DeliveredBatch) -> PendingSettlement:
        """Gives back what is not done and has not failed: again at once, to any member."""
        return self._answer(what, pb.OUTCOME_RELEASE, None, "")

    def reject(self, what: Delivered | DeliveredBatch, reason: str = "") -> PendingSettlement:
        """Gives up on what is hopeless: it becomes a dead letter, or what the group is set to."""
        return self._answer(what, pb.OUTCOME_REJECT, None, reason)

    async def commit(self) -> None:
        """Acknowledges all that is handed out and not answered; returns once that is kept.

        Raises ConflictError LEASE_LOST if some of it was taken back before: it comes again.
        """
        self._connection.check_open()
        self._note_handed()
        handed, self._handed = self._handed, []
        pending = []
        for lease, first, end in handed:
            lost = lease.lost.within(first, end) if lease.lost is not None else []
            if ranges := lease.held.within(first, end) + lost:
                pending.append(self._outbox.acknowledge_ranges(lease, ranges))
        await self._outbox.wait_answered()
        for one in pending:
            await one

    async def flush(self) -> None:
        """Returns once all answers given so far are confirmed or refused."""
        self._connection.check_open()
        await self._outbox.wait_answered()

    # Flow

    def pause(self, topic: str, partition: int) -> None:
        """Hands out nothing more of a partition. What came of it is held, and its room taken."""
        self._paused.add(TopicPartition(topic, partition))
        self._put_away(TopicPartition(topic, partition))

    def resume(self, topic: str, partition: int) -> None:
        """Goes on with a partition."""
        self._paused.discard(TopicPartition(topic, partition))
        self.wake()

    def set_limits(self, max_outstanding_records: int, max_outstanding_bytes: int) -> None:
        """Changes how much may be delivered and not settled; 0 means nothing more for now."""
        self._member.set_limits(max_outstanding_records, max_outstanding_bytes)

    # Looking

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        """In partition order, what belongs to it now; in other orders nothing does."""
        return self._member.assignment or ()

    @property
    def order(self) -> Order:
        """Of the group. InvalidError before it has joined."""
        if self._member.group_settings is None:
            raise InvalidError("INVALID_ARGUMENT", "open the consumer first")
        return self._member.group_settings.order

    @property
    def caught_up(self) -> frozenset[TopicPartition]:
        """Partitions of which everything there was had been delivered, last we heard."""
        return frozenset(self._member.caught_up)

    def positions(self) -> dict[TopicPartition, int]:
        """Returns, of each partition it got records of, one past the last one handed out."""
        found = dict(self._positions)
        batch, offset = self.cursor.batch, self.cursor.next_offset
        if batch is not None and offset is not None and not batch.dead_letter_topic:
            found[_place_of(batch.lease)] = offset
        return found

    def committed_offsets(self) -> dict[TopicPartition, int]:
        """Returns the committed offsets of the group, as of the last answers to this member."""
        return {TopicPartition(*place): at for place, at in self._outbox.committed.items()}

    def stats(self) -> ConsumerStats:
        """Returns what it has done so far."""
        buffered = sum(batch.record_count for batch in self._buffer) + self.cursor.left
        return ConsumerStats(
            member_id=self._member.member_id,
            joined_count=self._member.joined_count,
            delivered_count=self._delivered_count,
            settled_count=self._outbox.settled_count,
            lost_count=self._member.lost_count + self._outbox.lost_count,
            buffered_count=buffered,
        )

    # Iterating

    def batches(self) -> "DeliveredBatches":
        """Returns an iterator over batches: the fastest way. A batch is done as a whole."""
        return DeliveredBatches(self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delivered:
        # A cancelled wait loses nothing: what came stays here until it is handed out.
        for record in self.cursor.records:
            return record
        return await self._next_record()

    async def next_batch(self) -> DeliveredBatch | None:
        """Returns the next batch, or what is left of the one being read; None at the end."""
        self._settle_asked()
        batch = self.cursor.drop() or await self._next_batch()
        if batch is not None:
            self._handed.append((batch.lease, batch.first_offset, batch.end_offset))
            self._note_position(batch.lease, batch.end_offset)
        return batch

    async def begin_next(self) -> bool:
        """Puts the cursor at the next batch; returns whether there is one, False at the end."""
        self._settle_asked()
        while (batch := await self._next_batch()) is not None:
            self.cursor.begin(batch)
            self._has_begun.set()
            if self.cursor.left:
                return True
        return False

    async def __aenter__(self) -> Self:
        try:
            return await self.open()
        except BaseException:
            await self.close()  # else it stays a member, or becomes one
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # What the member tells

    def take(self, batch: DeliveredBatch) -> None:
        """Takes a batch from the broker."""
        self._delivered_count += batch.record_count
        if self._is_closed:
            return
        self._buffer.append(batch)
        self.wake()

    def drop(self) -> None:
        """Hears that leases are lost, and drops what is not held any more."""
        self.cursor.cut()
        self._buffer = deque(part for batch in self._buffer for part in batch.held())
        self.wake()

    def forked(self) -> None:
        """Hands out nothing from now on: this is a child process, the records are its parent's."""
        self._is_closed = True
        self.cursor.forked()
        self._buffer.clear()
        self._handed.clear()
        self._settling = None

    def note_lost(self, lease: Lease, range_: Range) -> None:
        """Hears of answers that came too late."""
        if self.on_lost is not None:
            self.on_lost(LostRecords(lease.topic, lease.partition, *range_))

    def wake(self) -> None:
        """Wakes who waits."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def may_extend(self, lease: Lease, now_ms: int) -> bool:
        """Tells whether its reader is alive: asks for records, or settles some, often enough."""
        batch = self.cursor.batch
        signs = (
            self.cursor.handed,
            batch.first_offset if batch else -1,
            len(self._buffer),
            self._outbox.settled_count,
            self._delivered_count,
        )
        if signs != self._signs or self._waiters:
            self._signs, self._alive_ms = signs, now_ms
        if now_ms - self._alive_ms <= self.settings.max_processing_ms:
            return True
        self._suspend()
        return False

    # Details

    async def _next_record(self) -> Delivered:
        while await self.begin_next():
            for record in self.cursor.records:
                return record
        raise StopAsyncIteration

    async def _next_batch(self) -> DeliveredBatch | None:
        await self.open()
        if self._is_suspended:
            self._is_suspended = False
            self.set_limits(
                self.settings.max_outstanding_records, self.settings.max_outstanding_bytes
            )
        while True:
            if self._settling is not None:
                if (settled := await self._wait_settled(*self._settling)) is not None:
                    return settled
            elif (batch := self._pop()) is not None:
                if self.settings.settle != Settle.BEFORE:
                    return batch
                pending = self.acknowledge(batch)
                self._settling = batch, pending
            elif self._member.failure is not None:
                raise self._member.failure.again()
            elif not self.settings.follow and self._has_caught_up():
                return None
            else:
                await self._wait()
                self._check_open()

    async def _wait_settled(
        self, batch: DeliveredBatch, pending: PendingSettlement
    ) -> DeliveredBatch | None:
        """Returns the batch once it is settled, before anybody sees it; None if it cannot be."""
        try:
            await pending
        except LogbrokerError:
            self._settling = None
            return None
        self._settling = None
        return batch

    def _pop(self) -> DeliveredBatch | None:
        if not (self._paused or self._stalled):
            return self._buffer.popleft() if self._buffer else None
        for at, batch in enumerate(self._buffer):
            place = _place_of(batch.lease)
            if place not in self._paused and place not in self._stalled:
                del self._buffer[at]
                return batch
        return None

    def _has_caught_up(self) -> bool:
        member = self._member
        wanted = self._partitions
        if self.order is Order.PARTITION:
            if member.assignment is None:
                return False
            wanted = set(member.assignment)
        return wanted <= member.caught_up and self._outbox.is_idle and not self._buffer

    def _answer(
        self,
        what: Delivered | DeliveredBatch,
        outcome: pb.Outcome,
        delay_ms: int | None,
        reason: str,
    ) -> PendingSettlement:
        lease = _lease_of(what)
        if self.settings.auto_settle:
            self._settle_done()  # what is done goes before what is not
        turn = self._outbox.answer(
            lease, self._ranges_of(what), outcome, delay_ms=delay_ms, reason=reason
        )
        if not turn.is_done and self.order is Order.PARTITION:
            self._stall(_place_of(lease), turn)
        return PendingSettlement(turn, None)

    def _stall(self, place: TopicPartition, turn: Turn) -> None:
        """Hands out nothing more of a partition until it is known what is taken back."""

        def end() -> None:
            self._stalled[place] -= 1
            if not self._stalled[place]:
                del self._stalled[place]
                self.wake()

        self._stalled[place] = self._stalled.get(place, 0) + 1
        turn.on_done = end
        self._put_away(place)

    def _put_away(self, place: TopicPartition) -> None:
        """Puts the rest of the current batch back, if it is of this partition."""
        batch = self.cursor.batch
        if batch is None or _place_of(batch.lease) != place:
            return
        if self.settings.auto_settle:
            self._settle_done()
        self._note_handed()
        if rest := self.cursor.drop():
            self._buffer.extendleft(reversed(rest.held()))

    def _ranges_of(self, what: Delivered | DeliveredBatch) -> list[Range]:
        if isinstance(what, Delivered):
            return [(what.ledger_offset, what.ledger_offset + 1)]
        lease, first, end = what.lease, what.first_offset, what.end_offset
        lost = lease.lost.within(first, end) if lease.lost is not None else []
        return lease.held.within(first, end) + lost

    def _note_handed(self) -> None:
        """Remembers what of the current batch is handed out."""
        batch = self.cursor.batch
        if batch is not None and (handed := self.cursor.take_handed()):
            self._handed.append((batch.lease, *handed))
            self._note_position(batch.lease, handed[1])

    def _settle_asked(self) -> None:
        """Hears that the next one is asked for: all that is handed out is done."""
        self._note_handed()
        if self.settings.auto_settle:
            handed, self._handed = self._handed, []
            for lease, first, end in handed:
                if ranges := lease.held.within(first, end):
                    self._outbox.note_ranges_done(lease, ranges)
        elif len(self._handed) > KEPT_RANGES:
            self._handed = [one for one in self._handed if one[0].held.within(*one[1:])]

    def _settle_done(self) -> None:
        """Settles what is done of the current batch, and leaves the record handed out last."""
        batch = self.cursor.batch
        if batch is not None and (done := self.cursor.take_done()):
            self._note_position(batch.lease, done[1])
            if ranges := batch.lease.held.within(*done):
                self._outbox.acknowledge_ranges(batch.lease, ranges)

    async def _settle_as_it_goes(self) -> None:
        """Tells the broker, while a batch is read, how far that is."""
        while self.settings.auto_settle:
            await self._has_begun.wait()
            self._has_begun.clear()
            while self.cursor.left:
                await self._clock.wait_until(self._clock.monotonic_ms() + SETTLE_MS)
                self._settle_done()

    def _note_position(self, lease: Lease, end: int) -> None:
        if not lease.dead_letter_topic:
            self._positions[_place_of(lease)] = end

    def _suspend(self) -> None:
        """Gives back what nobody has asked for in a long time, and wants nothing more."""
        if not self._is_suspended:
            self._is_suspended = True
            self._member.set_limits(0, 0)
            for batch in self._buffer:
                self._member.release(batch.lease, [(batch.first_offset, batch.end_offset)])
            self._buffer.clear()

    def _check_open(self) -> None:
        self._connection.check_open()
        if self._is_closed:
            raise PreconditionError("CLIENT_CLOSED", "this consumer has been closed")

    async def _wait(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)


class DeliveredBatches(AsyncIterator[DeliveredBatch]):
    """Iterates over a consumer's batches. A cancelled wait loses nothing."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    async def __anext__(self) -> DeliveredBatch:
        batch = await self._consumer.next_batch()
        if batch is None:
            raise StopAsyncIteration
        return batch


def _lease_of(what: Delivered | DeliveredBatch) -> Lease:
    return what.run.lease if isinstance(what, Delivered) else what.lease


def _place_of(lease: Lease) -> TopicPartition:
    return TopicPartition(lease.topic, lease.partition)
