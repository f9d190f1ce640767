"""A ledger as the few events that make an empty one equal to it, but for leases; and back. Pure.

Bounded by the unsettled records: what is settled is ranges, and of deliveries and failures
only those of unsettled records are told. Of dead letters also their redrives and why they
failed last, as far as the ledger keeps that.
"""

from collections.abc import Iterable, Iterator
from sys import intern

from logbroker.group.deliveries import Deliveries
from logbroker.group.last_failures import Failure
from logbroker.group.ledger_events import (
    FailureRow,
    FailuresRestored,
    LastFailuresRestored,
    LedgerEvent,
    LedgerRestored,
    Moment,
)
from logbroker.group.ledger_state import Counters, LedgerState
from logbroker.group.offset_counts import OffsetCounts
from logbroker.record.offset_ranges import OffsetRanges, Range

ROWS = 1_000
"""The most failures told by one event."""


def snapshot(state: LedgerState) -> list[LedgerEvent]:
    """Returns the events. Two ledgers that return the same are equal."""
    end = max(state.delivered_end, state.committed)
    unsettled = state.settled.gaps(state.committed, end) if state.redrives else []
    redriven = [(0, state.redrives.end)] if state.is_parked_from_birth else unsettled
    restored = LedgerRestored(
        committed=state.committed,
        delivered_end=end,
        log_start_offset=state.log_start_offset,
        settled=tuple(state.settled.ranges()),
        parked=tuple(state.parked.ranges()),
        marks=tuple(state.marks.ranges()),
        deliveries=tuple(state.deliveries.told(state.committed, end, state.settled)),
        redrives=_told(state.redrives, redriven),
        held=tuple(sorted(state.held.items())),
        counters=tuple(state.counters),
    )
    waiting = state.waiting.offsets
    rows = list(_rows(sorted(state.failures.items()), waiting))
    last = list(_rows(state.last_failures.items(), OffsetRanges()))
    return [
        restored,
        *map(FailuresRestored, _parts(rows)),
        *map(LastFailuresRestored, _parts(last)),
    ]


def restore(state: LedgerState, event: LedgerRestored, now: Moment) -> None:
    """Makes the state what it was, but for failures, which other events tell."""
    state.leases.lose_all()
    state.begin_at(event.committed)
    state.delivered_end = event.delivered_end
    state.log_start_offset = event.log_start_offset
    state.settled = OffsetRanges(event.settled)
    state.parked = OffsetRanges(event.parked)
    state.marks = OffsetRanges(event.marks)
    state.suspects = state.marks.copy()
    state.taken = OffsetRanges((*event.settled, *event.parked, *event.marks))
    state.deliveries = Deliveries(event.deliveries)
    state.redrives = OffsetCounts(event.redrives)
    state.held = dict(event.held)
    state.counters = Counters(*event.counters)
    state.has_keys(state.keys is not None)


def restore_failures(state: LedgerState, event: FailuresRestored, now: Moment) -> None:
    """Adds what is known of some records that failed; those that waited wait on."""
    for row in event.rows:
        known = _failure_of(row)
        for offset in range(row.first, row.end):
            state.failures[offset] = known
        if row.is_waiting:
            state.suspects.remove(row.first, row.end)
            state.let_wait(((row.first, row.end),), row.at_ms, row.delay_ms, now)


def restore_last_failures(state: LedgerState, event: LastFailuresRestored, now: Moment) -> None:
    """Adds why some dead letters failed again."""
    for row in event.rows:
        state.last_failures.note(((row.first, row.end),), _failure_of(row))


def _told(counts: OffsetCounts, ranges: list[Range]) -> tuple[tuple[int, int, int], ...]:
    runs = (run for first, end in ranges for run in counts.runs(first, end))
    return tuple((first, end, number) for first, end, number in runs if number)


def _parts(rows: list[FailureRow]) -> list[tuple[FailureRow, ...]]:
    return [tuple(rows[at : at + ROWS]) for at in range(0, len(rows), ROWS)]


def _rows(failures: Iterable[tuple[int, Failure]], waiting: OffsetRanges) -> Iterator[FailureRow]:
    """Yields a row for offsets that follow one another and have failed alike."""
    row: FailureRow | None = None
    for offset, known in failures:
        numbers = (known.failures, known.first_ms, known.at_ms, known.delay_ms)
        alike = FailureRow(offset, offset + 1, *numbers, offset in waiting, known.reason)
        if row and row.end == offset and row[2:] == alike[2:]:
            row = row._replace(end=offset + 1)
            continue
        if row:
            yield row
        row = alike
    if row:
        yield row


def _failure_of(row: FailureRow) -> Failure:
    return Failure(row.failures, row.first_ms, row.at_ms, row.delay_ms, intern(row.reason))
