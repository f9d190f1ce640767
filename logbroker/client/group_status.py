"""What the broker tells of groups: how they are set, who is in them, how far they are."""

from dataclasses import dataclass
from typing import NamedTuple

from logbroker.client.audience import TopicPartition
from logbroker.group.settings import GroupSettings
from logbroker.v1 import group_pb2, group_service_pb2
from logbroker.wire.convert_groups import group_settings_of


@dataclass(frozen=True, slots=True)
class GroupInfo:
    """A group and its settings in force."""

    group: str
    settings: GroupSettings
    created_ms: int
    """In ms since 1970."""
    topics: tuple[str, ...]
    """That it reads or has read."""

    @classmethod
    def of(cls, message: group_pb2.Group) -> "GroupInfo":
        """Returns the value."""
        settings = group_settings_of(message.settings)
        return cls(message.group, settings, message.created_ms, tuple(message.topics))


@dataclass(frozen=True, slots=True)
class MemberInfo:
    """One member, attached now."""

    member_id: str
    client_id: str
    joined_ms: int
    """In ms since 1970."""
    assignment: tuple[TopicPartition, ...]
    """In partition order."""
    leased_count: int

    @classmethod
    def of(cls, message: group_pb2.Member) -> "MemberInfo":
        """Returns the value."""
        return cls(
            message.member_id,
            message.client_id,
            message.joined_ms,
            tuple(TopicPartition(one.topic, one.partition) for one in message.assignment),
            message.leased_count,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProgress:
    """How far a group is in one partition, all of one moment."""

    topic: str
    partition: int
    committed_offset: int | None
    """Everything below is settled. None: the group has settled nothing here yet."""
    high_watermark: int
    log_start_offset: int
    lag: int
    """Records that can be read and are not settled."""
    age_ms: int
    """How long ago the first of them was appended; 0 without lag."""
    leased_count: int
    waiting_count: int
    """Records that wait for the end of their back-off."""
    parked_count: int
    """Records that wait for an operator."""
    failed_count: int
    """Unsettled records that have failed."""
    expired_unsettled_count: int
    """Records that retention removed before they were settled."""
    member_id: str
    """In partition order: the member it belongs to; else empty."""
    waits_for: str
    """Why nothing is delivered just now although there is lag; else empty."""
    discarded_count: int = 0
    """Records given up for good, by `exhausted = discard` or by an operator."""

    @classmethod
    def of(cls, message: group_pb2.PartitionProgress) -> "PartitionProgress":
        """Returns the value."""
        plain = {name: getattr(message, name) for name in cls.__slots__}
        if not message.HasField("committed_offset"):
            plain["committed_offset"] = None
        return cls(**plain)


@dataclass(frozen=True, slots=True)
class DeadLetterProgress:
    """How far a group is with what it failed at, in one partition of a dead-letter topic."""

    topic: str
    partition: int
    parked_count: int
    redriven_count: int
    """Records made available by a redrive and not settled yet."""


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group, its members, and how far it is everywhere."""

    group: GroupInfo
    members: tuple[MemberInfo, ...]
    progress: tuple[PartitionProgress, ...]
    dead_letters: tuple[DeadLetterProgress, ...]

    @property
    def lag(self) -> int:
        """Of all partitions together."""
        return sum(one.lag for one in self.progress)

    @property
    def age_ms(self) -> int:
        """The greatest of all partitions."""
        return max((one.age_ms for one in self.progress), default=0)

    @classmethod
    def of(cls, message: group_service_pb2.GetGroupResponse) -> "GroupDescription":
        """Returns the value."""
        return cls(
            GroupInfo.of(message.group),
            tuple(map(MemberInfo.of, message.members)),
            tuple(map(PartitionProgress.of, message.progress)),
            tuple(
                DeadLetterProgress(one.topic, one.partition, one.parked_count, one.redriven_count)
                for one in message.dead_letters
            ),
        )


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """A group at a glance."""

    group: GroupInfo
    member_count: int
    lag: int
    """Of all partitions together."""
    age_ms: int
    """The greatest of all partitions."""
    blocked_count: int
    """Records given up that wait in their place."""
    parked_count: int
    """Dead letters."""

    @classmethod
    def of(cls, message: group_service_pb2.GroupSummary) -> "GroupSummary":
        """Returns the value."""
        return cls(
            GroupInfo.of(message.group),
            message.member_count,
            message.lag,
            message.age_ms,
            message.blocked_count,
            message.parked_count,
        )


class Commit(NamedTuple):
    """Everything below `offset` of a partition is settled."""

    topic: str
    partition: int
    offset: int
    """0 to the high watermark. Below the committed offset it rewinds, unless automatic."""
    is_automatic: bool = False
    """A commit by a timer or at an end, which never rewinds."""


class OffsetReset(NamedTuple):
    """Where a group was, and where it is, or would be."""

    topic: str
    partition: int
    from_offset: int | None
    """None: it had settled nothing."""
    to_offset: int


class Shift(NamedTuple):
    """So many records on from the committed offset, or back where negative."""

    record_count: int


class RecordExplanation(NamedTuple):
    """Why a record is not delivered to a group now."""

    state: str
    """A short constant, as `leased` or `behind_key`."""
    message: str
    """For people."""
    details: dict[str, str]
    """Every value the message mentions."""
