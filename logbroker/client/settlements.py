"""Answers on their way to the broker: gathered, sent as ranges, confirmed.

What is acknowledged one by one costs a list entry and an awaitable for each record, and
travels as ranges: all of one lease that come before the stream takes them are one `Turn`.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, NamedTuple

from logbroker.client.lease import Lease
from logbroker.client.logs import ClientLog
from logbroker.errors import (
    ConflictError,
    LogbrokerError,
    OutcomeUnknownError,
    PreconditionError,
)
from logbroker.record.offset_ranges import OffsetRanges, Range
from logbroker.v1 import consume_service_pb2 as pb
from logbroker.wire.status import error_from

REQUESTS_UNDER_WAY = 4
"""What comes while so many are not answered is gathered, and goes as one."""
REQUEST_ENTRIES = 8_192
"""The most ranges in one request..."""
OTHER_COST = 8
"""... where each that is not acknowledged counts as so many: it is larger, and more work."""
ANY_END = 1 << 63
"""One past the last offset there can be."""

log = ClientLog(__name__)


class Turn:
    """Answers of one kind for records of one lease. Confirmed or refused range by range."""

    __slots__ = ("_waiters", "delay_ms", "errors", "lease", "may_wait", "offsets", "on_done",
                 "open_count", "outcome", "ranges", "reason")  # fmt: skip

    def __init__(
        self, lease: Lease, outcome: pb.Outcome, delay_ms: int | None = None, reason: str = ""
    ) -> None:
        self.lease = lease
        self.outcome = outcome
        self.delay_ms = delay_ms
        self.reason = reason
        self.may_wait = False
        """Nobody waits for what is in it so far."""
        self.offsets: list[int] = []
        """Single ones, in the order in which they came."""
        self.ranges: list[Range] = []
        self.open_count = 1
        """Ranges not answered; 1 more until it is sent."""
        self.errors: list[tuple[int, int, LogbrokerError]] = []
        self.on_done: Callable[[], None] | None = None
        """Called when all is answered."""
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def is_done(self) -> bool:
        """Whether all is answered."""
        return self.open_count == 0

    def close(self, count: int = 1) -> None:
        """Takes note of answers; with the last one, wakes who waits."""
        self.open_count -= count
        if self.open_count == 0:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)
            if self.on_done is not None:
                self.on_done()

    def forked(self) -> None:
        """Refuses all, and wakes nobody: in a child process, who waits is the parent's."""
        if self.lease.turn is self:
            self.lease.turn = None
        message = "this answer was given in another process"
        self.errors.append((0, ANY_END, PreconditionError("CLIENT_CLOSED", message)))
        self._waiters, self.open_count = [], 0

    async def wait_done(self) -> None:
        """Returns once all is answered."""
        if not self.is_done:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def error_at(self, offset: int | None) -> LogbrokerError | None:
        """Returns the error of this record, or the first one; None if there is none."""
        for first, end, error in self.errors:
            if offset is None or first <= offset < end:
                return error.again()
        return None

    def gathered(self) -> list[Range]:
        """Returns everything it is about as ranges, ascending and apart."""
        found = list(self.ranges)
        if self.offsets:
            self.offsets.sort()
            first = end = self.offsets[0]
            for offset in self.offsets:
                if offset == end:
                    end += 1
                elif offset > end:
                    found.append((first, end))
                    first, end = offset, offset + 1
            found.append((first, end))
        return OffsetRanges(found).ranges() if self.ranges else found


class PendingSettlement:
    """An answer that is on its way. Await it to know that the broker has it for good.

    Awaiting raises ConflictError LEASE_LOST where the lease was over before: the record may be
    with another member, and will be or is handled again; OutcomeUnknownError where the
    connection broke before the answer. It may be awaited as often as one likes, or never.
    """

    __slots__ = ("_offset", "_turn")

    def __init__(self, turn: Turn, offset: int | None) -> None:
        self._turn = turn
        self._offset = offset

    def __await__(self) -> Generator[Any, None, None]:
        if not self._turn.is_done:
            yield from self._turn.wait_done().__await__()
        if error := self._turn.error_at(self._offset):
            raise error

    def done(self) -> bool:
        """Tells whether it is confirmed or refused."""
        return self._turn.is_done

    def error(self) -> LogbrokerError | None:
        """Returns why it is refused, or not known; None if it is confirmed or open."""
        return self._turn.error_at(self._offset) if self._turn.is_done else None


class Entry(NamedTuple):
    """One range under way."""

    turn: Turn
    first: int
    end: int
    ends_request: bool


class Outbox:
    """Takes answers, gives them to the stream, and takes the broker's."""

    def __init__(
        self,
        wake: Callable[[], None],
        *,
        wake_later: Callable[[], None],
        note_lost: Callable[[Lease, Range], None],
        note_reopened: Callable[[Lease], None],
        retry_later: Callable[[Turn, Range, LogbrokerError], None],
    ) -> None:
        """`wake` is called when there is something to take, `wake_later` when it may wait a bit.

        `note_lost` hears of ranges that were answered too late, `note_reopened` of leases of
        which something was taken that is not done. `retry_later` gets what the broker could
        not do now, and gives it to `put_back`.
        """
        self.settled_count = 0
        self.lost_count = 0
        self.committed: dict[tuple[str, int], int] = {}
        """By topic and partition, as far as the broker has told."""
        self._wake = wake
        self._wake_later = wake_later
        self._note_lost = note_lost
        self._note_reopened = note_reopened
        self._retry_later = retry_later
        self._is_due = False
        """Something there is may not wait for more."""
        self._turns: list[Turn] = []
        self._ready: deque[tuple[Turn, int, int]] = deque()
        self._under_way: deque[Entry] = deque()
        self._requests = 0
        self._resting: list[Turn] = []
        """Turns of which the broker could not take a range just now."""

    def begin(self, lease: Lease, *, may_wait: bool = False) -> Turn:
        """Gathers acknowledgements for a lease, from now or from before, and returns where."""
        turn = lease.turn
        if turn is None:
            turn = lease.turn = Turn(lease, pb.OUTCOME_ACKNOWLEDGE)
            self._turns.append(turn)
        turn.may_wait = may_wait
        if may_wait:
            self._wake_later()
        else:
            self.hurry()
        return turn

    def hurry(self) -> None:
        """Lets what there is go without waiting for more."""
        self._is_due = True
        self._wake()

    def note_done(self, lease: Lease, offset: int) -> None:
        """Takes a record that is done, where nobody waits to hear that this is kept."""
        turn = lease.turn or self.begin(lease, may_wait=True)
        turn.offsets.append(offset)

    def note_ranges_done(self, lease: Lease, ranges: Iterable[Range]) -> None:
        """Takes ranges that are done, where nobody waits to hear that this is kept."""
        turn = lease.turn or self.begin(lease, may_wait=True)
        turn.ranges += ranges

    def acknowledge_ranges(self, lease: Lease, ranges: Iterable[Range]) -> PendingSettlement:
        """Takes ranges that are done."""
        turn = self.begin(lease)
        turn.ranges += ranges
        return PendingSettlement(turn, None)

    def answer(
        self,
        lease: Lease,
        ranges: Sequence[Range],
        outcome: pb.Outcome,
        *,
        delay_ms: int | None = None,
        reason: str = "",
    ) -> Turn:
        """Takes another answer than done."""
        turn = Turn(lease, outcome, delay_ms, reason)
        turn.ranges += ranges
        self._turns.append(turn)
        self.seal()  # what is acknowledged first goes first, and what is held is known
        self.hurry()
        return turn

    def take(self) -> pb.Settlements | None:
        """Returns what is to be sent now; None if that is nothing."""
        if not self._is_due:
            return None
        self.seal()
        self._is_due = bool(self._ready)
        if not self._ready or self._requests >= REQUESTS_UNDER_WAY:
            return None
        settlements = pb.Settlements()
        add = settlements.settlements.add
        room = REQUEST_ENTRIES
        while room > 0 and self._ready:
            turn, first, end = self._ready.popleft()
            room -= 1 if turn.outcome == pb.OUTCOME_ACKNOWLEDGE else OTHER_COST
            add(
                token=turn.lease.token,
                first_offset=first,
                end_offset=end,
                outcome=turn.outcome,
                delay_ms=turn.delay_ms,
                reason=turn.reason,
            )
            self._under_way.append(Entry(turn, first, end, not self._ready or room <= 0))
        self._requests += 1
        self._is_due = bool(self._ready)
        return settlements

    def take_answers(self, results: Iterable[pb.SettleResult]) -> None:
        """Takes the broker's answers, which come in order."""
        for result in results:
            turn, first, end, ends_request = self._under_way.popleft()
            lease = turn.lease
            lease.unanswered_count -= 1
            if ends_request:
                self._requests -= 1
            if result.HasField("error"):
                self._take_error(turn, first, end, error_from(result.error))
            else:
                self.settled_count += end - first
                if not lease.dead_letter_topic:
                    self.committed[lease.topic, lease.partition] = result.committed_offset
                if turn.outcome != pb.OUTCOME_ACKNOWLEDGE:
                    self._note_reopened(lease)
                turn.close()
        self._wake()

    def put_back(self, turn: Turn, range_: Range) -> None:
        """Takes what the broker could not do before; it is sent again."""
        self._resting.remove(turn)
        if turn.lease.is_gone:
            self._refuse(turn, *range_, lease_lost(turn.lease))
            turn.lease.unanswered_count -= 1
            turn.close()
        else:
            self._ready.append((turn, *range_))
        self.hurry()

    def lose_connection(self) -> None:
        """Fails everything: the leases are gone with the stream."""
        self.seal()
        message = "the answer was sent, and the connection lost before it was confirmed"
        unknown = OutcomeUnknownError("OUTCOME_UNKNOWN", message)
        for turn, first, end, _ in self._under_way:
            turn.errors.append((first, end, unknown))
            turn.lease.unanswered_count -= 1
            turn.close()
        for turn, first, end in self._ready:
            self._refuse(turn, first, end, lease_lost(turn.lease))
            turn.lease.unanswered_count -= 1
            turn.close()
        self._under_way.clear()
        self._ready.clear()
        self._requests = 0

    def forked(self) -> None:
        """Forgets what is on its way: in a child process it is the parent's."""
        for turn in self._open_turns():
            turn.forked()
        for kept in (self._turns, self._ready, self._under_way, self._resting):
            kept.clear()

    @property
    def is_idle(self) -> bool:
        """Whether everything is answered."""
        return not (self._turns or self._ready or self._under_way or self._resting)

    async def wait_answered(self) -> None:
        """Returns once everything taken so far is answered."""
        self.hurry()
        for turn in self._open_turns():
            await turn.wait_done()

    def seal(self) -> None:
        """Turns what was gathered into ranges that are ready to go."""
        turns, self._turns = self._turns, []
        for turn in turns:
            lease = turn.lease
            if lease.turn is turn:
                lease.turn = None
            for first, end in turn.gathered():
                lost = lease.lost.within(first, end) if lease.lost is not None else []
                lost = [(first, end)] if lease.is_gone else lost
                for range_ in lost:
                    self._refuse(turn, *range_, lease_lost(lease))
                left = OffsetRanges(lost).gaps(first, end) if lost else [(first, end)]
                for start, stop in left:
                    lease.held.remove(start, stop)
                    lease.unanswered_count += 1
                    turn.open_count += 1
                    self._ready.append((turn, start, stop))
            turn.close()

    def _open_turns(self) -> list[Turn]:
        sealed = [*(entry.turn for entry in self._under_way), *(one[0] for one in self._ready)]
        return list(dict.fromkeys([*self._turns, *sealed, *self._resting]))

    def _take_error(self, turn: Turn, first: int, end: int, error: LogbrokerError) -> None:
        lease = turn.lease
        if error.may_retry:
            lease.unanswered_count += 1
            self._resting.append(turn)
            self._retry_later(turn, (first, end), error)
            return
        whole = lease.lost is not None and lease.lost.holds(first, end)
        if error.reason == "LEASE_LOST" and end - first > 1 and not whole and not lease.is_gone:
            # One record of many is lost: the others are settled by themselves.
            middle = (first + end) // 2
            lease.unanswered_count += 2
            turn.open_count += 1
            self._ready.extend([(turn, first, middle), (turn, middle, end)])
            self._is_due = True
            return
        self._refuse(turn, first, end, error)
        turn.close()

    def _refuse(self, turn: Turn, first: int, end: int, error: LogbrokerError) -> None:
        turn.errors.append((first, end, error))
        self.lost_count += end - first
        lease = turn.lease
        log.info(
            "answer came too late", topic=lease.topic, partition=lease.partition,
            offset=first, end_offset=end, reason=error.reason,
        )  # fmt: skip
        self._note_lost(lease, (first, end))


def lease_lost(lease: Lease) -> ConflictError:
    """Returns the error of an answer that came too late."""
    message = f"lease {lease.token} on {lease.topic}/{lease.partition} is over"
    return ConflictError("LEASE_LOST", message, token=lease.token)
