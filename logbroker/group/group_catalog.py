"""The groups there are. `decide_*` checks and changes nothing; `apply` is the only change. Pure.

Names of groups are checked by whoever knows the rule for names; here they are taken as valid.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from logbroker.errors import (
    AlreadyExistsError,
    ExhaustedError,
    NotFoundError,
    PreconditionError,
)
from logbroker.group.group import Group, TopicRead
from logbroker.group.group_events import (
    GroupCreated,
    GroupDeleted,
    GroupEvent,
    GroupSeen,
    GroupUpdated,
    TokensReserved,
    TopicAttached,
    TopicDetached,
)
from logbroker.group.settings import GroupSettings
from logbroker.limits import GROUPS

SEEN_EVERY_MS = 60_000
"""That a group is still in use is written this often at most."""


class GroupCatalog:
    """Groups by name."""

    def __init__(self) -> None:
        self.reserved_end = 1
        """Lease tokens from here on have never been given out."""
        self._groups: dict[str, Group] = {}

    def get(self, group: str) -> Group:
        """Returns the group of that name; NotFoundError (GROUP_NOT_FOUND) where there is none."""
        found = self._groups.get(group)
        if found is None:
            raise NotFoundError("GROUP_NOT_FOUND", f"there is no group {group!r}", group=group)
        return found

    def find(self, group: str) -> Group | None:
        """Returns the group of that name, if there is one."""
        return self._groups.get(group)

    def groups(self) -> list[Group]:
        """Returns all, by name."""
        return [self._groups[name] for name in sorted(self._groups)]

    def reading(self, topic_id: str) -> list[Group]:
        """Returns the groups that read this topic, by name."""
        return [group for group in self.groups() if group.topic(topic_id)]

    def decide_create(
        self, group: str, settings: GroupSettings, *, now_ms: int
    ) -> list[GroupEvent]:
        """Returns the creation; AlreadyExistsError where the name is taken."""
        if group in self._groups:
            message = f"there is a group {group!r} already"
            raise AlreadyExistsError("GROUP_ALREADY_EXISTS", message, group=group)
        if len(self._groups) >= GROUPS:
            message = f"there are {len(self._groups)} groups; no more than {GROUPS} can be"
            raise ExhaustedError("TOO_MANY_GROUPS", message, limit=GROUPS)
        made = Group(group=group, settings=settings, created_ms=now_ms, seen_ms=now_ms)
        return [GroupCreated(made)]

    def decide_update(
        self, group: str, settings: GroupSettings, *, is_in_use: bool
    ) -> list[GroupEvent]:
        """Returns the change of settings, nothing where there is none.

        PreconditionError (GROUP_IN_USE) if the order would change under members or leases.
        """
        known = self.get(group)
        if is_in_use and settings.order is not known.settings.order:
            message = f"the order of {group!r} cannot change while it has members or leases"
            raise PreconditionError("GROUP_IN_USE", message, group=group)
        return [GroupUpdated(group, settings)] if settings != known.settings else []

    def decide_attach(self, group: str, topic: TopicRead) -> list[GroupEvent]:
        """Returns that the group reads the topic, or knows more of it; nothing if it did.

        An older incarnation of the topic's name is forgotten, with all that hung on it.
        """
        known = self.get(group).topic(topic.topic_id)
        return [TopicAttached(group, topic)] if topic != known else []

    def decide_forget_topic(self, topic_id: str) -> list[GroupEvent]:
        """Returns what the deletion of a topic means for all groups."""
        return [TopicDetached(group.group, topic_id) for group in self.reading(topic_id)]

    def decide_unlink(self, dead_letter_topic_id: str) -> list[GroupEvent]:
        """Returns what the deletion of a dead-letter topic means for its group.

        What was parked there is forgotten; the next dead letter has a new topic made.
        """
        return [
            TopicAttached(
                group.group, replace(topic, dead_letter_topic="", dead_letter_topic_id="")
            )
            for group in self.groups()
            for topic in group.topics
            if dead_letter_topic_id and topic.dead_letter_topic_id == dead_letter_topic_id
        ]

    def decide_delete(
        self, group: str, *, is_in_use: bool, is_forced: bool = False
    ) -> list[GroupEvent]:
        """Returns the deletion; PreconditionError (GROUP_IN_USE) under members unless forced."""
        self.get(group)
        if is_in_use and not is_forced:
            message = f"group {group!r} has members or leases"
            raise PreconditionError("GROUP_IN_USE", message, group=group)
        return [GroupDeleted(group)]

    def decide_seen(self, in_use: Collection[str], now_ms: int) -> list[GroupEvent]:
        """Returns which of the groups in use are to be noted as such: now and then."""
        known = (self._groups[name] for name in in_use if name in self._groups)
        return [
            GroupSeen(group.group, now_ms)
            for group in known
            if now_ms - group.seen_ms >= SEEN_EVERY_MS
        ]

    def decide_forget_unused(self, in_use: Collection[str], now_ms: int) -> list[GroupEvent]:
        """Returns the deletion of groups that nobody used for their `group_retention_ms`."""
        return [
            GroupDeleted(group.group)
            for group in self.groups()
            if group.group not in in_use
            and 0 < group.settings.group_retention_ms <= now_ms - group.seen_ms
        ]

    def apply(self, event: GroupEvent) -> None:
        """The only way a catalog changes, live and at replay alike.

        Events about groups that damage took from the journal are passed over.
        """
        match event:
            case GroupCreated(group):
                self._groups[group.group] = group
            case GroupUpdated(name, settings) if known := self._groups.get(name):
                self._groups[name] = replace(known, settings=settings)
            case TopicAttached(name, topic) if known := self._groups.get(name):
                self._groups[name] = replace(known, topics=known.reading(topic))
            case TopicDetached(name, topic_id) if known := self._groups.get(name):
                left = tuple(topic for topic in known.topics if topic.topic_id != topic_id)
                self._groups[name] = replace(known, topics=left)
            case GroupSeen(name, at_ms) if known := self._groups.get(name):
                self._groups[name] = replace(known, seen_ms=max(at_ms, known.seen_ms))
            case GroupDeleted(name):
                self._groups.pop(name, None)
            case TokensReserved(end):
                self.reserved_end = max(end, self.reserved_end)

    def snapshot(self) -> Sequence[GroupEvent]:
        """Returns the events that make an empty catalog equal to this one."""
        return [TokensReserved(self.reserved_end), *map(GroupCreated, self.groups())]
