"""What a history tells of one record and its leases.

How often a record has failed is not always known: a lease may have expired just before its
member vanished. `least` and `most` are what it can be.
"""

from dataclasses import dataclass, field
from enum import Enum, auto

from .events import Answer, Place

FINAL = Answer.ACKNOWLEDGE, Answer.REJECT


class Fate(Enum):
    """What became of a lease on a record."""

    OPEN = auto()
    """Nobody has said that it is over."""
    CONFIRMED = auto()
    REFUSED = auto()
    """It was over when the answer came."""
    TAKEN_BACK = auto()
    RELEASED = auto()
    """Its member left in order."""
    VANISHED = auto()
    """Its member ended otherwise, or the broker was killed."""


OVER_BEFORE_ANSWERED = Fate.REFUSED, Fate.TAKEN_BACK


@dataclass(slots=True)
class Lease:
    """One token's hold on one record. Times are indexes into the history, -1 for never."""

    member: str
    token: int
    place: Place
    number: int
    failures: int
    redrives: int
    received: int
    received_ns: int
    granted: int
    """The grant lies before this: no later than any later token was seen."""
    life: int
    """Of the broker, counted from 0: it has granted it."""
    begun: int = -1
    answer: Answer | None = None
    answered: int = -1
    answered_ns: int = -1
    confirmed: int = -1
    over: int = -1
    """When its member heard that it is over: taken back, or its answer refused."""
    ended: int = -1
    """When its member ended."""
    fate: Fate = Fate.OPEN
    is_told: bool = False
    """Whether the broker that granted it has told that it is over, and not merely lost it."""
    is_suspected: bool = False
    """Whether its member vanished and held others too."""
    may_have_expired: bool = False
    """Whether its member left in order, but so late that its time may have been over."""

    @property
    def may_be_acknowledged(self) -> bool:
        """Returns whether the broker may have taken an acknowledgement."""
        return self.answer is Answer.ACKNOWLEDGE and self.fate not in OVER_BEFORE_ANSWERED

    @property
    def may_be_rejected(self) -> bool:
        """Returns whether the broker may have taken a rejection."""
        return self.answer is Answer.REJECT and self.fate not in OVER_BEFORE_ANSWERED

    def __str__(self) -> str:
        return f"{self.place} under {self.token} to {self.member}"


@dataclass(slots=True)
class Known:
    """A record, since the group was last reset across it."""

    since: int = -1
    """When that was; -1: never."""
    since_ns: int = 0
    since_life: int = 0
    leases: list[Lease] = field(default_factory=list)
    """In the order in which they were granted."""
    is_skipped: bool = False
    """The group was moved past it."""
    least: int = 0
    most: int = 0
    redrives: int = 0
    round_start: int = 0
    """The first of `leases` since the last redrive."""
    is_acknowledged: bool = False
    """An acknowledgement was confirmed."""
    is_given_up: bool = False
    """Its end as a dead letter was confirmed, since the last redrive."""

    @property
    def last(self) -> Lease | None:
        """Returns the lease that was granted last."""
        return self.leases[-1] if self.leases else None

    @property
    def may_be_acknowledged(self) -> bool:
        """Returns whether the broker may have taken an acknowledgement."""
        return any(lease.may_be_acknowledged for lease in self.leases)

    def may_be_given_up(self, unseen: int, max_failures: int) -> bool:
        """Returns whether it may be a dead letter, after so many ends that hid deliveries."""
        this_round = self.leases[self.round_start :]
        return self.most + unseen >= max_failures or any(
            lease.may_be_rejected for lease in this_round
        )
