"""A ledger as the few events that make an empty one equal to it, but for leases. Pure.

Bounded by the unsettled records: what is settled is ranges, and of deliveries and failures
only those of unsettled records are told.
"""

from itertools import groupby

from logbroker.group.ledger_events import (
    FailureRow,
    FailuresRestored,
    LedgerEvent,
    LedgerRestored,
)
from logbroker.group.ledger_state import Failure, LedgerState
from logbroker.group.offset_counts import OffsetCounts
from logbroker.record.offset_ranges import OffsetRanges, Range

ROWS = 1_000
"""The most failures told by one event."""


def snapshot(state: LedgerState) -> list[LedgerEvent]:
    """Returns the events. Two ledgers that return the same are equal."""
    unsettled = state.settled.gaps(state.committed, max(state.delivered_end, state.committed))
    rows = _rows(state)
    restored = LedgerRestored(
        committed=state.committed,
        delivered_end=max(state.delivered_end, state.committed),
        log_start_offset=state.log_start_offset,
        settled=tuple(state.settled.ranges()),
        parked=tuple(state.parked.ranges()),
        marks=tuple(state.marks.ranges()),
        deliveries=_told(state.deliveries, unsettled),
        redrives=_told(state.redrives, unsettled),
        held=tuple(sorted(state.held.items())),
        counters=tuple(state.counters),
    )
    parts = [tuple(rows[at : at + ROWS]) for at in range(0, len(rows), ROWS)]
    return [restored, *map(FailuresRestored, parts)]


def _told(counts: OffsetCounts, ranges: list[Range]) -> tuple[tuple[int, int, int], ...]:
    runs = (run for first, end in ranges for run in counts.runs(first, end))
    return tuple((first, end, number) for first, end, number in runs if number)


def _rows(state: LedgerState) -> list[FailureRow]:
    waiting = state.waiting.offsets
    rows = []
    for key, run in groupby(
        enumerate(sorted(state.failures)), lambda pair: _same(state, waiting, pair)
    ):
        offsets = [offset for _, offset in run]
        _, known, is_waiting = key
        rows.append(
            FailureRow(
                offsets[0],
                offsets[-1] + 1,
                known.failures,
                known.first_ms,
                known.at_ms,
                known.delay_ms,
                is_waiting,
                known.reason,
            )
        )
    return rows


def _same(
    state: LedgerState, waiting: OffsetRanges, pair: tuple[int, int]
) -> tuple[int, Failure, bool]:
    at, offset = pair
    return offset - at, state.failures[offset], offset in waiting
