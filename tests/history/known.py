"""What a history has told so far of one record and its leases.

How often a record has failed is not always known: a lease may have expired just before its
member vanished. `least` and `most` are what it can be.
"""

from dataclasses import dataclass, field
from enum import Enum, auto

from .events import Answer

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
    """One token's hold on one record."""

    member: str
    token: int
    received: int
    answer: Answer | None = None
    answered: int = -1
    fate: Fate = Fate.OPEN
    superseded: int = -1
    """When the next lease on the record was seen."""
    is_counted: bool = False
    """Whether the failure that its end may be is in `least` and `most`."""
    is_suspected: bool = False
    """Whether its member vanished and held others too."""

    @property
    def may_be_acknowledged(self) -> bool:
        """Returns whether the broker may have taken an acknowledgement."""
        return self.answer is Answer.ACKNOWLEDGE and self.fate not in OVER_BEFORE_ANSWERED

    @property
    def may_be_rejected(self) -> bool:
        """Returns whether the broker may have taken a rejection."""
        return self.answer is Answer.REJECT and self.fate not in OVER_BEFORE_ANSWERED


@dataclass(slots=True)
class Known:
    """A record, since the group was last reset across it."""

    since: int = -1
    """When that was; -1: never."""
    leases: list[Lease] = field(default_factory=list)
    number: int = 0
    """Of the last delivery that was seen."""
    durable_number: int = 0
    """What no kill of the broker makes it forget."""
    least: int = 0
    most: int = 0
    redrives: int = 0
    round_start: int = 0
    """The first of `leases` since the last redrive."""
    is_acknowledged: bool = False
    """An acknowledgement was confirmed."""
    is_given_up: bool = False
    """Its end as a dead letter was confirmed, since the last redrive."""
    is_skipped: bool = False
    """The group was moved past it."""
    is_through: bool = False
    """Whether the last handling that counts ended it."""
    begun_token: int = -1

    @property
    def last(self) -> Lease | None:
        """Returns the lease that was seen last."""
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

    def failed(self, lease: Lease, *, at_least: int, at_most: int) -> None:
        """Takes note of what the end of a lease counts as, once."""
        if not lease.is_counted:
            lease.is_counted = True
            self.least += at_least
            self.most += at_most

    def begin_round(self, redrives: int) -> None:
        """Takes note of a redrive: failures are counted anew."""
        self.redrives = redrives
        self.round_start = len(self.leases)
        self.least = self.most = 0
        self.is_given_up = False
