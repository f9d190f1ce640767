"""Why a record is not delivered. Pure; one question at a time, by a person."""

from enum import StrEnum
from typing import NamedTuple

from logbroker.group.dispatch import first_obstacle, next_suspect, window_end
from logbroker.group.ledger import Ledger
from logbroker.group.ledger_events import Moment
from logbroker.group.record_state import State
from logbroker.group.settings import Order


class Why(StrEnum):
    """Where the record stands, or what it waits for."""

    BELOW_START = "below_start"
    """Retention removed it, or the log began behind it."""
    BEYOND_END = "beyond_end"
    """Not written yet, or not readable yet."""
    SETTLED = "settled"
    """The group is done with it, or began behind it."""
    DEAD_LETTERED = "dead_lettered"
    """The group gave it up: it lies in its dead-letter topic. Not known to the ledger."""
    LEASED = "leased"
    """A member holds it until a time."""
    WAITING = "waiting"
    """Its back-off runs until a time."""
    PARKED = "parked"
    """It was given up and stays in its place, until an operator redrives or resolves it."""
    SUSPECT = "suspect"
    """Delivered alone, when a member holds nothing else."""
    BEHIND_RECORD = "behind_record"
    """An earlier record of its partition comes first."""
    BEHIND_KEY = "behind_key"
    """An earlier record of its key comes first."""
    HELD = "held"
    """A dead letter holds its key, or its partition, until it is resolved or discarded."""
    WINDOW_FULL = "window_full"
    """`max_unsettled` records are open."""
    KEY_UNKNOWN = "key_unknown"
    """Its key has not been read yet: nobody asked for records this far."""
    NO_MEMBER = "no_member"
    """Nobody is there to take it."""
    AVAILABLE = "available"
    """The next member that has room gets it."""


class Explanation(NamedTuple):
    """The answer; what does not apply is None."""

    why: Why
    failures: int = 0
    deliveries: int = 0
    redrives: int = 0
    reason: str = ""
    """Of the last failure."""
    member: str | None = None
    token: int | None = None
    left_ms: int | None = None
    """Until the deadline, or the end of the back-off."""
    behind_offset: int | None = None
    behind_why: Why | None = None
    """Where that record stands."""


TAKEN_BY_MEMBERS = frozenset({Why.AVAILABLE, Why.SUSPECT, Why.KEY_UNKNOWN})
"""What ends with the next member that has room."""


def explain(
    ledger: Ledger,
    offset: int,
    now: Moment,
    *,
    log_start_offset: int,
    high_watermark: int,
    has_members: bool = True,
) -> Explanation:
    """Returns why this group is not, or not yet, given this record."""
    bounds = {"log_start_offset": log_start_offset, "high_watermark": high_watermark}
    found = _explain(ledger, offset, now, **bounds)
    if has_members:
        return found
    if found.why in TAKEN_BY_MEMBERS:
        return found._replace(why=Why.NO_MEMBER)
    if found.behind_why in TAKEN_BY_MEMBERS:
        return found._replace(behind_why=Why.NO_MEMBER)
    return found


def _explain(
    ledger: Ledger, offset: int, now: Moment, *, log_start_offset: int, high_watermark: int
) -> Explanation:
    if offset < log_start_offset:
        return Explanation(Why.BELOW_START)
    if offset >= high_watermark:
        return Explanation(Why.BEYOND_END)
    state = ledger.state
    known = state.failures.get(offset)
    if known is None and offset in state.parked:
        known = state.last_failures.at(offset)
    found = Explanation(
        Why.AVAILABLE,
        failures=known.failures if known else 0,
        deliveries=state.deliveries.at(offset),
        redrives=state.redrives.at(offset),
        reason=known.reason if known else "",
    )
    match state.state_of(offset):
        case State.SETTLED:
            return found._replace(why=Why.SETTLED, deliveries=0, redrives=0)
        case State.LEASED:
            lease = state.leases.holder_of(offset)
            assert lease, "what is taken for no other reason is leased"
            left_ms = max(lease.deadline_ms - now.mono_ms, 0)
            found = found._replace(member=lease.member, token=lease.token)
            return found._replace(why=Why.LEASED, left_ms=left_ms)
        case State.WAITING:
            due_ms = state.waiting.due_ms(offset) or now.mono_ms
            return found._replace(why=Why.WAITING, left_ms=max(due_ms - now.mono_ms, 0))
        case State.PARKED:
            return found._replace(why=Why.PARKED)
    return _explain_order(ledger, offset, found, now, log_start_offset, high_watermark)


def _explain_order(
    ledger: Ledger,
    offset: int,
    found: Explanation,
    now: Moment,
    log_start_offset: int,
    high_watermark: int,
) -> Explanation:
    """Returns what holds up a record that is available in itself, or suspect."""
    state, settings = ledger.state, ledger.settings
    before: int | None = None
    why = Why.BEHIND_RECORD
    if settings.order is Order.PARTITION:
        before = first_obstacle(state)
        if offset in state.suspects and not state.is_parked_from_birth:
            before = min(before, state.committed)
        before = before if before < offset else None
    elif settings.order is Order.KEY and state.keys:
        if offset >= state.keys.learned_end:
            why_unknown = Why.WINDOW_FULL if ledger.is_window_full else Why.KEY_UNKNOWN
            return found._replace(why=why_unknown)
        before, why = state.keys.waits_for(offset), Why.BEHIND_KEY
    if before is not None:
        if before in state.held:
            return found._replace(why=Why.HELD, behind_offset=before)
        bounds = {"log_start_offset": log_start_offset, "high_watermark": high_watermark}
        other = _explain(ledger, before, now, **bounds)
        return found._replace(why=why, behind_offset=before, behind_why=other.why)
    if offset in state.suspects:
        return found._replace(why=Why.SUSPECT)
    if settings.order is not Order.KEY and offset >= window_end(state, settings.max_unsettled):
        return found._replace(why=Why.WINDOW_FULL)
    if state.suspects:
        suspect = next_suspect(state, settings.order, high_watermark)
        return found._replace(behind_offset=suspect, behind_why=Why.SUSPECT)
    return found
