"""All that is journaled about groups, as one state: groups, their ledgers, redrives. Pure.

The broker decides on the parts, applies here, and journals; replay and snapshots are here too.
"""

from collections.abc import Iterable

from logbroker.group.group import Group, TopicRead
from logbroker.group.group_catalog import GroupCatalog
from logbroker.group.group_events import (
    Event,
    GroupDeleted,
    GroupUpdated,
    InLedger,
    LedgerId,
    TopicAttached,
    TopicDetached,
)
from logbroker.group.lease_table import EndedLeases
from logbroker.group.ledger import Ledger
from logbroker.group.ledger_events import Moment
from logbroker.group.redrive import RedriveAdvanced, RedriveEnded, Redrives, RedriveStarted
from logbroker.group.settings import GroupSettings
from logbroker.group.snapshot import snapshot


class Ledgers:
    """Groups, the ledgers of the partitions they read, and redrives."""

    def __init__(self) -> None:
        self.catalog = GroupCatalog()
        self.redrives = Redrives()
        self.ended_leases = EndedLeases()
        self._ledgers: dict[LedgerId, Ledger] = {}
        self._by_group: dict[str, dict[LedgerId, Ledger]] = {}

    def get(self, ledger_id: LedgerId) -> Ledger | None:
        """Returns the ledger; None if the group has not begun there."""
        return self._ledgers.get(ledger_id)

    def of(self, group: str, topic_id: str | None = None) -> dict[LedgerId, Ledger]:
        """Returns the ledgers of a group, those of one topic perhaps, by partition."""
        mine = self._by_group.get(group, {})
        return {
            ledger_id: mine[ledger_id]
            for ledger_id in sorted(mine)
            if topic_id in (None, ledger_id.topic_id)
        }

    def all(self) -> dict[LedgerId, Ledger]:
        """Returns every ledger."""
        return self._ledgers

    def new_ledger(self, ledger_id: LedgerId) -> Ledger:
        """Returns an empty ledger as the group and the topic want it, to decide a start by."""
        group = self.catalog.find(ledger_id.group)
        settings = group.settings if group else GroupSettings()
        topics = group.topics if group else ()
        return Ledger(
            settings,
            is_parked_from_birth=any(
                topic.dead_letter_topic_id == ledger_id.topic_id for topic in topics
            ),
            parks_exhausted=any(
                topic.topic_id == ledger_id.topic_id and topic.parks_exhausted for topic in topics
            ),
            ended_leases=self.ended_leases,
        )

    def apply(self, event: Event, now: Moment) -> None:
        """The only way any of it changes, live and at replay alike."""
        match event:
            case InLedger(ledger_id, happened):
                ledger = self._ledgers.get(ledger_id)
                if ledger is None:
                    ledger = self._ledgers[ledger_id] = self.new_ledger(ledger_id)
                    self._by_group.setdefault(ledger_id.group, {})[ledger_id] = ledger
                ledger.apply(happened, now)
                return
            case RedriveStarted() | RedriveAdvanced() | RedriveEnded():
                self.redrives.apply(event)
                return
            case TopicAttached(name, topic) if group := self.catalog.find(name):
                for other in group.topics:
                    if other.topic == topic.topic and other.topic_id != topic.topic_id:
                        self._forget_topic(group, other)
                known = group.topic(topic.topic_id)
                if known and known.dead_letter_topic_id != topic.dead_letter_topic_id:
                    self._forget(name, known.dead_letter_topic_id)
            case TopicDetached(name, topic_id) if group := self.catalog.find(name):
                if known := group.topic(topic_id):
                    self._forget_topic(group, known)
            case GroupDeleted(name):
                for ledger_id in self._by_group.pop(name, {}):
                    del self._ledgers[ledger_id]
                self.redrives.forget(name)
            case GroupUpdated(name, settings):
                for ledger in self.of(name).values():
                    ledger.settings = settings
        self.catalog.apply(event)

    def restore(self, events: Iterable[Event], now: Moment) -> None:
        """Becomes what the events make of an empty one. Nothing is leased then."""
        self.catalog, self.redrives = GroupCatalog(), Redrives()
        self._ledgers, self._by_group = {}, {}
        for event in events:
            self.apply(event, now)

    def snapshot(self) -> list[Event]:
        """Returns the events that make an empty one equal to this one, but for leases."""
        events: list[Event] = [*self.catalog.snapshot(), *self.redrives.snapshot()]
        for ledger_id, ledger in self._ledgers.items():
            events += [InLedger(ledger_id, event) for event in snapshot(ledger.state)]
        return events

    def _forget_topic(self, group: Group, topic: TopicRead) -> None:
        for topic_id in (topic.topic_id, topic.dead_letter_topic_id):
            self._forget(group.group, topic_id)

    def _forget(self, group: str, topic_id: str) -> None:
        if topic_id:
            self.redrives.forget(group, topic_id)
            for ledger_id in self.of(group, topic_id):
                del self._ledgers[ledger_id]
                del self._by_group[group][ledger_id]
