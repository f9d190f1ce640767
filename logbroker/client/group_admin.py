"""Groups: making, showing, changing, moving and removing them. Every verb is one call."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypedDict, Unpack

from logbroker.client.connection import Connection
from logbroker.client.group_status import (
    Commit,
    GroupDescription,
    GroupInfo,
    GroupSummary,
    OffsetReset,
    PartitionProgress,
    RecordExplanation,
    Shift,
)
from logbroker.client.partition_stream import Timestamp
from logbroker.errors import InvalidError, LogbrokerError
from logbroker.group.retry_policy import Exhausted
from logbroker.group.settings import AfterDeadLetter, GroupSettings, Order, OutOfRange
from logbroker.limits import PAGE_SIZE
from logbroker.v1 import group_pb2
from logbroker.v1 import group_service_pb2 as pb
from logbroker.wire.convert_groups import (
    AFTER_DEAD_LETTER,
    EXHAUSTED,
    ORDERS,
    OUT_OF_RANGE,
    group_settings_to_proto,
)
from logbroker.wire.status import error_from

Place = str | int | Timestamp | Shift
"""`earliest`, `latest`, an offset, a Timestamp, or a Shift."""


class GroupChanges(TypedDict, total=False):
    """What can be changed of a group; what is not given stays as it is."""

    order: Order | str
    lease_ms: int
    retry_initial_ms: int
    retry_multiplier: float
    retry_max_ms: int
    max_failures: int
    exhausted: Exhausted | str
    after_dead_letter: AfterDeadLetter | str
    max_unsettled: int
    start: str | int | Timestamp
    out_of_range: OutOfRange | str
    group_retention_ms: int


ENUMS: dict[str, Mapping[Any, StrEnum]] = {
    "order": ORDERS,
    "exhausted": EXHAUSTED,
    "after_dead_letter": AFTER_DEAD_LETTER,
    "out_of_range": OUT_OF_RANGE,
}


class GroupAdmin:
    """The verbs of groups; a part of `Admin`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def create_group(self, group: str, settings: GroupSettings | None = None) -> GroupInfo:
        """Returns the new group. AlreadyExistsError. Not needed before reading as a group."""
        request = pb.CreateGroupRequest(group=group)
        if settings is not None:
            request.settings.CopyFrom(group_settings_to_proto(settings))
        response = await self._connection.call(
            "GroupService/CreateGroup", request, pb.CreateGroupResponse, repeatable=False
        )
        return GroupInfo.of(response.group)

    async def get_group(self, group: str) -> GroupDescription:
        """Returns the group, its members, and how far it is. NotFoundError."""
        request = pb.GetGroupRequest(group=group)
        return GroupDescription.of(
            await self._connection.call("GroupService/GetGroup", request, pb.GetGroupResponse)
        )

    async def list_groups(self) -> list[GroupSummary]:
        """Returns all groups, by name."""
        groups: list[GroupSummary] = []
        token = ""
        while True:
            request = pb.ListGroupsRequest(page_size=PAGE_SIZE, page_token=token)
            response = await self._connection.call(
                "GroupService/ListGroups", request, pb.ListGroupsResponse
            )
            groups += map(GroupSummary.of, response.groups)
            token = response.next_page_token
            if not token:
                return groups

    async def update_group(self, group: str, **changes: Unpack[GroupChanges]) -> GroupInfo:
        """Changes what is given, and returns the group as it is then.

        `order` only while no members are attached: PreconditionError GROUP_IN_USE.
        """
        request = pb.UpdateGroupRequest(group=group, settings=_changes_to_proto(changes))
        response = await self._connection.call(
            "GroupService/UpdateGroup", request, pb.UpdateGroupResponse
        )
        return GroupInfo.of(response.group)

    async def delete_group(self, group: str, *, force: bool = False) -> None:
        """Deletes a group and its progress; its dead-letter topics stay.

        PreconditionError GROUP_IN_USE while members are attached, unless forced.
        """
        request = pb.DeleteGroupRequest(group=group, force=force)
        await self._connection.call(
            "GroupService/DeleteGroup", request, pb.DeleteGroupResponse, repeatable=False
        )

    async def commit_offsets(
        self, group: str, commits: Iterable[Commit]
    ) -> list[int | LogbrokerError]:
        """Settles all below the offsets; for each, the committed offset, or why it is not.

        The group is made if there is none.
        """
        request = pb.CommitOffsetsRequest(group=group)
        for topic, partition, offset, is_automatic in commits:
            request.commits.add(
                topic=topic, partition=partition, offset=offset, is_automatic=is_automatic
            )
        response = await self._connection.call(
            "GroupService/CommitOffsets", request, pb.CommitOffsetsResponse
        )
        return [
            error_from(one.error) if one.HasField("error") else one.committed_offset
            for one in response.results
        ]

    async def get_offsets(self, group: str, topic: str = "") -> list[PartitionProgress]:
        """Returns how far the group is, in one topic or in all. NotFoundError."""
        request = pb.GetOffsetsRequest(group=group, topic=topic)
        response = await self._connection.call(
            "GroupService/GetOffsets", request, pb.GetOffsetsResponse
        )
        return [PartitionProgress.of(one) for one in response.progress]

    async def reset_offsets(
        self,
        group: str,
        topic: str,
        to: Place,
        *,
        partitions: Sequence[int] = (),
        force: bool = False,
        dry_run: bool = False,
    ) -> list[OffsetReset]:
        """Moves a group to another place in a topic, and returns where it was and is.

        PreconditionError GROUP_IN_USE while members are attached, unless forced: then they
        lose their leases and go on from there. A shift is not tried again by itself when the
        connection breaks: OutcomeUnknownError.
        """
        request = pb.ResetOffsetsRequest(
            group=group, topic=topic, partitions=partitions, force=force, dry_run=dry_run
        )
        match to:
            case "earliest":
                request.earliest = True
            case "latest":
                request.latest = True
            case Timestamp(timestamp_ms):
                request.timestamp_ms = timestamp_ms
            case Shift(record_count):
                request.shift = record_count
            case int():
                request.offset = to
            case _:
                message = f"to must be earliest, latest, an offset, a Timestamp or a Shift: {to!r}"
                raise InvalidError("INVALID_ARGUMENT", message, field="to")
        response = await self._connection.call(
            "GroupService/ResetOffsets",
            request,
            pb.ResetOffsetsResponse,
            repeatable=not isinstance(to, Shift),
        )
        return [
            OffsetReset(
                one.topic,
                one.partition,
                one.from_offset if one.HasField("from_offset") else None,
                one.to_offset,
            )
            for one in response.resets
        ]

    async def explain(
        self, group: str, topic: str, partition: int, offset: int
    ) -> RecordExplanation:
        """Returns why a record is not delivered to the group now. NotFoundError."""
        request = pb.ExplainRequest(group=group, topic=topic, partition=partition, offset=offset)
        found = await self._connection.call("GroupService/Explain", request, pb.ExplainResponse)
        return RecordExplanation(found.state, found.message, dict(found.details))


def _changes_to_proto(changes: GroupChanges) -> group_pb2.GroupSettings:
    """Returns what is given as a message. InvalidError for what there is not."""
    message = group_pb2.GroupSettings()
    for name, value in changes.items():
        if name == "start":
            message.start.CopyFrom(_start_to_proto(value))
        elif name in ENUMS:
            setattr(message, name, _number(name, value))
        elif name in GroupChanges.__annotations__:
            setattr(message, name, value)
        else:
            raise InvalidError("INVALID_SETTING", f"there is no setting {name}", setting=name)
    return message


def _number(name: str, value: object) -> int:
    for number, known in ENUMS[name].items():
        if known == value:
            return int(number)
    message = f"{name}: {value!r} is none of {', '.join(ENUMS[name].values())}"
    raise InvalidError("INVALID_SETTING", message, setting=name)


def _start_to_proto(start: object) -> group_pb2.GroupStart:
    match start:
        case "earliest":
            return group_pb2.GroupStart(earliest=True)
        case "latest":
            return group_pb2.GroupStart(latest=True)
        case Timestamp(timestamp_ms):
            return group_pb2.GroupStart(timestamp_ms=timestamp_ms)
        case int(offset):
            return group_pb2.GroupStart(offset=offset)
    message = f"start must be earliest, latest, an offset or a Timestamp, not {start!r}"
    raise InvalidError("INVALID_SETTING", message, setting="start")
