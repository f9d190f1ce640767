"""What is parked: in the ledger of a dead-letter topic, or under `block` in that of any. Pure.

In a dead-letter topic, for the group that failed, every record is parked from birth. A redrive
makes some available, with fresh failures and one more redrive counted; settled, they are
resolved; failed again, they are parked again: the same record, never a copy. Leases,
settlements and time are those of the ledger it is made of.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from logbroker.errors import InvalidError
from logbroker.group.ledger import Ledger
from logbroker.group.ledger_events import Discarded, KeyReleased, LedgerEvent, Redriven
from logbroker.group.redrive import Redrive, Walk
from logbroker.record.offset_ranges import OffsetRanges, Range, joined


class ParkedCounts(NamedTuple):
    """How many dead letters of a partition are where."""

    parked: int
    open: int
    """Redriven, and neither resolved nor parked again."""
    resolved: int
    """Settled after a redrive, or given up."""


class RedriveStep(NamedTuple):
    """What one step of a redrive does in one partition: journaled in one piece."""

    events: list[LedgerEvent]
    next_offset: int
    redriven: int


def parked_counts(ledger: Ledger, log_start_offset: int, high_watermark: int) -> ParkedCounts:
    """Returns the counts by the bounds of the partition."""
    parked = _count(ledger.state.parked.within(log_start_offset, high_watermark))
    first = max(ledger.state.committed, log_start_offset)
    settled = _count(ledger.state.settled.within(first, high_watermark))
    resolved = max(min(first, high_watermark) - log_start_offset, 0) + settled
    whole = max(high_watermark - log_start_offset, 0)
    return ParkedCounts(parked, whole - parked - resolved, resolved)


def parked_ranges(ledger: Ledger, first: int, end: int) -> list[Range]:
    """Returns what is parked between these offsets, of which `end` is at most what is written."""
    return ledger.state.parked.within(first, end)


def decide_redrive(ledger: Ledger, ranges: Iterable[Range]) -> list[LedgerEvent]:
    """Returns parked records of the ranges as available again, with fresh failures."""
    wanted, parked = OffsetRanges(ranges).ranges(), ledger.state.parked
    found = tuple(run for first, end in wanted for run in parked.within(first, end))
    return [Redriven(found)] if found else []


def decide_redrive_step(
    ledger: Ledger,
    redrive: Redrive,
    walk: Walk,
    *,
    max_count: int,
    meant: Sequence[int] | None = None,
    meant_end: int = 0,
) -> RedriveStep:
    """Returns the next step of a redrive, at most so many records.

    Where bounds alone do not say what is meant (`Selection.needs_records`), `meant` are the
    offsets it means from `walk.next_offset` up to `meant_end`; the step goes no further.
    """
    if max_count < 1:
        return RedriveStep([], walk.next_offset, 0)
    if meant is None:
        assert not redrive.selection.needs_records, "the records decide, and were not read"
        end = walk.end
        chosen = first_of(ledger.state.parked.within(walk.next_offset, end), max_count)
    else:
        end, parked = min(walk.end, meant_end), ledger.state.parked
        wanted = joined(at for at in meant if walk.next_offset <= at < end and at in parked)
        chosen = first_of(wanted, max_count)
    redriven = _count(chosen)
    next_offset = chosen[-1][1] if redriven == max_count else max(end, walk.next_offset)
    return RedriveStep(decide_redrive(ledger, chosen), next_offset, redriven)


def resolvable(ledger: Ledger, first: int, end: int) -> list[Range]:
    """Returns what an operator may settle: of dead letters all that no member holds, else parked.

    A redrive that was a mistake can be taken back this way.
    """
    state = ledger.state
    if not state.is_parked_from_birth:
        return state.parked.within(first, end)
    found = OffsetRanges(state.settled.gaps(max(first, state.committed), end))
    for lease in state.leases.all():
        found.remove_all(lease.held.ranges())
    return found.ranges()


def decide_resolve(ledger: Ledger, ranges: Sequence[Range]) -> list[LedgerEvent]:
    """Returns what is `resolvable` as given up by an operator; the rest is left alone."""
    for first, end in ranges:
        if not 0 <= first < end:
            message = f"a range is from an offset up to a greater one, not {first} to {end}"
            raise InvalidError("INVALID_OFFSET", message, first=first, end=end)
    found = tuple(run for first, end in ranges for run in resolvable(ledger, first, end))
    return [Discarded(found)] if found else []


def decide_release_key(ledger: Ledger, offset: int) -> list[LedgerEvent]:
    """Returns the end of what the dead letter from `offset` holds, if it holds anything."""
    return [KeyReleased(offset)] if offset in ledger.state.held else []


def _count(ranges: Sequence[Range]) -> int:
    return sum(end - first for first, end in ranges)


def first_of(ranges: Sequence[Range], max_count: int) -> list[Range]:
    """Returns the first so many offsets of ranges that ascend."""
    found = OffsetRanges()
    for first, end in ranges:
        found.add(first, min(end, first + max_count - found.count))
        if found.count == max_count:
            break
    return found.ranges()
