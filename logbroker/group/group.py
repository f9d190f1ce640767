"""A group: its settings, and the topics it reads. Pure."""

from dataclasses import dataclass

from logbroker.group.settings import GroupSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRead:
    """A topic as a group reads it."""

    topic: str
    topic_id: str
    parks_exhausted: bool = False
    """It is a dead-letter topic, read as any other: what is exhausted there stays there."""
    dead_letter_topic: str = ""
    """Where what this group fails at goes; empty until the first such record."""
    dead_letter_topic_id: str = ""
    dead_letter_epoch: int = 0
    """Rises with each such topic: the sequences of dead letters are of one epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group as it stands in the catalog."""

    group: str
    settings: GroupSettings
    created_ms: int
    topics: tuple[TopicRead, ...] = ()
    """By name."""
    seen_ms: int = 0
    """When it last had a member, or a commit; wall time."""

    def topic(self, topic_id: str) -> TopicRead | None:
        """Returns the topic of this id, if the group reads it."""
        return next((topic for topic in self.topics if topic.topic_id == topic_id), None)

    def reading(self, topic: TopicRead) -> tuple[TopicRead, ...]:
        """Returns the topics with this one among them, in the place of its older incarnation."""
        others = (known for known in self.topics if known.topic != topic.topic)
        return tuple(sorted((*others, topic), key=lambda known: known.topic))
