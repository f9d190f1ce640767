"""The topics there are. `decide_*` checks and changes nothing; `apply` is the only change. Pure.

A name belongs to one topic from its creation until it is erased: deleted, and its files
removed. So files of a deleted topic are never taken for another's, whatever a crash left.
"""

from collections.abc import Sequence
from dataclasses import replace

from logbroker.config import LogConfig
from logbroker.errors import (
    AlreadyExistsError,
    ExhaustedError,
    InvalidError,
    NotFoundError,
    PreconditionError,
    UnavailableError,
)
from logbroker.limits import PARTITIONS, PARTITIONS_PER_TOPIC
from logbroker.record.partition_id import PartitionId
from logbroker.topic.events import (
    TopicCreated,
    TopicDeleted,
    TopicErased,
    TopicEvent,
    TopicGrown,
    TopicUpdated,
)
from logbroker.topic.names import check_name
from logbroker.topic.topic import Topic, TopicSettings


class TopicCatalog:
    """Topics by name; those that are being deleted; names that damage has taken."""

    def __init__(self) -> None:
        self._topics: dict[str, Topic] = {}
        self._names: dict[str, str] = {}
        self._deleted: dict[str, Topic] = {}
        self.damaged_topics: frozenset[str] = frozenset()
        """Names whose files are there and whose settings are lost: refused, never re-created."""

    def get(self, topic: str, topic_id: str = "") -> Topic:
        """Returns the topic of that name.

        NotFoundError where there is none; PreconditionError (TOPIC_RECREATED) where it is
        not the incarnation meant; UnavailableError (TOPIC_DAMAGED) where its settings are lost.
        """
        found = self._topics.get(topic)
        if found is None:
            check_name(topic)
            self._check_sound(topic)
            raise NotFoundError("TOPIC_NOT_FOUND", f"there is no topic {topic!r}", topic=topic)
        if topic_id and topic_id != found.topic_id:
            message = f"{topic!r} is topic {found.topic_id} now, not {topic_id}"
            details = {"topic": topic, "topic_id": topic_id, "current_topic_id": found.topic_id}
            raise PreconditionError("TOPIC_RECREATED", message, **details)
        return found

    def partition(self, topic: str, topic_id: str, partition: int) -> tuple[Topic, PartitionId]:
        """Returns the topic and the id of its partition; raises as `get` does, or NotFoundError."""
        found = self.get(topic, topic_id)
        if not 0 <= partition < found.partition_count:
            message = (
                f"{topic!r} has partitions 0 to {found.partition_count - 1}, and no {partition}"
            )
            details = {"partition": partition, "partition_count": found.partition_count}
            raise NotFoundError("PARTITION_NOT_FOUND", message, topic=topic, **details)
        return found, found.partition(partition)

    def topics(self) -> list[Topic]:
        """Returns all, by name."""
        return [self._topics[name] for name in sorted(self._topics)]

    def find(self, topic_id: str) -> Topic | None:
        """Returns the topic of this id, if it is there."""
        name = self._names.get(topic_id)
        return None if name is None else self._topics.get(name)

    def deleted(self) -> list[Topic]:
        """Returns those whose files are yet to be removed."""
        return list(self._deleted.values())

    def restore(self, events: Sequence[TopicEvent]) -> None:
        """Becomes what the events make of an empty catalog."""
        for kept in (self._topics, self._names, self._deleted):
            kept.clear()
        for event in events:
            self.apply(event)

    def find_damaged(self, partitions: Sequence[PartitionId]) -> None:
        """Takes the names of partitions on disk that belong to no topic here out of use."""
        known = {*self._names, *self._deleted}
        lost = {found.topic for found in partitions if found.topic_id not in known}
        self.damaged_topics = frozenset(name for name in lost if not name.startswith("__"))

    def decide_create(
        self,
        name: str,
        partition_count: int,
        settings: TopicSettings,
        *,
        defaults: LogConfig,
        topic_id: str,
        now_ms: int,
        source: Topic | None = None,
        source_group: str = "",
    ) -> list[TopicEvent]:
        """Returns the creation; raises for what may not be created.

        `source` and `source_group` are those of a dead-letter topic.
        """
        check_name(name)
        count = partition_count or 1
        _check_count(count)
        config = settings.over(defaults)
        if name in self._topics:
            message = f"there is a topic {name!r} already"
            raise AlreadyExistsError("TOPIC_ALREADY_EXISTS", message, topic=name)
        self._check_sound(name)
        if any(topic.topic == name for topic in self._deleted.values()):
            message = f"the files of the deleted topic {name!r} are still being removed"
            raise UnavailableError("STORAGE_FAILED", message, topic=name)
        self._check_room(count)
        topic = Topic(
            topic=name,
            topic_id=topic_id,
            partition_count=count,
            settings=config,
            created_ms=now_ms,
            source_topic=source.topic if source else "",
            source_topic_id=source.topic_id if source else "",
            source_group=source_group,
        )
        return [TopicCreated(topic)]

    def decide_update(self, name: str, topic_id: str, settings: TopicSettings) -> list[TopicEvent]:
        """Returns the change of settings, nothing where there is none."""
        topic = self.get(name, topic_id)
        config = settings.over(topic.settings)
        return [TopicUpdated(topic.topic_id, config)] if config != topic.settings else []

    def decide_grow(self, name: str, topic_id: str, partition_count: int) -> list[TopicEvent]:
        """Returns the growth; InvalidError unless there are more partitions then than now."""
        topic = self.get(name, topic_id)
        _check_count(partition_count)
        if partition_count <= topic.partition_count:
            message = (
                f"{name!r} has {topic.partition_count} partitions; "
                f"it can grow beyond that, not to {partition_count}"
            )
            details = {"partition_count": partition_count, "current": topic.partition_count}
            raise InvalidError("INVALID_ARGUMENT", message, topic=name, **details)
        self._check_room(partition_count - topic.partition_count)
        return [TopicGrown(topic.topic_id, partition_count)]

    def decide_delete(self, name: str, topic_id: str) -> list[TopicEvent]:
        """Returns the deletion."""
        return [TopicDeleted(self.get(name, topic_id).topic_id)]

    def apply(self, event: TopicEvent) -> None:
        """The only way a catalog changes, live and at replay alike.

        Events about topics that damage took from the journal are passed over.
        """
        match event:
            case TopicCreated(topic):
                if before := self._topics.get(topic.topic):  # damage took its deletion
                    del self._names[before.topic_id]
                self._topics[topic.topic] = topic
                self._names[topic.topic_id] = topic.topic
            case TopicUpdated(topic_id, settings) if topic_id in self._names:
                self._change(topic_id, settings=settings)
            case TopicGrown(topic_id, partition_count) if topic_id in self._names:
                self._change(topic_id, partition_count=partition_count)
            case TopicDeleted(topic_id) if topic_id in self._names:
                self._deleted[topic_id] = self._topics.pop(self._names.pop(topic_id))
            case TopicErased(topic_id):
                self._deleted.pop(topic_id, None)

    def snapshot(self) -> list[TopicEvent]:
        """Returns the events that make an empty catalog equal to this one."""
        events: list[TopicEvent] = []
        for topic in self._deleted.values():
            events += [TopicCreated(topic), TopicDeleted(topic.topic_id)]
        return events + [TopicCreated(topic) for topic in self.topics()]

    def _change(self, topic_id: str, **changes: object) -> None:
        name = self._names[topic_id]
        self._topics[name] = replace(self._topics[name], **changes)  # type: ignore[arg-type]

    def _check_sound(self, name: str) -> None:
        if name in self.damaged_topics:
            message = (
                f"the files of topic {name!r} are there, but its settings are lost; "
                "stop the broker and see: logbroker log lost DATA_DIR"
            )
            raise UnavailableError("TOPIC_DAMAGED", message, topic=name)

    def _check_room(self, more: int) -> None:
        count = sum(topic.partition_count for topic in self._topics.values())
        if count + more > PARTITIONS:
            message = f"{count} partitions and {more} more are over {PARTITIONS}"
            details = {"partition_count": count, "limit": PARTITIONS}
            raise ExhaustedError("TOO_MANY_PARTITIONS", message, **details)


def _check_count(partition_count: int) -> None:
    if not 1 <= partition_count <= PARTITIONS_PER_TOPIC:
        message = f"partition_count must be 1 to {PARTITIONS_PER_TOPIC}, not {partition_count}"
        raise InvalidError("INVALID_ARGUMENT", message, partition_count=partition_count)
