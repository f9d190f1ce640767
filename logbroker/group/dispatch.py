"""What may be leased now, in each of the three orders. Pure.

    partition   in the order of offsets, nothing behind a record that waits, is suspect or
                parked, and nothing while another member holds anything
    key         what has its turn among the records of its key
    none        whatever is available

In every order a suspect is leased alone: to a member that holds nothing else, which gets
nothing else until it has settled it. While one may be leased, members that hold something
get nothing more of its partition; one of them gets nothing at all, so that it is soon free
(`LiveGroup.suspects_for`).
"""

from typing import NamedTuple

from logbroker.group.ledger_events import Ranges
from logbroker.group.ledger_state import ENDLESS, LedgerState
from logbroker.group.settings import Order
from logbroker.record.offset_ranges import OffsetRanges, Range


class Choice(NamedTuple):
    """What to lease, ascending; nothing perhaps."""

    ranges: Ranges
    is_suspect: bool = False


NOTHING = Choice(())
MANY = 1 << 30


def choose(
    state: LedgerState,
    order: Order,
    member: str,
    *,
    below: int,
    max_count: int,
    max_unsettled: int,
    max_ranges: int = MANY,
    held_elsewhere: int = 0,
) -> Choice:
    """Returns what `member` may lease below this offset, at most so many records.

    `held_elsewhere` is how many records it holds in other ledgers of its group.
    """
    mine = state.leases.count_of(member)
    if max_count < 1 or state.leases.has_suspect(member):
        return NOTHING
    if state.suspects.edges:
        suspect = next_suspect(state, order, below)
        if suspect is not None:
            if mine or held_elsewhere:
                return NOTHING
            return Choice(((suspect, suspect + 1),), is_suspect=True)
    if order is Order.KEY:
        ready = state.keys.ready if state.keys else OffsetRanges()
        return Choice(ready.lowest(below, max_count, max_ranges))
    below = min(below, window_end(state, max_unsettled))
    if order is Order.PARTITION:
        if len(state.leases.members()) > bool(mine):
            return NOTHING
        below = min(below, first_obstacle(state))
    return Choice(_available(state.taken, state.committed, below, max_count, max_ranges))


def window_end(state: LedgerState, max_unsettled: int) -> int:
    """Returns the offset from which on nothing is leased before more is settled."""
    begun = max(state.delivered_end, state.committed)
    return begun + max(max_unsettled - state.open_count, 0)


def first_obstacle(state: LedgerState) -> int:
    """Returns the first offset that nothing behind it may overtake in `partition` order."""
    sets = [state.waiting.offsets.edges, state.suspects.edges]
    if not state.is_parked_from_birth:
        sets.append(state.parked.edges)
    return min([edges[0] for edges in sets if edges] + list(state.held), default=1 << 62)


def next_suspect(state: LedgerState, order: Order, below: int = ENDLESS) -> int | None:
    """Returns the suspect that may be leased next; None where there is none."""
    match order:
        case Order.PARTITION:
            first = state.suspects.first
            is_next = first <= first_obstacle(state) and is_first_open(state, first)
            found = first if is_next else None
        case Order.KEY:
            keys = state.keys
            found = next((at for at in state.suspects if keys and keys.has_turn(at)), None)
        case Order.NONE:
            found = state.suspects.first
    return found if found is not None and found < below else None


def is_first_open(state: LedgerState, offset: int) -> bool:
    """Returns whether all below `offset` is settled or, in a dead-letter topic, parked."""
    at = state.committed
    while state.is_parked_from_birth and at < offset:
        after = state.parked.next_gap(state.settled.next_gap(at))
        if after == at:
            break
        at = after
    return at >= offset


def _available(
    taken: OffsetRanges, first: int, below: int, max_count: int, max_ranges: int
) -> Ranges:
    found: list[Range] = []
    while max_count > 0 and len(found) < max_ranges:
        first = taken.next_gap(first)
        if first >= below:
            break
        end = taken.next_held(first, min(below, first + max_count))
        found.append((first, end))
        max_count -= end - first
        first = end
    return tuple(found)
