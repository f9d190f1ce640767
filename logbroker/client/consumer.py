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
from collections.abc import Callable
from types import TracebackType
from typing import Self

from logbroker.client.audience import TopicPartition
from logbroker.client.batch_iterator import BatchIterator
from logbroker.client.connection import Connection
from logbroker.client.consumer_settings import ConsumerSettings, Settle
from logbroker.client.consumer_stats import ConsumerStats, LostRecords
from logbroker.client.delivered import Delivered, DeliveredBatch, Run
from logbroker.client.forks import tell_of_forks
from logbroker.client.handed_out import HandedOut, answerable, lease_of, place_of
from logbroker.client.lease import Lease
from logbroker.client.membership import LEAVE_MS, Membership
from logbroker.client.prefetched import Prefetched
from logbroker.client.processing_watch import ProcessingWatch
from logbroker.client.settlements import PendingSettlement, Turn
from logbroker.client.topics import get_topic
from logbroker.client.waiters import Waiters
from logbroker.errors import InvalidError, LogbrokerError, PreconditionError
from logbroker.group.settings import Order
from logbroker.record.offset_ranges import Range
from logbroker.v1 import consume_service_pb2 as pb


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
        self._member = Membership(connection, settings, self)
        self._outbox = self._member.outbox
        self._prefetched = Prefetched()
        self._handed_out = HandedOut(
            self._outbox, connection.clock, auto_settle=settings.auto_settle
        )
        self.cursor = self._handed_out.cursor
        self._settling: tuple[DeliveredBatch, PendingSettlement] | None = None
        self._partitions: set[TopicPartition] = set()
        self._waiters = Waiters()
        self._ticking: asyncio.Task[None] | None = None
        self._delivered_count = 0
        self._is_closed = False
        now_ms = connection.clock.monotonic_ms()
        self._watch = ProcessingWatch(settings, self._member, self._prefetched, now_ms)
        tell_of_forks(self)

    async def open(self) -> Self:
        """Returns once it is a member of its group. Raises why it is not."""
        self._check_open()
        if self._ticking is None:
            self._ticking = asyncio.create_task(self._handed_out.settle_as_it_goes())
        await self._member.join()
        if not self.settings.follow and not self._partitions:
            for name in self.settings.topics:
                topic = await get_topic(self._connection, name)
                numbers = range(topic.partition_count)
                self._partitions |= {TopicPartition(name, number) for number in numbers}
        return self

    async def close(self, timeout_ms: int = LEAVE_MS) -> None:
        """Settles what counts as done, gives back the rest, and leaves the group.

        It waits no longer than `timeout_ms` for the broker. Cancelled meanwhile, it goes on in the
        background; closing again waits for that.
        """
        if not self._is_closed:
            self._is_closed = True
            if self._ticking:
                self._ticking.cancel()
            self._handed_out.put_away()
            self._prefetched.clear()
            self.wake()
        await self._member.leave(timeout_ms)

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
        return self._outbox.acknowledge_ranges(lease_of(what), answerable(what))

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
        pending = self._handed_out.acknowledge()
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
        self._prefetched.paused.add(TopicPartition(topic, partition))
        self._put_away(TopicPartition(topic, partition))

    def resume(self, topic: str, partition: int) -> None:
        """Goes on with a partition."""
        self._prefetched.paused.discard(TopicPartition(topic, partition))
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
        return frozenset(self._member.held.caught_up)

    def positions(self) -> dict[TopicPartition, int]:
        """Returns, of each partition it got records of, one past the last one handed out."""
        return self._handed_out.positions()

    def committed_offsets(self) -> dict[TopicPartition, int]:
        """Returns the committed offsets of the group, as of the last answers to this member."""
        return {TopicPartition(*place): at for place, at in self._outbox.committed.items()}

    def stats(self) -> ConsumerStats:
        """Returns what it has done so far."""
        return ConsumerStats(
            member_id=self._member.member_id,
            joined_count=self._member.joined_count,
            delivered_count=self._delivered_count,
            settled_count=self._outbox.settled_count,
            lost_count=self._member.lost_count,
            buffered_count=self._prefetched.record_count + self.cursor.left,
        )

    # Iterating

    def batches(self) -> BatchIterator[DeliveredBatch]:
        """Returns an iterator over batches: the fastest way. A batch is done as a whole."""
        return BatchIterator(self.next_batch)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delivered:
        # A cancelled wait loses nothing: what came stays here until it is handed out.
        for record in self.cursor.records:
            return record
        return await self._next_record()

    async def next_batch(self) -> DeliveredBatch | None:
        """Returns the next batch, or what is left of the one being read; None at the end."""
        self._handed_out.note_asked()
        batch = self.cursor.drop() or await self._next_batch()
        if batch is not None:
            self._handed_out.note_whole(batch)
        return batch

    async def begin_next(self) -> bool:
        """Puts the cursor at the next batch; returns whether there is one, False at the end."""
        self._handed_out.note_asked()
        while (batch := await self._next_batch()) is not None:
            if self._handed_out.begin(batch):
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
        self._prefetched.add(batch)
        self.wake()

    def drop(self) -> None:
        """Hears that leases are lost, and drops what is not held any more."""
        self.cursor.cut()
        self._prefetched.drop_lost()
        self.wake()

    def forked(self) -> None:
        """Hands out nothing from now on: this is a child process, the records are its parent's."""
        self._is_closed = True
        self._handed_out.forked()
        self._prefetched.clear()
        self._settling = None

    def note_lost(self, lease: Lease, range_: Range) -> None:
        """Hears of answers that came too late."""
        if self.on_lost is not None:
            self.on_lost(LostRecords(lease.topic, lease.partition, *range_))

    def wake(self) -> None:
        """Wakes who waits."""
        self._waiters.wake()

    def may_extend(self, lease: Lease, now_ms: int) -> bool:
        """Tells whether its reader is alive: asks for records, or settles some, often enough."""
        batch = self.cursor.batch
        signs = (
            self.cursor.handed,
            batch.first_offset if batch else -1,
            len(self._prefetched),
            self._outbox.settled_count,
            self._delivered_count,
        )
        return self._watch.is_alive(signs, now_ms, is_waiting=bool(self._waiters))

    # Details

    async def _next_record(self) -> Delivered:
        while await self.begin_next():
            for record in self.cursor.records:
                return record
        raise StopAsyncIteration

    async def _next_batch(self) -> DeliveredBatch | None:
        await self.open()
        self._watch.go_on()
        while True:
            if self._settling is not None:
                if (settled := await self._wait_settled(*self._settling)) is not None:
                    return settled
            elif (batch := self._prefetched.pop()) is not None:
                if self.settings.settle != Settle.BEFORE:
                    return batch
                pending = self.acknowledge(batch)
                self._settling = batch, pending
            elif self._member.failure is not None:
                raise self._member.failure.again()
            elif not self.settings.follow and self._has_caught_up():
                return None
            else:
                await self._waiters.wait()
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

    def _has_caught_up(self) -> bool:
        member = self._member
        wanted = self._partitions
        if self.order is Order.PARTITION:
            if member.assignment is None:
                return False
            wanted = set(member.assignment)
        return wanted <= member.held.caught_up and self._outbox.is_idle and not self._prefetched

    def _answer(
        self,
        what: Delivered | DeliveredBatch,
        outcome: pb.Outcome,
        delay_ms: int | None,
        reason: str,
    ) -> PendingSettlement:
        lease = lease_of(what)
        self._handed_out.settle_done()  # what is done goes before what is not
        turn = self._outbox.answer(
            lease, answerable(what), outcome, delay_ms=delay_ms, reason=reason
        )
        if not turn.is_done and self.order is Order.PARTITION:
            self._stall(place_of(lease), turn)
        return PendingSettlement(turn, None)

    def _stall(self, place: TopicPartition, turn: Turn) -> None:
        """Hands out nothing more of a partition until it is known what is taken back."""

        def end() -> None:
            if self._prefetched.go_on(place):
                self.wake()

        self._prefetched.stall(place)
        turn.on_done = end
        self._put_away(place)

    def _put_away(self, place: TopicPartition) -> None:
        """Puts the rest of the current batch back, if it is of this partition."""
        batch = self.cursor.batch
        if batch is None or place_of(batch.lease) != place:
            return
        if rest := self._handed_out.put_away():
            self._prefetched.put_back(rest.held())

    def _check_open(self) -> None:
        self._connection.check_open()
        if self._is_closed:
            raise PreconditionError("CLIENT_CLOSED", "this consumer has been closed")
