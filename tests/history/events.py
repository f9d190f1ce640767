"""What happens in a run, as its members and producers see it, in the order in which they do."""

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


class Stored(NamedTuple):
    """A producer was told that its record is kept."""

    place: Place
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


class TakenBack(NamedTuple):
    """The broker has ended the lease."""

    member: str
    token: int
    place: Place


class Ended(NamedTuple):
    """A member left, vanished, or lost the broker: its leases are void."""

    member: str


class BrokerKilled(NamedTuple):
    """The broker's process ended without a word."""


Event = (
    Stored | Received | Begun | Answered | Confirmed | Refused | TakenBack | Ended | BrokerKilled
)


class Letter(NamedTuple):
    """A dead letter, as the broker lists it at the end."""

    place: Place
    source: Place
    state: str
    redrives: int
    value: bytes


class Outcome(NamedTuple):
    """What the broker says at the end of a run, about one group."""

    log: dict[Place, tuple[bytes | None, bytes]]
    """Key and value of every record that can be read."""
    states: dict[Place, str]
    """Of the log's records for the group: `settled`, `parked` or `pending`, whichever it is."""
    letters: list[Letter]
