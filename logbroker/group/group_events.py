"""What happens to groups and redrives, and in which ledger something happens. Pure."""

from dataclasses import dataclass
from typing import NamedTuple

from logbroker.group.group import Group, TopicRead
from logbroker.group.ledger_events import LedgerEvent
from logbroker.group.redrive import RedriveAdvanced, RedriveEnded, RedriveStarted
from logbroker.group.settings import GroupSettings


class LedgerId(NamedTuple):
    """One group on one partition of one incarnation of a topic."""

    group: str
    topic_id: str
    partition: int


class InLedger(NamedTuple):
    """Something happened in this ledger."""

    ledger: LedgerId
    event: LedgerEvent


@dataclass(frozen=True, slots=True)
class GroupCreated:
    """A group is there."""

    group: Group


@dataclass(frozen=True, slots=True)
class GroupUpdated:
    """Its settings are these now."""

    group: str
    settings: GroupSettings


@dataclass(frozen=True, slots=True)
class TopicAttached:
    """It reads this topic, or knows more of it. An older incarnation is forgotten."""

    group: str
    topic: TopicRead


@dataclass(frozen=True, slots=True)
class TopicDetached:
    """It does not read this topic any more, and its ledgers there are gone."""

    group: str
    topic_id: str


@dataclass(frozen=True, slots=True)
class GroupSeen:
    """It had a member at this time. Written later: it only puts off the forgetting."""

    group: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class GroupDeleted:
    """It is gone, with its ledgers."""

    group: str


@dataclass(frozen=True, slots=True)
class TokensReserved:
    """Lease tokens below this one may have been given out."""

    end: int


GroupEvent = (
    GroupCreated
    | GroupUpdated
    | TopicAttached
    | TopicDetached
    | GroupSeen
    | GroupDeleted
    | TokensReserved
)
RedriveEvent = RedriveStarted | RedriveAdvanced | RedriveEnded
Event = InLedger | GroupEvent | RedriveEvent
