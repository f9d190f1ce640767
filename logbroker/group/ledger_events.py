"""What happens in a ledger. A ledger decides these, and changes by applying them alone. Pure.

How the journal keeps each kind stands in `KEEPING`. Leases are not kept: after a restart
what was leased is available, with its deliveries (`Delivered` is what is kept of `Leased`)
and its failures. Back-offs run again for what was left of them.
"""

from enum import Enum, auto
from typing import NamedTuple

from logbroker.group.record_state import Cause
from logbroker.group.retry_policy import Exhausted
from logbroker.record.offset_ranges import Range

Ranges = tuple[Range, ...]
"""Ascending, without overlap."""


class Keeping(Enum):
    """How the journal keeps an event."""

    FIRST = auto()
    """The answer waits until it is durable."""
    LATER = auto()
    """Written at once; nothing waits for it."""
    NEVER = auto()
    """Lives in memory alone."""


class Moment(NamedTuple):
    """Now, on both clocks."""

    mono_ms: int
    """Runs leases and back-offs."""
    wall_ms: int
    """Means something after a restart too."""


class Started(NamedTuple):
    """The group begins to read this partition, at `offset`."""

    offset: int


class Leased(NamedTuple):
    """A member holds the ranges until the deadline."""

    token: int
    member: str
    ranges: Ranges
    deadline_ms: int
    """Monotonic."""
    is_suspect: bool = False


class Delivered(NamedTuple):
    """The ranges have been delivered once more: what a restart remembers of a lease."""

    ranges: Ranges


class Extended(NamedTuple):
    """The lease lasts until the deadline."""

    token: int
    deadline_ms: int


class Acknowledged(NamedTuple):
    """The ranges are done."""

    token: int
    ranges: Ranges


class Failed(NamedTuple):
    """The ranges wait for their back-off. All have failed equally often."""

    token: int
    ranges: Ranges
    cause: Cause
    failures: int
    first_ms: int
    """Wall time of the first failure..."""
    at_ms: int
    """... and of this one."""
    delay_ms: int
    reason: str
    is_suspect: bool = False
    """Delivered alone when it is due."""


class GivenUp(NamedTuple):
    """The ranges are exhausted, or were rejected. `DEAD_LETTER` and `DISCARD` settle them."""

    token: int
    ranges: Ranges
    outcome: Exhausted
    cause: Cause
    failures: int
    first_ms: int
    at_ms: int
    reason: str
    holds: bool = False
    """What is behind it (of its key, of its partition) waits until it is resolved."""
    key: bytes | None = None
    """Of the one record, where it holds its key."""


class LetterPending(NamedTuple):
    """Dead letters that are not in their topic yet, as a snapshot tells of them."""

    sequence: int
    """How many dead letters the ledger had before."""
    event: GivenUp


class LettersWritten(NamedTuple):
    """The ledger's first so many dead letters, since it began, are in a dead-letter topic."""

    end: int


class Released(NamedTuple):
    """The ranges are given back, or taken back: not done, not failed."""

    token: int
    ranges: Ranges


class Suspected(NamedTuple):
    """The member that held the ranges vanished: they are delivered alone from now on."""

    token: int
    ranges: Ranges


class Due(NamedTuple):
    """The back-off of the ranges is over."""

    ranges: Ranges


class Committed(NamedTuple):
    """All below the offset is settled."""

    offset: int


class Reset(NamedTuple):
    """The group goes on at `offset`, whatever it knew of this partition."""

    from_offset: int
    offset: int
    why: str


class Trimmed(NamedTuple):
    """Retention removed what lies below the offset; so many of it were not settled."""

    log_start_offset: int
    expired_unsettled: int


class Skipped(NamedTuple):
    """The ranges hold no records, or none that can be read."""

    ranges: Ranges


class Redriven(NamedTuple):
    """Parked records are available, with fresh failures."""

    ranges: Ranges


class Discarded(NamedTuple):
    """An operator gave these up: parked records, or dead letters that no member holds."""

    ranges: Ranges


class KeyReleased(NamedTuple):
    """The dead letter from this offset holds nothing any more."""

    offset: int


class FailureRow(NamedTuple):
    """What is known of a range that failed, all equally often."""

    first: int
    end: int
    failures: int
    first_ms: int
    at_ms: int
    delay_ms: int
    is_waiting: bool
    reason: str


class LedgerRestored(NamedTuple):
    """A whole ledger, but for its failures."""

    committed: int
    delivered_end: int
    log_start_offset: int
    settled: Ranges
    parked: Ranges
    marks: Ranges
    """Suspects."""
    deliveries: tuple[tuple[int, int, int], ...]
    redrives: tuple[tuple[int, int, int], ...]
    held: tuple[tuple[int, bytes | None], ...]
    counters: tuple[int, ...]


class FailuresRestored(NamedTuple):
    """Some failures of the ledger that was restored before."""

    rows: tuple[FailureRow, ...]


class LastFailuresRestored(NamedTuple):
    """Why dead letters that failed again failed last, the one that failed longest ago first."""

    rows: tuple[FailureRow, ...]


LedgerEvent = (
    Started
    | Leased
    | Delivered
    | Extended
    | Acknowledged
    | Failed
    | GivenUp
    | LetterPending
    | LettersWritten
    | Released
    | Suspected
    | Due
    | Committed
    | Reset
    | Trimmed
    | Skipped
    | Redriven
    | Discarded
    | KeyReleased
    | LedgerRestored
    | FailuresRestored
    | LastFailuresRestored
)

KEEPING: dict[type[LedgerEvent], Keeping] = {
    Started: Keeping.FIRST,
    Leased: Keeping.LATER,  # as Delivered
    Delivered: Keeping.LATER,
    Extended: Keeping.NEVER,
    Acknowledged: Keeping.FIRST,
    Failed: Keeping.FIRST,
    GivenUp: Keeping.FIRST,
    LetterPending: Keeping.FIRST,
    LettersWritten: Keeping.LATER,  # asked for only where the topic is gone
    Released: Keeping.NEVER,  # a replay has no leases, so it is available there anyway
    Suspected: Keeping.LATER,
    Due: Keeping.NEVER,  # a replay finds out by itself
    Committed: Keeping.FIRST,
    Reset: Keeping.FIRST,
    Trimmed: Keeping.LATER,  # the engine remembers what is trimmed; this is the count
    Skipped: Keeping.FIRST,
    Redriven: Keeping.FIRST,
    Discarded: Keeping.FIRST,
    KeyReleased: Keeping.FIRST,
    LedgerRestored: Keeping.FIRST,
    FailuresRestored: Keeping.FIRST,
    LastFailuresRestored: Keeping.FIRST,
}
