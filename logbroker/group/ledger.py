"""A group's progress on one partition: what is decided about it. Pure.

Each `decide_*` checks a request, changes nothing, and returns events for `apply`; nothing may
come between the two. Time is a parameter. Offsets are ranges: only failures, and keys in
`key` order, cost anything for each record.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from random import Random
from typing import NamedTuple

from logbroker.errors import ConflictError, InvalidError
from logbroker.group.dispatch import MANY, choose
from logbroker.group.effects import EFFECTS
from logbroker.group.failing import Failing
from logbroker.group.lease_table import EndedLeases
from logbroker.group.ledger_events import (
    Acknowledged,
    Due,
    Extended,
    Leased,
    LedgerEvent,
    Moment,
    Released,
    Reset,
    Skipped,
    Started,
    Suspected,
    Trimmed,
)
from logbroker.group.ledger_state import LedgerState
from logbroker.group.record_state import ANSWERS, Cause
from logbroker.group.settings import GroupSettings, Order
from logbroker.record.offset_ranges import OffsetRanges, Range


class DeliveredRun(NamedTuple):
    """What a member is told of records side by side that have the same numbers."""

    first: int
    end: int
    deliveries: int
    """This one included."""
    failures: int
    redrives: int


class Ledger:
    """Decides by the group's settings; `state` is where things stand."""

    def __init__(
        self,
        settings: GroupSettings,
        *,
        is_parked_from_birth: bool = False,
        parks_exhausted: bool = False,
        ended_leases: EndedLeases | None = None,
    ) -> None:
        """Begins at 0. `is_parked_from_birth`: of a dead-letter topic, for its own group.

        `parks_exhausted`: of a dead-letter topic, for another group that reads it as any
        topic. What is exhausted in a dead-letter topic is parked, whatever the policy says.
        `ended_leases` are those of all ledgers; None: there is no other.
        """
        self.state = LedgerState(
            is_parked_from_birth=is_parked_from_birth, ended_leases=ended_leases
        )
        self._parks_exhausted = parks_exhausted or is_parked_from_birth
        self.state.has_keys(settings.order is Order.KEY)
        self._follow(settings)

    @property
    def settings(self) -> GroupSettings:
        """Returns what the group is set to."""
        return self._settings

    @settings.setter
    def settings(self, settings: GroupSettings) -> None:
        """Changes what is decided from now on. Nothing may be leased if the order changes."""
        if settings.order is not self._settings.order:
            assert not self.state.leases.count, "an order changes while nothing is leased"
            self.state.has_keys(settings.order is Order.KEY)
        self._follow(settings)

    def _follow(self, settings: GroupSettings) -> None:
        self._settings = settings
        self._failing = Failing(self.state, settings, parks_exhausted=self._parks_exhausted)

    def apply(self, event: LedgerEvent, now: Moment) -> None:
        """The only way a ledger changes, live and at replay alike."""
        EFFECTS[type(event)](self.state, event, now)

    def apply_all(self, events: Iterable[LedgerEvent], now: Moment) -> None:
        """Applies one after another."""
        for event in events:
            EFFECTS[type(event)](self.state, event, now)

    # Starting

    def decide_start(self, offset: int) -> list[LedgerEvent]:
        """Returns the beginning. `start_position` says where that is."""
        return [Started(offset)]

    def wanted_keys(self, high_watermark: int) -> Range | None:
        """Returns the offsets whose keys to give to `learn_keys` next; None where none are."""
        keys = self.state.keys
        if keys is None:
            return None
        limit = self._settings.max_unsettled
        for first, end in keys.wanted.ranges()[:1]:
            return (first, min(end, first + limit))
        first, stop = max(keys.learned_end, self.state.committed), high_watermark
        if self.state.is_parked_from_birth:
            first = self.state.parked.next_gap(first)
            stop = self.state.parked.next_held(first, stop)
        end = min(stop, high_watermark, first + limit - keys.open_count)
        return (first, end) if first < end else None

    def learn_keys(self, first: int, keys: Sequence[bytes | None]) -> None:
        """Takes in keys as they lie in the log from `first` on: a view of it, not an event.

        Without gaps: `first` is at most where `wanted_keys` begins.
        """
        self.state.learn_keys(first, keys)

    def pass_over_keys(self, end: int) -> None:
        """Takes note that no keys can be read from where `wanted_keys` begins up to `end`.

        To be called once `decide_skip` has passed over what is free there.
        """
        if self.state.keys:
            self.state.keys.pass_over(end)

    # Leases

    def decide_lease(
        self,
        member: str,
        token: int,
        now: Moment,
        *,
        high_watermark: int,
        max_count: int,
        max_ranges: int = MANY,
        held_elsewhere: int = 0,
    ) -> list[Leased]:
        """Returns one lease of what the member may have now, nothing perhaps.

        `high_watermark` may be any lower bound, such as where the bytes end that were read.
        `max_ranges` bounds what is looked for where only the beginning matters.
        `held_elsewhere` is how many records the member holds in other ledgers of the group.
        """
        settings = self._settings
        ranges, is_suspect = choose(
            self.state,
            settings.order,
            member,
            below=high_watermark,
            max_count=max_count,
            max_unsettled=settings.max_unsettled,
            max_ranges=max_ranges,
            held_elsewhere=held_elsewhere,
        )
        if not ranges:
            return []
        return [Leased(token, member, ranges, self.lease_end_ms(now), is_suspect)]

    @property
    def window_room(self) -> int:
        """Returns how many records may begin before more is settled."""
        state = self.state
        open_count = state.keys.open_count if state.keys else state.open_count
        return max(self._settings.max_unsettled - open_count, 0)

    @property
    def is_window_full(self) -> bool:
        """Returns whether nothing new may begin before more is settled."""
        return self.window_room == 0

    def lease_end_ms(self, now: Moment, lease_ms: int | None = None) -> int:
        """Returns when a lease of now is over, by the monotonic clock."""
        return now.mono_ms + (self._settings.lease_ms if lease_ms is None else lease_ms)

    def delivered_runs(self, ranges: Sequence[Range]) -> list[DeliveredRun]:
        """Returns the numbers to deliver leased ranges with."""
        state = self.state
        if not (state.failures or state.deliveries.again.starts or state.redrives.starts):
            return [DeliveredRun(first, end, 1, 0, 0) for first, end in ranges]
        if not ranges:
            return []
        begin, stop = ranges[0][0], ranges[-1][1]
        failed, others = state.failures, state.deliveries.again.nonzero(begin, stop)
        others.add_all(state.redrives.nonzero(begin, stop).ranges())
        found: list[DeliveredRun] = []
        for first, end in ranges:
            has_failed = first in failed or (
                end - first > 1 and not failed.keys().isdisjoint(range(first, end))
            )
            if has_failed or (others and others.meets(first, end)):
                found += self._numbers(first, end)
            else:
                found.append(DeliveredRun(first, end, 1, 0, 0))
        return found

    def _numbers(self, first: int, end: int) -> Iterable[DeliveredRun]:
        """Yields runs with equal numbers."""
        state = self.state
        for low, high, deliveries in state.deliveries.runs(first, end):
            for start, stop, redrives in state.redrives.runs(low, high):
                if not state.failures:
                    yield DeliveredRun(start, stop, deliveries, 0, redrives)
                    continue
                for failures, run in groupby(range(start, stop), self.failures_of):
                    at = list(run)
                    yield DeliveredRun(at[0], at[-1] + 1, deliveries, failures, redrives)

    def failures_of(self, offset: int) -> int:
        """Returns how often this unsettled record failed, since its last redrive."""
        known = self.state.failures.get(offset)
        return known.failures if known else 0

    def decide_settle(
        self,
        token: int,
        ranges: Sequence[Range],
        cause: Cause,
        now: Moment,
        random: Random,
        *,
        reason: str = "",
        delay_ms: int | None = None,
    ) -> list[LedgerEvent]:
        """Returns what becomes of the ranges by a member's answer.

        All of them or, with ConflictError (LEASE_LOST), none: `token` must hold them. What
        it acknowledged before may be acknowledged again, and nothing comes of that.
        """
        assert cause in ANSWERS
        leases = self.state.leases
        lease = leases.get(token)
        if cause is Cause.ACKNOWLEDGE and lease and len(ranges) == 1:
            first, end = ranges[0]
            if first < end and lease.held.holds(first, end):
                return [Acknowledged(token, ((first, end),))]
        held = leases.held_of(token, ranges, is_acknowledged=cause is Cause.ACKNOWLEDGE)
        if not held or lease is None:
            return []
        match cause:
            case Cause.ACKNOWLEDGE:
                return [Acknowledged(token, held)]
            case Cause.RELEASE:
                return [Released(token, held), *self._failing.taken_back(held[0][0], held)]
            case _:
                failing = self._failing
                events = failing.decide(token, held, cause, now, random, reason, delay_ms)
                return [*events, *failing.taken_back_behind(events, held)]

    def decide_extend(self, token: int, lease_ms: int, now: Moment) -> list[LedgerEvent]:
        """Returns a new deadline, so long from now. ConflictError (LEASE_LOST) without a lease."""
        if lease_ms < 1:
            raise InvalidError("INVALID_ARGUMENT", f"lease_ms must be positive, not {lease_ms}")
        if self.state.leases.get(token) is None:
            raise ConflictError("LEASE_LOST", f"lease {token} is over", token=token)
        return [Extended(token, now.mono_ms + lease_ms)]

    def decide_expire(self, now: Moment, random: Random) -> list[LedgerEvent]:
        """Returns what becomes of leases whose deadline is over.

        What they hold has failed. In `partition` order that is the first record; what was
        prefetched behind it is taken back.
        """
        expired = self.state.leases.expired(now.mono_ms)
        is_in_order = self._settings.order is Order.PARTITION
        if is_in_order and expired:
            expired = [min(expired, key=lambda lease: lease.held.first)]
        events: list[LedgerEvent] = []
        for lease in expired:
            first = lease.held.first
            held = ((first, first + 1),) if is_in_order else tuple(lease.held.ranges())
            reason = f"lease expired, held by {lease.member}"
            events += self._failing.decide(lease.token, held, Cause.EXPIRE, now, random, reason)
            events += self._failing.taken_back(first, held)
        return events

    def decide_vanish(
        self, member: str, now: Moment, random: Random, *, held_elsewhere: int = 0
    ) -> list[LedgerEvent]:
        """Returns what becomes of what a member held that is gone without a word.

        A record that it held alone has failed. Others become suspect: which of them it was
        will show when they are delivered one by one.
        """
        leases = self.state.leases.of(member)
        if sum(lease.held.count for lease in leases) + held_elsewhere > 1:
            return [Suspected(lease.token, tuple(lease.held.ranges())) for lease in leases]
        events: list[LedgerEvent] = []
        for lease in leases:
            held, reason = tuple(lease.held.ranges()), f"its member vanished: {member}"
            events += self._failing.decide(
                lease.token, held, Cause.VANISH_ALONE, now, random, reason
            )
        return events

    def decide_release(self, member: str) -> list[LedgerEvent]:
        """Returns the release of all a member holds: it ends in order, or the broker stops."""
        leases = self.state.leases.of(member)
        return [Released(lease.token, tuple(lease.held.ranges())) for lease in leases]

    def decide_due(self, now: Moment) -> list[LedgerEvent]:
        """Returns what need not wait any longer."""
        due = tuple(self.state.waiting.due(now.mono_ms))
        return [Due(due)] if due else []

    def next_deadline_ms(self) -> int | None:
        """Returns when `decide_expire` or `decide_due` has something to do; monotonic."""
        lease_ms, due_ms = self.state.leases.next_deadline_ms(), self.state.waiting.next_ms()
        if lease_ms is None or due_ms is None:
            return due_ms if lease_ms is None else lease_ms
        return min(lease_ms, due_ms)

    # What the log does, and an operator

    def decide_reset(self, offset: int, why: str) -> list[LedgerEvent]:
        """Returns the reset to an offset that is known to lie in bounds. All leases are lost."""
        return [Reset(self.state.committed, offset, why)]

    def decide_trim(self, log_start_offset: int) -> list[LedgerEvent]:
        """Returns what retention means here, if it removed anything not seen before."""
        state = self.state
        if log_start_offset <= state.log_start_offset:
            return []
        first = state.committed
        settled = state.settled.count_within(first, log_start_offset)
        expired = max(log_start_offset - first, 0) - settled
        if state.is_parked_from_birth:
            expired -= state.parked.count_within(first, log_start_offset)
        return [Trimmed(log_start_offset, expired)]

    def decide_skip(self, first: int, end: int) -> list[LedgerEvent]:
        """Returns what passes over offsets where nothing can be read: a gap, or damage.

        To be called where reading comes upon it: what was not delivered before `first` counts
        as begun from then on.
        """
        state = self.state
        first = max(first, state.committed)
        free = OffsetRanges([*state.taken.gaps(first, end), *state.suspects.within(first, end)])
        return [Skipped(tuple(free.ranges()))] if free else []
