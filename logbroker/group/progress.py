"""How far a group is on a partition, as one value from one moment. Pure.

lag = high watermark - max(committed, log start) - what is settled above; never negative
"""

from typing import NamedTuple

from logbroker.group.ledger import Ledger


class Progress(NamedTuple):
    """What API, CLI and metrics show of one ledger."""

    committed: int | None
    """None: the group has begun at `next_offset` and settled nothing yet."""
    next_offset: int
    """Where the group is: the committed offset, or the log start where that is beyond it."""
    log_start_offset: int
    high_watermark: int
    lag: int
    leased: int
    waiting: int
    parked: int
    suspects: int
    """Delivered alone from now on, leased and waiting ones included."""
    failures: int
    """Since the group began, as all below."""
    dead_letters: int
    discarded: int
    expired_unsettled: int
    skipped: int
    resets: int
    is_window_full: bool
    """`max_unsettled` records are open: nothing new begins."""
    held: int
    """Dead letters that what is behind them waits for."""


def progress(ledger: Ledger, log_start_offset: int, high_watermark: int) -> Progress:
    """Returns where a ledger stands, by the bounds of its partition at the same moment."""
    state = ledger.state
    first = max(state.committed, log_start_offset)
    end = max(high_watermark, first)
    settled = state.settled.count_within(first, end)
    parked = state.parked.count_within(first, end)
    lag = end - first - settled
    return Progress(
        committed=state.committed if state.counters.has_progress else None,
        next_offset=first,
        log_start_offset=log_start_offset,
        high_watermark=high_watermark,
        lag=lag - parked if state.is_parked_from_birth else lag,
        leased=state.leases.count,
        waiting=state.waiting.offsets.count,
        parked=parked,
        suspects=state.marks.count,
        failures=state.counters.failures,
        dead_letters=state.counters.dead_letters,
        discarded=state.counters.discarded,
        expired_unsettled=state.counters.expired_unsettled,
        skipped=state.counters.skipped,
        resets=state.counters.resets,
        is_window_full=ledger.is_window_full and first < end,
        held=len(state.held),
    )


def first_unsettled(ledger: Ledger, log_start_offset: int, high_watermark: int) -> int | None:
    """Returns the record whose append time is the age of the group here; None if there is none."""
    first = max(ledger.state.committed, log_start_offset)
    first = ledger.state.settled.next_gap(first)
    return first if first < high_watermark else None


def has_nothing_to_give(ledger: Ledger, high_watermark: int) -> bool:
    """Returns whether no record below is available, now or, without anybody's doing, later."""
    state = ledger.state
    if state.waiting.offsets or state.suspects:
        return False
    return state.taken.next_gap(state.committed) >= high_watermark
