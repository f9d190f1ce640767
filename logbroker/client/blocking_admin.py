"""Admin for code without an event loop: the same verbs, each waits for its answer."""

from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, Protocol, TypeVar, Unpack

from logbroker.client.admin import Admin, BrokerInfo, GrownTopic, TopicDescription
from logbroker.client.dead_letter_admin import (
    DeadLetterFilter,
    DeadLetterInfo,
    DeadLetterRecord,
    RedriveInfo,
)
from logbroker.client.group_admin import GroupChanges, Place
from logbroker.client.group_status import (
    Commit,
    GroupDescription,
    GroupInfo,
    GroupSummary,
    OffsetReset,
    PartitionProgress,
    RecordExplanation,
)
from logbroker.errors import LogbrokerError
from logbroker.group.settings import GroupSettings
from logbroker.topic.topic import Topic, TopicSettings

T = TypeVar("T")


class Waiting(Protocol):
    """Gives what a coroutine returns on the loop."""

    def __call__(self, work: Coroutine[Any, Any, T]) -> T: ...


class BlockingAdmin:
    """Creates, changes, looks at and deletes topics and groups; see `Admin`."""

    def __init__(self, wait: Waiting, admin: Admin) -> None:
        self._wait = wait
        self._admin = admin

    def create_topic(
        self, topic: str, partition_count: int = 1, settings: TopicSettings | None = None
    ) -> Topic:
        """Returns the new topic."""
        return self._wait(self._admin.create_topic(topic, partition_count, settings))

    def get_topic(self, topic: str) -> TopicDescription:
        """Returns the topic and the state of its partitions."""
        return self._wait(self._admin.get_topic(topic))

    def list_topics(self) -> list[Topic]:
        """Returns all topics, by name."""
        return self._wait(self._admin.list_topics())

    def update_topic(self, topic: str, settings: TopicSettings) -> Topic:
        """Changes what is set in `settings`, and returns the topic as it is then."""
        return self._wait(self._admin.update_topic(topic, settings))

    def grow_topic(self, topic: str, partition_count: int) -> GrownTopic:
        """Raises the number of partitions: from then on, keys go elsewhere."""
        return self._wait(self._admin.grow_topic(topic, partition_count))

    def delete_topic(self, topic: str) -> None:
        """Deletes the topic and its records."""
        self._wait(self._admin.delete_topic(topic))

    def trim_topic(self, topic: str, partition: int, offset: int) -> int:
        """Raises the log start offset to `offset`, and returns it as it is then."""
        return self._wait(self._admin.trim_topic(topic, partition, offset))

    def get_broker(self) -> BrokerInfo:
        """Returns the broker's version and limits."""
        return self._wait(self._admin.get_broker())

    def get_stats(self) -> dict[str, object]:
        """Returns what the broker has counted since it started."""
        return self._wait(self._admin.get_stats())

    def create_group(self, group: str, settings: GroupSettings | None = None) -> GroupInfo:
        """Returns the new group."""
        return self._wait(self._admin.create_group(group, settings))

    def get_group(self, group: str) -> GroupDescription:
        """Returns the group, its members, and how far it is."""
        return self._wait(self._admin.get_group(group))

    def list_groups(self) -> list[GroupSummary]:
        """Returns all groups, by name."""
        return self._wait(self._admin.list_groups())

    def update_group(self, group: str, **changes: Unpack[GroupChanges]) -> GroupInfo:
        """Changes what is given, and returns the group as it is then."""
        return self._wait(self._admin.update_group(group, **changes))

    def delete_group(self, group: str, *, force: bool = False) -> None:
        """Deletes a group and its progress."""
        self._wait(self._admin.delete_group(group, force=force))

    def commit_offsets(self, group: str, commits: Iterable[Commit]) -> list[int | LogbrokerError]:
        """Settles all below the offsets; for each, the committed offset, or why it is not."""
        return self._wait(self._admin.commit_offsets(group, commits))

    def get_offsets(self, group: str, topic: str = "") -> list[PartitionProgress]:
        """Returns how far the group is, in one topic or in all."""
        return self._wait(self._admin.get_offsets(group, topic))

    def reset_offsets(
        self,
        group: str,
        topic: str,
        to: Place,
        *,
        partitions: Sequence[int] = (),
        force: bool = False,
        dry_run: bool = False,
    ) -> list[OffsetReset]:
        """Moves a group to another place in a topic, and returns where it was and is."""
        return self._wait(
            self._admin.reset_offsets(
                group, topic, to, partitions=partitions, force=force, dry_run=dry_run
            )
        )

    def explain(self, group: str, topic: str, partition: int, offset: int) -> RecordExplanation:
        """Returns why a record is not delivered to the group now."""
        return self._wait(self._admin.explain(group, topic, partition, offset))

    def list_dead_letters(
        self, which: DeadLetterFilter, *, with_resolved: bool = False
    ) -> list[DeadLetterInfo]:
        """Returns those that `which` means, by partition and offset, up to its limit."""
        return self._wait(self._admin.list_dead_letters(which, with_resolved=with_resolved))

    def get_dead_letter(
        self, group: str, topic: str, partition: int, offset: int, *, blocked: bool = False
    ) -> DeadLetterRecord:
        """Returns the dead letter at this offset of the dead-letter topic."""
        return self._wait(
            self._admin.get_dead_letter(group, topic, partition, offset, blocked=blocked)
        )

    def resolve_dead_letters(
        self, which: DeadLetterFilter, *, discard: bool = False, dry_run: bool = False
    ) -> int:
        """Settles them for good without delivering them; returns how many."""
        return self._wait(self._admin.resolve_dead_letters(which, discard=discard, dry_run=dry_run))

    def copy_dead_letters(
        self, which: DeadLetterFilter, to_topic: str, *, dry_run: bool = False
    ) -> int:
        """Copies their records to another topic; they stay parked. Returns how many."""
        return self._wait(self._admin.copy_dead_letters(which, to_topic, dry_run=dry_run))

    def start_redrive(
        self, which: DeadLetterFilter, *, records_per_second: float = 0, dry_run: bool = False
    ) -> RedriveInfo:
        """Begins to make them available to their group again, and returns the job."""
        return self._wait(
            self._admin.start_redrive(which, records_per_second=records_per_second, dry_run=dry_run)
        )

    def get_redrive(self, redrive_id: str) -> RedriveInfo:
        """Returns the job as it is now."""
        return self._wait(self._admin.get_redrive(redrive_id))

    def list_redrives(self, group: str) -> list[RedriveInfo]:
        """Returns the jobs of a group, newest first."""
        return self._wait(self._admin.list_redrives(group))

    def cancel_redrive(self, redrive_id: str) -> RedriveInfo:
        """Ends the job; what it has made available stays so."""
        return self._wait(self._admin.cancel_redrive(redrive_id))
