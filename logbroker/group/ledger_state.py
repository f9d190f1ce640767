"""Where a group stands on one partition, and the moves of records from state to state. Pure.

    every offset below `committed` is settled; `committed` itself is not
    settled, parked, waiting, suspects and what leases hold do not overlap; `taken` is all of
    these, and an offset from `committed` on that is not in it is available
    marks: suspects, and those of them that are leased or wait
    nothing from `delivered_end` on was ever delivered, but what is parked from birth

What happened decides which moves are made (`effects.py`); nothing else makes any.
"""

from collections.abc import Iterable
from typing import NamedTuple

from logbroker.group.deliveries import Deliveries
from logbroker.group.key_order import KeyOrder
from logbroker.group.last_failures import Failure, LastFailures
from logbroker.group.lease_table import EndedLeases, LeaseTable
from logbroker.group.ledger_events import Moment, Ranges
from logbroker.group.offset_counts import OffsetCounts
from logbroker.group.record_state import State
from logbroker.group.waiting import Waiting
from logbroker.limits import REDRIVE_RUNS
from logbroker.record.offset_ranges import OffsetRanges, Range

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
    """Changes by events alone, live and at replay alike."""

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
        self.leases = LeaseTable(ended_leases)
        self.begin_at(0)

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

    # The moves

    def begin_at(self, offset: int) -> None:
        """Begins anew at `offset`: nothing is known of any record. Nothing may be leased."""
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

    def settle(self, ranges: Ranges) -> None:
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
            self.note_progress()

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
                self.forget_failures(first, end)

    def forget_failures(self, first: int, end: int) -> None:
        """Drops what is known of failures of these records."""
        failures = self.failures
        if not failures:
            return
        if end - first <= len(failures):
            for offset in range(first, end):
                failures.pop(offset, None)
        else:
            for offset in [offset for offset in failures if first <= offset < end]:
                del failures[offset]

    def take_out(self, token: int, ranges: Ranges) -> None:
        """Takes the ranges out of the lease, and of whatever a damaged journal left them in."""
        self.leases.lose(token, ranges)
        if self.waiting.offsets or self.suspects or self.parked:
            for first, end in ranges:
                self.waiting.remove(first, end)
                self.suspects.remove(first, end)
                self.parked.remove(first, end)

    def free(self, ranges: Iterable[Range]) -> None:
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

    def let_wait(self, ranges: Ranges, at_ms: int, delay_ms: int, now: Moment) -> None:
        """Lets ranges wait for what is left of a back-off that began at `at_ms`, wall time."""
        left_ms = min(max(at_ms + delay_ms - now.wall_ms, 0), delay_ms)
        if not left_ms:
            self.free(ranges)
            return
        for first, end in ranges:
            self.taken.add(first, end)
            self.waiting.add(first, end, now.mono_ms + left_ms)

    def _make_available(self, first: int, end: int) -> None:
        self.taken.remove(first, end)
        if self.keys:
            self.keys.free(first, end)

    def deliver(self, ranges: Ranges) -> None:
        """Takes note that the ranges are delivered once more."""
        self.deliveries.add(ranges)
        self.delivered_end = max(self.delivered_end, ranges[-1][1])

    def hold(self, offset: int, key: bytes | None) -> None:
        """Lets what has this key, or else what is behind the offset, wait for its dead letter."""
        self.held[offset] = key
        if self.keys and key is not None:
            self.keys.hold(offset, key)

    def note_progress(self) -> None:
        """Takes note that there is a commit to speak of."""
        self.counters = self.counters._replace(has_progress=1)

    def count(self, *, ranges: Ranges, **names: int) -> None:
        """Counts the records of the ranges in the counters of these names."""
        count = sum(end - first for first, end in ranges)
        for name in names:
            changed = {name: getattr(self.counters, name) + count}
            self.counters = self.counters._replace(**changed)

    def tidy(self) -> None:
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
