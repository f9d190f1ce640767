"""A group's progress on one partition, rebuilt by applying events. Pure.

    every offset below `committed` is settled; `committed` itself is not
    settled, parked, waiting, suspects and what leases hold do not overlap; `taken` is all of
    these, and an offset from `committed` on that is not in it is available
    marks: suspects, and those of them that are leased or wait
    nothing from `delivered_end` on was ever delivered, but what is parked from birth

Applying never fails: an event takes its ranges out of whatever state they are in, so that a
journal that damage cut a piece out of still makes a ledger of what is left.
"""

from collections.abc import Callable, Iterable
from sys import intern
from typing import Any, NamedTuple

from logbroker.group.deliveries import Deliveries
from logbroker.group.key_order import KeyOrder
from logbroker.group.last_failures import Failure, LastFailures
from logbroker.group.lease_table import EndedLeases, Lease, LeaseTable
from logbroker.group.ledger_events import (
    Acknowledged,
    Committed,
    Delivered,
    Discarded,
    Due,
    Extended,
    Failed,
    FailureRow,
    FailuresRestored,
    GivenUp,
    KeyReleased,
    LastFailuresRestored,
    Leased,
    LedgerEvent,
    LedgerRestored,
    LetterPending,
    LettersWritten,
    Moment,
    Ranges,
    Redriven,
    Released,
    Reset,
    Skipped,
    Started,
    Suspected,
    Trimmed,
)
from logbroker.group.offset_counts import OffsetCounts
from logbroker.group.record_state import FAILURES, State
from logbroker.group.retry_policy import Exhausted
from logbroker.group.waiting import Waiting
from logbroker.limits import REDRIVE_RUNS
from logbroker.record.offset_ranges import OffsetRanges

ENDLESS = 1 << 62
"""Beyond every offset."""


TIDY_EVERY = 64
"""How far the committed offset moves between two times that what is behind it is dropped."""


class Counters(NamedTuple):
    """What happened here since the group began."""

    has_progress: int = 0
    """Whether anything was ever settled, committed or reset: there is a commit to speak of."""
    failures: int = 0
    dead_letters: int = 0
    discarded: int = 0
    expired_unsettled: int = 0
    skipped: int = 0
    resets: int = 0
    letters_written: int = 0
    """Of the dead letters, those known to have come to a dead-letter topic, deleted or not."""


class LedgerState:
    """Changes by `apply` alone, live and at replay alike."""

    def __init__(
        self, *, is_parked_from_birth: bool = False, ended_leases: EndedLeases | None = None
    ) -> None:
        self.is_parked_from_birth = is_parked_from_birth
        self.keys: KeyOrder | None = None
        self.counters = Counters()
        self.log_start_offset = 0
        """As far as retention is known to have gone."""
        self.held: dict[int, bytes | None] = {}
        """Dead letters that hold what is behind them: where they lay, and their key."""
        self._apply: dict[type[Any], Callable[[Any, Moment], None]] = {
            Started: self._started,
            Leased: self._leased,
            Delivered: self._delivered,
            Extended: self._extended,
            Acknowledged: self._acknowledged,
            Failed: self._failed,
            GivenUp: self._given_up,
            LetterPending: lambda event, now: None,  # who writes dead letters takes note
            LettersWritten: self._letters_written,
            Released: self._released,
            Suspected: self._suspected,
            Due: self._due,
            Committed: self._committed,
            Reset: self._reset,
            Trimmed: self._trimmed,
            Skipped: self._skipped,
            Redriven: self._redriven,
            Discarded: self._discarded,
            KeyReleased: self._key_released,
            LedgerRestored: self._restored,
            FailuresRestored: self._failures_restored,
            LastFailuresRestored: self._last_failures_restored,
        }
        self.leases = LeaseTable(ended_leases)
        self._begin_at(0)

    def apply(self, event: LedgerEvent, now: Moment) -> None:
        """Takes in one event, at the moment it was decided or is replayed."""
        self._apply[type(event)](event, now)

    def has_keys(self, has_keys: bool) -> None:
        """Begins to follow keys, which are learned from the committed offset on, or ends it."""
        self.keys = KeyOrder(self.committed) if has_keys else None
        if self.keys:
            for offset, key in self.held.items():
                if key is not None:
                    self.keys.hold(offset, key)

    def learn_keys(self, first: int, keys: Iterable[bytes | None]) -> None:
        """Takes in the keys of the records from `first` on, a view of the log and no event."""
        if not self.keys:
            return
        known = list(keys)
        if not self.is_parked_from_birth:
            self.keys.learn(first, known, self.settled, self.taken)
            return
        for start, stop in self.parked.gaps(first, first + len(known)):
            self.keys.learn(start, known[start - first : stop - first], self.settled, self.taken)

    @property
    def open_count(self) -> int:
        """Returns how many records above the committed offset are open: begun, not settled."""
        end = max(self.delivered_end, self.committed)
        count = end - self.committed - self.settled.count
        if self.is_parked_from_birth:
            count -= self.parked.count_within(self.committed, end)
        return count

    def state_of(self, offset: int) -> State:
        """Returns where a record stands. Looks at every lease; nothing that is in a hurry asks."""
        if offset < self.committed or offset in self.settled:
            return State.SETTLED
        if offset in self.waiting.offsets:
            return State.WAITING
        if offset in self.parked:
            return State.PARKED
        if offset in self.suspects:
            return State.SUSPECT
        return State.LEASED if offset in self.taken else State.AVAILABLE

    # What happened

    def _started(self, event: Started, now: Moment) -> None:
        self._begin_at(event.offset)

    def _leased(self, event: Leased, now: Moment) -> None:
        self._tidy()
        token, member, ranges, deadline_ms, is_suspect = event
        self._deliver(ranges)
        self.taken.add_all(ranges)
        if self.keys:
            self.keys.take(ranges)
        if is_suspect:
            for first, end in ranges:
                self.suspects.remove(first, end)
        self.leases.grant(Lease(token, member, ranges, deadline_ms, is_suspect))

    def _delivered(self, event: Delivered, now: Moment) -> None:
        self._tidy()
        self._deliver(event.ranges)
        for first, end in event.ranges:
            if self.waiting.offsets.meets(first, end):
                waited = self.waiting.offsets.within(first, end)
                self.waiting.remove(first, end)
                self._free(waited)

    def _extended(self, event: Extended, now: Moment) -> None:
        self.leases.extend(event.token, event.deadline_ms)

    def _acknowledged(self, event: Acknowledged, now: Moment) -> None:
        self.leases.settle(event.token, event.ranges)
        self._settle(event.ranges)

    def _failed(self, event: Failed, now: Moment) -> None:
        self._take_out(event.token, event.ranges)
        for first, end in event.ranges:
            (self.marks.add if event.is_suspect else self.marks.remove)(first, end)
        self._wait(event.ranges, event.at_ms, event.delay_ms, now)
        self._note_failures(event)
        self._count(failures=1, ranges=event.ranges)

    def _given_up(self, event: GivenUp, now: Moment) -> None:
        self._take_out(event.token, event.ranges)
        if event.outcome is Exhausted.BLOCK:
            self._note_failures(event)
        self.marks.remove_all(event.ranges)
        if event.outcome is Exhausted.BLOCK:
            self.taken.add_all(event.ranges)
            self.parked.add_all(event.ranges)
            if self.keys and self.is_parked_from_birth:
                self.keys.settle(event.ranges, self.taken)
        else:
            self._settle(event.ranges)
        if event.holds:
            self._hold(event.ranges[0][0], event.key)
        if event.cause in FAILURES:
            self._count(failures=1, ranges=event.ranges)
        match event.outcome:
            case Exhausted.DEAD_LETTER:
                self._count(dead_letters=1, ranges=event.ranges)
            case Exhausted.DISCARD:
                self._count(discarded=1, ranges=event.ranges)
            case Exhausted.BLOCK:
                pass

    def _letters_written(self, event: LettersWritten, now: Moment) -> None:
        written = max(event.end, self.counters.letters_written)
        known = max(written, self.counters.dead_letters)  # damage may have taken some
        self.counters = self.counters._replace(letters_written=written, dead_letters=known)

    def _released(self, event: Released, now: Moment) -> None:
        self.leases.lose(event.token, event.ranges)
        self._free(event.ranges)

    def _suspected(self, event: Suspected, now: Moment) -> None:
        self._take_out(event.token, event.ranges)
        for first, end in event.ranges:
            self.marks.add(first, end)
        self._free(event.ranges)

    def _due(self, event: Due, now: Moment) -> None:
        due = OffsetRanges((*event.ranges, *self.waiting.finish(now.mono_ms)))
        for first, end in event.ranges:
            self.waiting.remove(first, end)
        self._free(due.ranges())

    def _committed(self, event: Committed, now: Moment) -> None:
        self.leases.lose_below(event.offset)
        if self.committed < event.offset:
            self._settle(((self.committed, event.offset),))
        self._has_progress()

    def _reset(self, event: Reset, now: Moment) -> None:
        self.leases.lose_all()
        self._begin_at(event.offset)
        self.held = {}
        self.has_keys(self.keys is not None)
        self._has_progress()
        self.counters = self.counters._replace(resets=self.counters.resets + 1)

    def _trimmed(self, event: Trimmed, now: Moment) -> None:
        offset, expired = event
        self.leases.lose_below(offset)
        if self.committed < offset:
            self._settle(((self.committed, offset),))
        self.log_start_offset = max(self.log_start_offset, offset)
        self.last_failures.drop_below(offset)
        expired += self.counters.expired_unsettled
        self.counters = self.counters._replace(expired_unsettled=expired)

    def _skipped(self, event: Skipped, now: Moment) -> None:
        self._take_out(0, event.ranges)
        self._settle(event.ranges)
        self._count(skipped=1, ranges=event.ranges)

    def _redriven(self, event: Redriven, now: Moment) -> None:
        self._take_out(0, event.ranges)
        for first, end in event.ranges:
            self.marks.remove(first, end)
            self._forget_failures(first, end)
            self.redrives.add(first, end)
        self._free(event.ranges)

    def _discarded(self, event: Discarded, now: Moment) -> None:
        self._take_out(0, event.ranges)
        self._settle(event.ranges)
        self._count(discarded=1, ranges=event.ranges)

    def _key_released(self, event: KeyReleased, now: Moment) -> None:
        if event.offset in self.held:
            key = self.held.pop(event.offset)
            if self.keys and key is not None:
                self.keys.let_go(event.offset, key, self.taken)

    # What it is made of

    def _begin_at(self, offset: int) -> None:
        self.committed = offset
        self._tidy_at = offset
        """From this committed offset on it is worth it."""
        self.delivered_end = offset
        self.settled = OffsetRanges()
        self.parked = OffsetRanges()
        self.waiting = Waiting()
        self.suspects = OffsetRanges()
        """Suspects that may be leased now."""
        self.marks = OffsetRanges()
        self.taken = OffsetRanges()
        self.failures: dict[int, Failure] = {}
        """By offset, of the few unsettled records that failed."""
        self.deliveries = Deliveries()
        self.redrives = OffsetCounts()
        self.last_failures = LastFailures()
        """Of dead letters that failed again; empty where nothing is parked from birth."""
        if self.is_parked_from_birth:
            self.parked.add(offset, ENDLESS)
            self.taken.add(offset, ENDLESS)

    def _settle(self, ranges: Ranges) -> None:
        """Settles ranges that no lease holds; what of them is settled stays so."""
        if self.keys:
            self.keys.settle(ranges, self.taken)
        if self.failures or self.marks or self.parked:
            self._forget(ranges)
        if ranges[-1][1] > self.delivered_end:
            self.delivered_end = ranges[-1][1]
        settled = self.settled
        if ranges[0][0] > self.committed:
            self.taken.add_all(ranges)
            settled.add_all(ranges)
        elif len(ranges) > 1 or settled:
            end = max(ranges[0][1], self.committed)
            settled.add(self.committed, end)
            settled.add_all(ranges[1:])
            self.taken.add_all(ranges[1:])
            self.committed = settled.next_gap(self.committed)
            settled.drop_below(self.committed)
        elif ranges[0][1] > self.committed:
            self.committed = ranges[0][1]
        if not self.counters.has_progress:
            self._has_progress()

    def _forget(self, ranges: Ranges) -> None:
        for offsets in (self.marks, self.suspects, self.parked):
            if offsets:
                offsets.remove_all(ranges)
        if self.waiting.offsets:
            for first, end in ranges:
                self.waiting.remove(first, end)
        for first, end in ranges:
            if end - first == 1:
                self.failures.pop(first, None)
            else:
                self._forget_failures(first, end)

    def _forget_failures(self, first: int, end: int) -> None:
        failures = self.failures
        if not failures:
            return
        if end - first <= len(failures):
            for offset in range(first, end):
                failures.pop(offset, None)
        else:
            for offset in [offset for offset in failures if first <= offset < end]:
                del failures[offset]

    def _take_out(self, token: int, ranges: Ranges) -> None:
        """Takes the ranges out of the lease, and of whatever a damaged journal left them in."""
        self.leases.lose(token, ranges)
        if self.waiting.offsets or self.suspects or self.parked:
            for first, end in ranges:
                self.waiting.remove(first, end)
                self.suspects.remove(first, end)
                self.parked.remove(first, end)

    def _free(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Makes ranges available, or leasable alone where they are marked."""
        for start, stop in ranges:
            first = max(start, self.committed)
            for low, high in self.settled.gaps(first, stop) if self.settled else ((first, stop),):
                if low >= high:
                    continue
                if not self.marks.meets(low, high):
                    self._make_available(low, high)
                    continue
                for begin, end in self.marks.gaps(low, high):
                    self._make_available(begin, end)
                for begin, end in self.marks.within(low, high):
                    self.taken.add(begin, end)
                    self.suspects.add(begin, end)
                    if self.keys:
                        self.keys.take(((begin, end),))
                        self.keys.want(begin, end)

    def _wait(self, ranges: Ranges, at_ms: int, delay_ms: int, now: Moment) -> None:
        """Lets ranges wait for what is left of a back-off that began at `at_ms`, wall time."""
        left_ms = min(max(at_ms + delay_ms - now.wall_ms, 0), delay_ms)
        if not left_ms:
            self._free(ranges)
            return
        for first, end in ranges:
            self.taken.add(first, end)
            self.waiting.add(first, end, now.mono_ms + left_ms)

    def _make_available(self, first: int, end: int) -> None:
        self.taken.remove(first, end)
        if self.keys:
            self.keys.free(first, end)

    def _deliver(self, ranges: Ranges) -> None:
        self.deliveries.add(ranges)
        self.delivered_end = max(self.delivered_end, ranges[-1][1])

    def _note_failures(self, event: Failed | GivenUp) -> None:
        delay_ms = event.delay_ms if isinstance(event, Failed) else 0
        known = Failure(event.failures, event.first_ms, event.at_ms, delay_ms, intern(event.reason))
        if self.is_parked_from_birth:
            self.last_failures.note(event.ranges, known)
        if self.is_parked_from_birth and isinstance(event, GivenUp):
            for first, end in event.ranges:
                self._forget_failures(first, end)
            return
        for first, end in event.ranges:
            for offset in range(first, end):
                self.failures[offset] = known

    def _hold(self, offset: int, key: bytes | None) -> None:
        self.held[offset] = key
        if self.keys and key is not None:
            self.keys.hold(offset, key)

    def _has_progress(self) -> None:
        self.counters = self.counters._replace(has_progress=1)

    def _count(self, *, ranges: Ranges, **names: int) -> None:
        count = sum(end - first for first, end in ranges)
        for name in names:
            changed = {name: getattr(self.counters, name) + count}
            self.counters = self.counters._replace(**changed)

    def _tidy(self) -> None:
        """Drops what settled records left behind, now and then; of dead letters always."""
        if self.committed < self._tidy_at and not self.is_parked_from_birth:
            return
        self._tidy_at = self.committed + TIDY_EVERY
        self.taken.drop_below(self.committed)
        self.deliveries.forget(self.committed, self.settled)
        self.redrives.drop_below(self._redrives_from)

    @property
    def _redrives_from(self) -> int:
        """Returns from where on redrives are known: of dead letters also when they are resolved."""
        starts = self.redrives.starts
        if not self.is_parked_from_birth:
            return self.committed
        if len(starts) <= REDRIVE_RUNS:
            return min(self.log_start_offset, self.committed)
        return min(max(self.log_start_offset, starts[-REDRIVE_RUNS]), self.committed)

    def _restored(self, event: LedgerRestored, now: Moment) -> None:
        self.leases.lose_all()
        self._begin_at(event.committed)
        self.delivered_end = event.delivered_end
        self.log_start_offset = event.log_start_offset
        self.settled = OffsetRanges(event.settled)
        self.parked = OffsetRanges(event.parked)
        self.marks = OffsetRanges(event.marks)
        self.suspects = self.marks.copy()
        self.taken = OffsetRanges((*event.settled, *event.parked, *event.marks))
        self.deliveries = Deliveries(event.deliveries)
        self.redrives = OffsetCounts(event.redrives)
        self.held = dict(event.held)
        self.counters = Counters(*event.counters)
        self.has_keys(self.keys is not None)

    def _failures_restored(self, event: FailuresRestored, now: Moment) -> None:
        for row in event.rows:
            known = _failure_of(row)
            for offset in range(row.first, row.end):
                self.failures[offset] = known
            if row.is_waiting:
                self.suspects.remove(row.first, row.end)
                self._wait(((row.first, row.end),), row.at_ms, row.delay_ms, now)

    def _last_failures_restored(self, event: LastFailuresRestored, now: Moment) -> None:
        for row in event.rows:
            self.last_failures.note(((row.first, row.end),), _failure_of(row))


def _failure_of(row: FailureRow) -> Failure:
    return Failure(row.failures, row.first_ms, row.at_ms, row.delay_ms, intern(row.reason))
