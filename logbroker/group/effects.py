"""What each event changes in a ledger: the only way it changes, live and at replay alike. Pure.

Nothing here fails: an event takes its ranges out of whatever state they are in, so that a
journal that damage cut a piece out of still makes a ledger of what is left.
"""

from collections.abc import Callable
from sys import intern
from typing import Any

from logbroker.group.last_failures import Failure
from logbroker.group.lease_table import Lease
from logbroker.group.ledger_events import (
    Acknowledged,
    Committed,
    Delivered,
    Discarded,
    Due,
    Extended,
    Failed,
    FailuresRestored,
    GivenUp,
    KeyReleased,
    LastFailuresRestored,
    Leased,
    LedgerRestored,
    LetterPending,
    LettersWritten,
    Moment,
    Redriven,
    Released,
    Reset,
    Skipped,
    Started,
    Suspected,
    Trimmed,
)
from logbroker.group.ledger_state import LedgerState
from logbroker.group.record_state import FAILURES
from logbroker.group.retry_policy import Exhausted
from logbroker.group.snapshot import restore, restore_failures, restore_last_failures
from logbroker.record.offset_ranges import OffsetRanges


def _started(state: LedgerState, event: Started, now: Moment) -> None:
    state.begin_at(event.offset)


def _leased(state: LedgerState, event: Leased, now: Moment) -> None:
    state.tidy()
    token, member, ranges, deadline_ms, is_suspect = event
    state.deliver(ranges)
    state.taken.add_all(ranges)
    if state.keys:
        state.keys.take(ranges)
    if is_suspect:
        for first, end in ranges:
            state.suspects.remove(first, end)
    state.leases.grant(Lease(token, member, ranges, deadline_ms, is_suspect))


def _delivered(state: LedgerState, event: Delivered, now: Moment) -> None:
    state.tidy()
    state.deliver(event.ranges)
    for first, end in event.ranges:
        if state.waiting.offsets.meets(first, end):
            waited = state.waiting.offsets.within(first, end)
            state.waiting.remove(first, end)
            state.free(waited)


def _extended(state: LedgerState, event: Extended, now: Moment) -> None:
    state.leases.extend(event.token, event.deadline_ms)


def _acknowledged(state: LedgerState, event: Acknowledged, now: Moment) -> None:
    state.leases.settle(event.token, event.ranges)
    state.settle(event.ranges)


def _failed(state: LedgerState, event: Failed, now: Moment) -> None:
    state.take_out(event.token, event.ranges)
    for first, end in event.ranges:
        (state.marks.add if event.is_suspect else state.marks.remove)(first, end)
    state.let_wait(event.ranges, event.at_ms, event.delay_ms, now)
    _note_failures(state, event)
    state.count(failures=1, ranges=event.ranges)


def _given_up(state: LedgerState, event: GivenUp, now: Moment) -> None:
    state.take_out(event.token, event.ranges)
    if event.outcome is Exhausted.BLOCK:
        _note_failures(state, event)
    state.marks.remove_all(event.ranges)
    if event.outcome is Exhausted.BLOCK:
        state.taken.add_all(event.ranges)
        state.parked.add_all(event.ranges)
        if state.keys and state.is_parked_from_birth:
            state.keys.settle(event.ranges, state.taken)
    else:
        state.settle(event.ranges)
    if event.holds:
        state.hold(event.ranges[0][0], event.key)
    if event.cause in FAILURES:
        state.count(failures=1, ranges=event.ranges)
    match event.outcome:
        case Exhausted.DEAD_LETTER:
            state.count(dead_letters=1, ranges=event.ranges)
        case Exhausted.DISCARD:
            state.count(discarded=1, ranges=event.ranges)
        case Exhausted.BLOCK:
            pass


def _note_failures(state: LedgerState, event: Failed | GivenUp) -> None:
    delay_ms = event.delay_ms if isinstance(event, Failed) else 0
    known = Failure(event.failures, event.first_ms, event.at_ms, delay_ms, intern(event.reason))
    if state.is_parked_from_birth:
        state.last_failures.note(event.ranges, known)
    if state.is_parked_from_birth and isinstance(event, GivenUp):
        for first, end in event.ranges:
            state.forget_failures(first, end)
        return
    for first, end in event.ranges:
        for offset in range(first, end):
            state.failures[offset] = known


def _letters_written(state: LedgerState, event: LettersWritten, now: Moment) -> None:
    written = max(event.end, state.counters.letters_written)
    known = max(written, state.counters.dead_letters)  # damage may have taken some
    state.counters = state.counters._replace(letters_written=written, dead_letters=known)


def _released(state: LedgerState, event: Released, now: Moment) -> None:
    state.leases.lose(event.token, event.ranges)
    state.free(event.ranges)


def _suspected(state: LedgerState, event: Suspected, now: Moment) -> None:
    state.take_out(event.token, event.ranges)
    for first, end in event.ranges:
        state.marks.add(first, end)
    state.free(event.ranges)


def _due(state: LedgerState, event: Due, now: Moment) -> None:
    due = OffsetRanges((*event.ranges, *state.waiting.finish(now.mono_ms)))
    for first, end in event.ranges:
        state.waiting.remove(first, end)
    state.free(due.ranges())


def _committed(state: LedgerState, event: Committed, now: Moment) -> None:
    state.leases.lose_below(event.offset)
    if state.committed < event.offset:
        state.settle(((state.committed, event.offset),))
    state.note_progress()


def _reset(state: LedgerState, event: Reset, now: Moment) -> None:
    state.leases.lose_all()
    state.begin_at(event.offset)
    state.held = {}
    state.has_keys(state.keys is not None)
    state.note_progress()
    state.counters = state.counters._replace(resets=state.counters.resets + 1)


def _trimmed(state: LedgerState, event: Trimmed, now: Moment) -> None:
    offset, expired = event
    state.leases.lose_below(offset)
    if state.committed < offset:
        state.settle(((state.committed, offset),))
    state.log_start_offset = max(state.log_start_offset, offset)
    state.last_failures.drop_below(offset)
    expired += state.counters.expired_unsettled
    state.counters = state.counters._replace(expired_unsettled=expired)


def _skipped(state: LedgerState, event: Skipped, now: Moment) -> None:
    state.take_out(0, event.ranges)
    state.settle(event.ranges)
    state.count(skipped=1, ranges=event.ranges)


def _redriven(state: LedgerState, event: Redriven, now: Moment) -> None:
    state.take_out(0, event.ranges)
    for first, end in event.ranges:
        state.marks.remove(first, end)
        state.forget_failures(first, end)
        state.redrives.add(first, end)
    state.free(event.ranges)


def _discarded(state: LedgerState, event: Discarded, now: Moment) -> None:
    state.take_out(0, event.ranges)
    state.settle(event.ranges)
    state.count(discarded=1, ranges=event.ranges)


def _key_released(state: LedgerState, event: KeyReleased, now: Moment) -> None:
    if event.offset in state.held:
        key = state.held.pop(event.offset)
        if state.keys and key is not None:
            state.keys.let_go(event.offset, key, state.taken)


EFFECTS: dict[type[Any], Callable[[LedgerState, Any, Moment], None]] = {
    Started: _started,
    Leased: _leased,
    Delivered: _delivered,
    Extended: _extended,
    Acknowledged: _acknowledged,
    Failed: _failed,
    GivenUp: _given_up,
    LetterPending: lambda state, event, now: None,  # who writes dead letters takes note
    LettersWritten: _letters_written,
    Released: _released,
    Suspected: _suspected,
    Due: _due,
    Committed: _committed,
    Reset: _reset,
    Trimmed: _trimmed,
    Skipped: _skipped,
    Redriven: _redriven,
    Discarded: _discarded,
    KeyReleased: _key_released,
    LedgerRestored: restore,
    FailuresRestored: restore_failures,
    LastFailuresRestored: restore_last_failures,
}
"""By the kind of an event: what it does, at the moment it was decided or is replayed."""
