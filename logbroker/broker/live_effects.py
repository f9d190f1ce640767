"""What an event means for those who are there: it is applied, and members are told what they lost.

What may have made records available has its ledger looked into.
"""

from collections.abc import Callable, Mapping, Sequence

import structlog

from logbroker.broker.ledger_timer import LedgerTimer
from logbroker.broker.live_group import LiveGroup
from logbroker.broker.partitions import Partition
from logbroker.errors import LogbrokerError
from logbroker.group.events import InLedger, LedgerId
from logbroker.group.lease_table import Lease
from logbroker.group.ledger import Ledger
from logbroker.group.ledger_events import (
    Acknowledged,
    Committed,
    Discarded,
    Extended,
    Failed,
    GivenUp,
    Leased,
    LedgerEvent,
    LettersWritten,
    Moment,
    Released,
    Reset,
    Skipped,
    Suspected,
    Trimmed,
)
from logbroker.group.ledgers import Ledgers
from logbroker.group.progress import has_nothing_to_give
from logbroker.group.retry_policy import Exhausted
from logbroker.record.offset_ranges import OffsetRanges, Range

Answered = dict[int, OffsetRanges]
"""By token, what a member has just answered for, which need not be taken back from it."""

SAID = {
    Exhausted.DISCARD: "records discarded",
    Exhausted.BLOCK: "records blocked, an operator is needed",
}

GIVING_NOTHING = (Leased, Extended, LettersWritten)
"""What makes nothing available."""

RESOLVING = (Acknowledged, Discarded, Trimmed, Skipped)
"""What settles dead letters in their ledger."""

log = structlog.get_logger()


class LiveEffects:
    """Of events in ledgers."""

    def __init__(
        self,
        state: Ledgers,
        live: Mapping[str, LiveGroup],
        timer: LedgerTimer,
        partition: Callable[[LedgerId], Partition],
    ) -> None:
        """`partition` returns the one a ledger is of, or raises LogbrokerError."""
        self._state = state
        self._live = live
        self._timer = timer
        self._partition = partition
        self.on_resolved: Callable[[LedgerId], None] = lambda _: None

    def apply(self, told: InLedger, now: Moment, answered: Answered | None) -> None:
        """Applies an event of a ledger, and tells members what they lost and may look into."""
        ledger_id, event = told
        ledger = self._state.get(ledger_id)
        live = self._live.get(ledger_id.group)
        if ledger is None or live is None:
            self._state.apply(told, now)
            ledger = self._state.get(ledger_id)
        else:
            match event:
                case Leased(token, member, ranges, _, is_suspect):
                    self._state.apply(told, now)
                    count = sum(end - first for first, end in ranges)
                    live.granted(ledger_id, token, member, count, is_suspect=is_suspect)
                case Acknowledged() | Failed() | GivenUp() | Released() | Suspected():
                    lease = ledger.state.leases.get(event.token)
                    self._apply_to_lease(told, now, live, lease)
                    if lease and not isinstance(event, Acknowledged):
                        self._take_back(ledger_id, live, lease, event.ranges, answered)
                case Committed() | Reset() | Trimmed() | Skipped():
                    self._apply_to_leases(told, now, live, ledger.state.leases.all())
                case _:
                    self._state.apply(told, now)
            if self._may_give(event, ledger_id, ledger, live):
                live.look_into(ledger_id)
        if ledger and ledger.state.is_parked_from_birth and isinstance(event, RESOLVING):
            self.on_resolved(ledger_id)
        if ledger:
            self._timer.arm(ledger_id, ledger.next_deadline_ms())

    def _may_give(
        self, event: LedgerEvent, ledger_id: LedgerId, ledger: Ledger, live: LiveGroup
    ) -> bool:
        """Returns whether there may be something to lease after this event."""
        if not isinstance(event, Acknowledged):
            return not isinstance(event, GIVING_NOTHING)
        if ledger_id not in live.watched:
            return True  # nobody would hear of more
        try:
            mark = self._partition(ledger_id).log.bounds().high_watermark
        except LogbrokerError:
            return False
        return not has_nothing_to_give(ledger, mark)

    def _apply_to_lease(
        self, told: InLedger, now: Moment, live: LiveGroup, lease: Lease | None
    ) -> None:
        """Applies what ends a lease, or a part of it."""
        had = lease.held.count if lease else 0
        self._state.apply(told, now)
        if lease and lease.held.count < had:
            count = had - lease.held.count
            live.gave(lease.member, lease.token, count, is_over=not lease.held)

    def _take_back(
        self,
        ledger_id: LedgerId,
        live: LiveGroup,
        lease: Lease,
        ranges: Sequence[Range],
        answered: Answered | None,
    ) -> None:
        """Tells a member that it lost the ranges, but for those which it has just answered for."""
        known = answered.get(lease.token) if answered else None
        if known:
            ranges = [gap for first, end in ranges for gap in known.gaps(first, end)]
        if ranges:
            live.take_back(lease.member, ledger_id, lease.token, list(ranges))

    def _apply_to_leases(
        self, told: InLedger, now: Moment, live: LiveGroup, leases: Sequence[Lease]
    ) -> None:
        """Applies what may end any lease, or a part of it, and tells the members of it."""
        before = [(lease, lease.held.copy()) for lease in leases]
        self._state.apply(told, now)
        for lease, had in before:
            count = had.count - lease.held.count
            if not count:
                continue
            live.gave(lease.member, lease.token, count, is_over=not lease.held)
            for first, end in lease.held.ranges():
                had.remove(first, end)
            live.take_back(lease.member, told.ledger, lease.token, had.ranges())

    def say_given_up(self, ledger_id: LedgerId, event: GivenUp) -> None:
        """Logs what nobody finds in a dead-letter topic."""
        if event.outcome not in SAID:
            return
        ledger = self._state.get(ledger_id)
        if ledger and not ledger.state.is_parked_from_birth:
            log.warning(
                SAID[event.outcome],
                ledger=ledger_id,
                ranges=event.ranges,
                failures=event.failures,
                reason=event.reason,
            )
