"""The states of a record in a group's ledger, and every way between them. Pure.

Two numbers change with the causes: deliveries at LEASE, failures at those in FAILURES.
A record is marked *suspect* while it is to be delivered alone: from VANISH on, until it is
settled or a member answered RETRY for it. A marked record is SUSPECT where others are
AVAILABLE.
"""

from enum import Enum, auto

from logbroker.errors import ConflictError


class State(Enum):
    """Where a record stands. Every offset from 0 up to the high watermark is in one."""

    AVAILABLE = auto()
    """May be leased."""
    LEASED = auto()
    """One member holds it until a deadline."""
    WAITING = auto()
    """Failed; available again when its back-off is over."""
    SUSPECT = auto()
    """Its member vanished; may be leased, but alone."""
    PARKED = auto()
    """A dead letter, or exhausted under `block`: an operator moves it."""
    SETTLED = auto()
    """Never delivered to this group again, unless it is reset."""


class Cause(Enum):
    """What moves a record. The value is its name in the journal."""

    LEASE = "lease"
    """deliveries + 1"""
    ACKNOWLEDGE = "acknowledge"
    """This and the next three are what a member may answer."""
    RETRY = "retry"
    """failures + 1"""
    RELEASE = "release"
    """Also what becomes of records behind one that failed, in `partition` order."""
    REJECT = "reject"
    """Hopeless at once; failures stay."""
    EXPIRE = "expire"
    """failures + 1"""
    VANISH = "vanish"
    """The member is gone without a word, and held others too: marked suspect."""
    VANISH_ALONE = "vanish_alone"
    """failures + 1: it held nothing else. Marked suspect."""
    DUE = "due"
    """The back-off is over."""
    REDRIVE = "redrive"
    """failures = 0, redrives + 1"""
    DISCARD = "discard"
    """An operator gives it up."""
    COMMIT = "commit"
    """A member or an operator settles all below an offset."""
    TRIM = "trim"
    """Retention removed it."""


FAILURES = frozenset({Cause.RETRY, Cause.EXPIRE, Cause.VANISH_ALONE})
ANSWERS = frozenset({Cause.ACKNOWLEDGE, Cause.RETRY, Cause.RELEASE, Cause.REJECT})

UNSETTLED = frozenset(State) - {State.SETTLED}
TRANSITIONS: dict[tuple[State, Cause], State] = {
    (State.AVAILABLE, Cause.LEASE): State.LEASED,
    (State.SUSPECT, Cause.LEASE): State.LEASED,
    (State.LEASED, Cause.ACKNOWLEDGE): State.SETTLED,
    (State.LEASED, Cause.RETRY): State.WAITING,
    (State.LEASED, Cause.RELEASE): State.AVAILABLE,
    (State.LEASED, Cause.REJECT): State.SETTLED,
    (State.LEASED, Cause.EXPIRE): State.WAITING,
    (State.LEASED, Cause.VANISH): State.SUSPECT,
    (State.LEASED, Cause.VANISH_ALONE): State.WAITING,
    (State.WAITING, Cause.DUE): State.AVAILABLE,
    (State.PARKED, Cause.REDRIVE): State.AVAILABLE,
    (State.PARKED, Cause.DISCARD): State.SETTLED,
    (State.AVAILABLE, Cause.DISCARD): State.SETTLED,  # this and the next: of dead letters alone
    (State.WAITING, Cause.DISCARD): State.SETTLED,
    (State.SUSPECT, Cause.DISCARD): State.SETTLED,
    **{(state, Cause.COMMIT): State.SETTLED for state in UNSETTLED},
    **{(state, Cause.TRIM): State.SETTLED for state in UNSETTLED},
}


def next_state(
    state: State,
    cause: Cause,
    *,
    is_exhausted: bool = False,
    hopeless: State = State.SETTLED,
    is_suspect: bool = False,
) -> State:
    """Returns the state after `cause`; raises ConflictError (LEASE_LOST) if it cannot happen now.

    A rejected or exhausted record goes to `hopeless`: SETTLED, its dead letter leaving in
    the same step, or PARKED under `block` and in a dead-letter topic.
    """
    target = TRANSITIONS.get((state, cause))
    if target is None:
        raise ConflictError("LEASE_LOST", f"cannot {cause.value}, it is {state.name.lower()}")
    if cause is Cause.REJECT or (cause in FAILURES and is_exhausted):
        return hopeless
    return State.SUSPECT if target is State.AVAILABLE and is_suspect else target
