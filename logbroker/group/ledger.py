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
from logbroker.group.lease_table import EndedLeases, Lease
from logbroker.group.ledger_events import (
    Acknowledged,
    Committed,
    Due,
    Extended,
    Failed,
    GivenUp,
    KeyReleased,
    Leased,
    LedgerEvent,
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
from logbroker.group.ledger_state import LedgerState
from logbroker.group.record_state import ANSWERS, FAILURES, Cause, State, next_state
from logbroker.group.retry_policy import Exhausted
from logbroker.group.settings import AfterDeadLetter, GroupSettings, Order
from logbroker.group.start_position import out_of_range
from logbroker.limits import REASON_BYTES
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
        self._settings = settings
        self.state.has_keys(settings.order is Order.KEY)

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
        self._settings = settings

    def apply(self, event: LedgerEvent, now: Moment) -> None:
        """The only way a ledger changes, live and at replay alike."""
        self.state.apply(event, now)

    def apply_all(self, events: Iterable[LedgerEvent], now: Moment) -> None:
        """Applies one after another."""
        for event in events:
            self.state.apply(event, now)

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
        lease = self.state.leases.get(token)
        if cause is Cause.ACKNOWLEDGE and lease and len(ranges) == 1:
            first, end = ranges[0]
            if first < end and lease.held.holds(first, end):
                return [Acknowledged(token, ((first, end),))]
        held = self._held(token, lease, ranges, cause)
        if not held or lease is None:
            return []
        match cause:
            case Cause.ACKNOWLEDGE:
                return [Acknowledged(token, held)]
            case Cause.RELEASE:
                return [Released(token, held), *self._taken_back(held[0][0], held)]
            case _:
                events = self._fail(token, held, cause, now, random, reason, delay_ms)
                open_from = next(
                    (at for at in map(self._open_from, events) if at is not None), None
                )
                return events + (self._taken_back(open_from, held) if open_from is not None else [])

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
            events += self._fail(lease.token, held, Cause.EXPIRE, now, random, reason, None)
            events += self._taken_back(first, held)
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
            events += self._fail(lease.token, held, Cause.VANISH_ALONE, now, random, reason, None)
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

    # Offsets

    def decide_commit(
        self, offset: int, high_watermark: int, *, is_automatic: bool = False
    ) -> list[LedgerEvent]:
        """Returns what settles all below `offset`, or goes back to it if it lies behind.

        An automatic commit never goes back. InvalidError (INVALID_OFFSET) below 0 and beyond
        the high watermark, which itself is fine.
        """
        check_commit(offset, high_watermark)
        committed = self.state.committed
        if offset >= committed:
            return [Committed(offset)]
        return [] if is_automatic else [Reset(committed, offset, "commit")]

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

    def decide_lost_tail(self, log_start_offset: int, high_watermark: int) -> list[LedgerEvent]:
        """Returns where the group goes on whose log ends before what it knows: the tail is lost.

        Offsets from the end on are given out again. What is known of them, and what waits
        before them, is forgotten: at its place where that is left, else as out of range.
        OffsetOutOfRangeError by the group's policy.
        """
        state = self.state
        if max(state.committed, state.delivered_end) <= high_watermark:
            return []
        bounds = {"log_start_offset": log_start_offset, "high_watermark": high_watermark}
        moved = out_of_range(self._settings.out_of_range, state.committed, **bounds)
        return self.decide_reset(moved.offset if moved else state.committed, "lost_tail")

    def decide_skip(self, first: int, end: int) -> list[LedgerEvent]:
        """Returns what passes over offsets where nothing can be read: a gap, or damage.

        To be called where reading comes upon it: what was not delivered before `first` counts
        as begun from then on.
        """
        state = self.state
        first = max(first, state.committed)
        free = OffsetRanges([*state.taken.gaps(first, end), *state.suspects.within(first, end)])
        return [Skipped(tuple(free.ranges()))] if free else []

    # What an operator does

    def decide_redrive(self, ranges: Iterable[Range]) -> list[LedgerEvent]:
        """Returns parked records of the ranges as available again, with fresh failures."""
        parked = self._parked(ranges)
        return [Redriven(parked)] if parked else []

    def decide_release_key(self, offset: int) -> list[LedgerEvent]:
        """Returns the end of what the dead letter from `offset` holds, if it holds anything."""
        return [KeyReleased(offset)] if offset in self.state.held else []

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

    def _parked(self, ranges: Iterable[Range]) -> Ranges:
        wanted = OffsetRanges(ranges)
        return tuple(
            run for first, end in wanted.ranges() for run in self.state.parked.within(first, end)
        )

    def _held(
        self, token: int, lease: Lease | None, ranges: Sequence[Range], cause: Cause
    ) -> Ranges:
        """Returns what of the ranges the token holds; the rest it must have acknowledged."""
        for first, end in ranges:
            if not 0 <= first < end:
                message = f"a range is from an offset up to a greater one, not {first} to {end}"
                raise InvalidError("INVALID_OFFSET", message, first=first, end=end)
        wanted = OffsetRanges(ranges).ranges()
        if lease and lease.held.holds_all(wanted):
            return tuple(wanted)
        known = lease or self.state.leases.ended(token)
        held: list[Range] = []
        for first, end in wanted:
            mine = lease.held.within(first, end) if lease else []
            held += mine
            for start, stop in OffsetRanges(mine).gaps(first, end):
                is_repeated = cause is Cause.ACKNOWLEDGE and known is not None
                if not (is_repeated and known and known.has_acknowledged(start, stop)):
                    message = f"lease {token} does not hold {start} to {stop}"
                    details = {"token": token, "first": start, "end": stop}
                    raise ConflictError("LEASE_LOST", message, **details)
        return tuple(held)

    def _fail(
        self,
        token: int,
        ranges: Ranges,
        cause: Cause,
        now: Moment,
        random: Random,
        reason: str,
        delay_ms: int | None,
    ) -> list[LedgerEvent]:
        """Returns an event for each run of records that have failed equally."""
        reason = cut(reason)
        events: list[LedgerEvent] = []
        for (failures, first_ms, key), run in self._runs(ranges):
            if cause in FAILURES:
                failures += 1
            state = self._after(cause, failures)
            if state is State.WAITING:
                policy = self._settings.retry
                delay = policy.backoff_ms(failures, random) if delay_ms is None else delay_ms
                is_suspect = cause is not Cause.RETRY and self._is_suspect(cause, run)
                events.append(
                    Failed(
                        token,
                        run,
                        cause,
                        failures,
                        first_ms or now.wall_ms,
                        now.wall_ms,
                        delay,
                        reason,
                        is_suspect,
                    )
                )
            else:
                events.append(
                    GivenUp(
                        token,
                        run,
                        self._outcome,
                        cause,
                        failures,
                        first_ms or now.wall_ms,
                        now.wall_ms,
                        reason,
                        self._holds,
                        key,
                    )
                )
        return events

    def _open_from(self, event: LedgerEvent) -> int | None:
        """Returns the first offset, of a failure, that nothing behind it may overtake."""
        match event:
            case Failed(ranges=ranges):
                return ranges[0][0]
            case GivenUp(ranges=ranges, outcome=outcome, holds=holds):
                return ranges[0][0] if holds or outcome is Exhausted.BLOCK else None
        return None

    def _runs(self, ranges: Ranges) -> Iterable[tuple[tuple[int, int, bytes | None], Ranges]]:
        """Yields runs with equal failures, first failure time and, where it matters, key."""
        state = self.state
        keys = state.keys if self._holds else None
        if not state.failures and not self._holds:
            yield (0, 0, None), ranges
            return

        def numbers(offset: int) -> tuple[int, int, bytes | None]:
            known = state.failures.get(offset)
            key = keys.key_of(offset) if keys else None
            return (known.failures, known.first_ms, key) if known else (0, 0, key)

        for first, end in ranges:
            for same, run in groupby(range(first, end), numbers):
                at = list(run)
                if self._holds:  # each by itself, for each holds what is behind it
                    for offset in at:
                        yield same, ((offset, offset + 1),)
                else:
                    yield same, ((at[0], at[-1] + 1),)

    def _after(self, cause: Cause, failures: int) -> State:
        spent = failures >= self._settings.retry.max_failures
        hopeless = State.SETTLED if self._outcome is not Exhausted.BLOCK else State.PARKED
        return next_state(State.LEASED, cause, is_exhausted=spent, hopeless=hopeless)

    def _is_suspect(self, cause: Cause, run: Ranges) -> bool:
        return cause is Cause.VANISH_ALONE or run[0][0] in self.state.marks

    @property
    def _outcome(self) -> Exhausted:
        if self._parks_exhausted:
            return Exhausted.BLOCK
        return self._settings.retry.exhausted

    @property
    def _holds(self) -> bool:
        return (
            self._settings.after_dead_letter is AfterDeadLetter.HOLD
            and self._outcome is Exhausted.DEAD_LETTER
        )

    def _taken_back(self, offset: int, but: Ranges) -> list[LedgerEvent]:
        """Returns the release, in `partition` order, of what is held behind `offset`."""
        if self._settings.order is not Order.PARTITION:
            return []
        others = OffsetRanges(but)
        events: list[LedgerEvent] = []
        for lease in self.state.leases.all():
            behind = lease.held.within(offset, lease.held.end)
            left = tuple(run for first, end in behind for run in others.gaps(first, end))
            if left:
                events.append(Released(lease.token, left))
        return events


def check_commit(offset: int, high_watermark: int) -> None:
    """Raises InvalidError (INVALID_OFFSET) for an offset that no group could commit."""
    if not 0 <= offset <= high_watermark:
        message = f"an offset to commit is 0 to {high_watermark}, not {offset}"
        details = {"offset": offset, "high_watermark": high_watermark}
        raise InvalidError("INVALID_OFFSET", message, **details)


def cut(reason: str) -> str:
    """Returns a failure's reason, at most REASON_BYTES of it in UTF-8."""
    if len(reason) * 4 <= REASON_BYTES:
        return reason
    return reason.encode("utf-8", "replace")[:REASON_BYTES].decode("utf-8", "ignore")
