"""A ledger as the few events that make an empty one equal to it, but for leases. Pure.

Bounded by the unsettled records: what is settled is ranges, and of deliveries and failures
only those of unsettled records are told. Of dead letters also their redrives and why they
failed last, as far as the ledger keeps that.
"""

from collections.abc import Iterable, Iterator

from logbroker.group.last_failures import Failure
from logbroker.group.ledger_events import (
    FailureRow,
    FailuresRestored,
    LastFailuresRestored,
    LedgerEvent,
    LedgerRestored,
)
from logbroker.group.ledger_state import LedgerState
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
