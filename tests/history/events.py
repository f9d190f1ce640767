"""What happens in a run, as its members and producers see it, and when."""

from enum import StrEnum
from typing import NamedTuple


class Place(NamedTuple):
    """Where a record lies: in its topic, or a redriven one in the dead-letter topic."""

    topic: str
    partition: int
    offset: int


class Answer(StrEnum):
    """How a member may answer."""

    ACKNOWLEDGE = "acknowledge"
    RETRY = "retry"
    RELEASE = "release"
    REJECT = "reject"


class How(StrEnum):
    """How a member ends."""

    LEFT = "left"
    """In order, and it has heard everything it was told until then."""
    VANISHED = "vanished"
    """Its stream was cut, or its process killed; or that is how it looks to the broker."""
    LOST = "lost"
    """The broker went away, or nobody knows what it heard at last."""


class Stored(NamedTuple):
    """A producer was told that its record is kept."""

    place: Place
    key: bytes | None
    value: bytes


class Received(NamedTuple):
    """A record came under a lease."""

    member: str
    token: int
    place: Place
    number: int
    failures: int
    redrives: int


class Begun(NamedTuple):
    """The application was handed the record."""

    member: str
    token: int
    place: Place


class Answered(NamedTuple):
    """The application has answered; the answer is on its way."""

    member: str
    token: int
    place: Place
    answer: Answer


class Confirmed(NamedTuple):
    """The broker has taken the answer."""

    member: str
    token: int
    place: Place
    answer: Answer


class Refused(NamedTuple):
    """The broker has refused the answer: the lease was over."""

    member: str
    token: int
    place: Place
    was_told: bool | None = True
    """Whether its member had been told, as a stream must be; None: nobody knows."""


class TakenBack(NamedTuple):
    """The broker has ended the lease."""

    member: str
    token: int
    place: Place


class Ended(NamedTuple):
    """A member is over: its leases are void."""

    member: str
    how: How = How.VANISHED


class Cut(NamedTuple):
    """A member's stream was lost, and it goes on with another."""

    member: str


class BrokerKilled(NamedTuple):
    """The broker's process ended without a word."""


class RedriveAsked(NamedTuple):
    """Somebody asked for a redrive; it may run, or be refused, or nobody knows."""


class Reset(NamedTuple):
    """The group, without members then, was moved in a partition."""

    topic: str
    partition: int
    from_offset: int
    to_offset: int


class Trimmed(NamedTuple):
    """The log of a partition begins here now; all below was settled by every group."""

    topic: str
    partition: int
    offset: int


Event = (
    Stored
    | Received
    | Begun
    | Answered
    | Confirmed
    | Refused
    | TakenBack
    | Ended
    | Cut
    | BrokerKilled
    | RedriveAsked
    | Reset
    | Trimmed
)


class Noted(NamedTuple):
    """An event and when it was noted, on the machine's monotonic clock."""

    at_ns: int
    event: Event


class Letter(NamedTuple):
    """A dead letter, as the broker lists it at the end."""

    place: Place
    source: Place
    state: str
    failures: int
    """Before it came there."""
    redrives: int
    key: bytes | None
    value: bytes


class Outcome(NamedTuple):
    """What the broker says at the end of a run, about one group."""

    log: dict[Place, tuple[bytes | None, bytes]]
    """Key and value of every record that can be read."""
    states: dict[Place, str]
    """Of the log's records for the group: `settled` or `pending`, whichever it is."""
    letters: list[Letter]
    redriven: int = 0
    """How many records its redrives say they have made available, together."""
    expired_unsettled: int = 0
    """How many records retention removed before they were settled."""
    is_whole: bool = True
    """Whether there is no gap in the log: no disk has lost anything that was not synced."""
