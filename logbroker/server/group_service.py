"""GroupService: translate in, call one broker verb, translate out."""

from collections.abc import Sequence
from typing import Any, Protocol

from logbroker.broker.member import Member
from logbroker.broker.offsets import Commit, CommitResult, OffsetReset
from logbroker.broker.progress_view import DeadLetterProgress, PartitionProgress
from logbroker.broker.stats import GroupStats
from logbroker.errors import InvalidError
from logbroker.group.group import Group
from logbroker.group.settings import GroupSettings, Start
from logbroker.group.start_position import Position
from logbroker.v1 import group_pb2
from logbroker.v1 import group_service_pb2 as pb
from logbroker.v1.group_service_pb2_grpc import GroupServiceServicer
from logbroker.wire.convert_groups import group_settings_of, group_to_proto, topic_partitions
from logbroker.wire.status import error_to_proto


class GroupsOf(Protocol):
    """What this service asks of the broker."""

    async def create(self, name: str, settings: GroupSettings) -> Group: ...
    def get(self, name: str) -> Group: ...
    def members(self, name: str) -> list[tuple[Member, list[tuple[str, int]]]]: ...
    async def progress(self, name: str, topic: str) -> list[PartitionProgress]: ...
    def dead_letters(self, name: str) -> list[DeadLetterProgress]: ...
    async def list_page(
        self, page_size: int, page_token: str
    ) -> tuple[list[tuple[Group, GroupStats]], str]: ...
    async def update(self, name: str, settings: GroupSettings) -> Group: ...
    async def delete(self, name: str, *, is_forced: bool) -> None: ...
    async def commit_offsets(self, group: str, commits: Sequence[Commit]) -> list[CommitResult]: ...
    async def reset_offsets(
        self,
        group: str,
        topic: str,
        partitions: Sequence[int],
        to: Position,
        *,
        is_forced: bool,
        is_dry_run: bool,
    ) -> list[OffsetReset]: ...
    async def explain(
        self, group: str, topic: str, partition: int, offset: int
    ) -> tuple[str, str, dict[str, Any]]: ...


class GroupService(GroupServiceServicer):
    """Makes, shows, changes, resets and removes groups."""

    def __init__(self, groups: GroupsOf) -> None:
        self._groups = groups

    async def CreateGroup(self, request: pb.CreateGroupRequest, context: Any) -> Any:
        """Creates a group."""
        settings = group_settings_of(request.settings)
        group = await self._groups.create(request.group, settings)
        return pb.CreateGroupResponse(group=group_to_proto(group))

    async def GetGroup(self, request: pb.GetGroupRequest, context: Any) -> Any:
        """Returns a group, its members, and how far it is."""
        group = self._groups.get(request.group)
        progress = await self._groups.progress(request.group, "")
        return pb.GetGroupResponse(
            group=group_to_proto(group),
            members=[_member(*one) for one in self._groups.members(request.group)],
            progress=map(_progress, progress),
            dead_letters=[
                pb.DeadLetterProgress(
                    topic=one.topic,
                    partition=one.partition,
                    parked_count=one.parked,
                    redriven_count=one.redriven,
                )
                for one in self._groups.dead_letters(request.group)
            ],
        )

    async def ListGroups(self, request: pb.ListGroupsRequest, context: Any) -> Any:
        """Lists groups by name, in pages."""
        found, token = await self._groups.list_page(request.page_size, request.page_token)
        summaries = [
            pb.GroupSummary(
                group=group_to_proto(group),
                member_count=stats.member_count,
                lag=stats.lag,
                age_ms=stats.age_ms,
                parked_count=stats.parked_count,
                blocked_count=stats.blocked_count,
            )
            for group, stats in found
        ]
        return pb.ListGroupsResponse(groups=summaries, next_page_token=token)

    async def UpdateGroup(self, request: pb.UpdateGroupRequest, context: Any) -> Any:
        """Changes settings."""
        known = self._groups.get(request.group).settings
        settings = group_settings_of(request.settings, known)
        group = await self._groups.update(request.group, settings)
        return pb.UpdateGroupResponse(group=group_to_proto(group))

    async def DeleteGroup(self, request: pb.DeleteGroupRequest, context: Any) -> Any:
        """Deletes a group and its progress."""
        await self._groups.delete(request.group, is_forced=request.force)
        return pb.DeleteGroupResponse()

    async def CommitOffsets(self, request: pb.CommitOffsetsRequest, context: Any) -> Any:
        """Settles everything below offsets."""
        commits = [
            Commit(one.topic, one.topic_id, one.partition, one.offset, one.is_automatic)
            for one in request.commits
        ]
        results = await self._groups.commit_offsets(request.group, commits)
        return pb.CommitOffsetsResponse(
            results=[
                pb.CommitResult(
                    committed_offset=one.committed,
                    error=error_to_proto(one.error) if one.error else None,
                )
                for one in results
            ]
        )

    async def GetOffsets(self, request: pb.GetOffsetsRequest, context: Any) -> Any:
        """Returns committed offsets."""
        progress = await self._groups.progress(request.group, request.topic)
        return pb.GetOffsetsResponse(progress=map(_progress, progress))

    async def ResetOffsets(self, request: pb.ResetOffsetsRequest, context: Any) -> Any:
        """Moves a group to another place."""
        resets = await self._groups.reset_offsets(
            request.group,
            request.topic,
            list(request.partitions),
            _position(request),
            is_forced=request.force,
            is_dry_run=request.dry_run,
        )
        return pb.ResetOffsetsResponse(
            resets=[
                pb.OffsetReset(
                    topic=one.topic,
                    partition=one.partition,
                    from_offset=one.from_offset,
                    to_offset=one.to_offset,
                )
                for one in resets
            ]
        )

    async def Explain(self, request: pb.ExplainRequest, context: Any) -> Any:
        """Says why a record is not delivered."""
        state, message, details = await self._groups.explain(
            request.group, request.topic, request.partition, request.offset
        )
        texts = {name: str(value) for name, value in details.items()}
        return pb.ExplainResponse(state=state, message=message, details=texts)


def _position(request: pb.ResetOffsetsRequest) -> Position:
    match request.WhichOneof("to"):
        case "earliest":
            return Position(Start.EARLIEST)
        case "latest":
            return Position(Start.LATEST)
        case "offset":
            return Position(Start.OFFSET, offset=request.offset)
        case "timestamp_ms":
            return Position(Start.TIME, time_ms=request.timestamp_ms)
        case "shift":
            return Position(Start.OFFSET, shift=request.shift)
    raise InvalidError("INVALID_ARGUMENT", "say where to: earliest, latest, offset, time or shift")


def _member(member: Member, assignment: list[tuple[str, int]]) -> group_pb2.Member:
    return group_pb2.Member(
        member_id=member.holding.name,
        client_id=member.client_id,
        joined_ms=member.joined_ms,
        assignment=topic_partitions(assignment),
        leased_count=member.holding.record_count,
    )


def _progress(one: PartitionProgress) -> group_pb2.PartitionProgress:
    progress = one.progress
    return group_pb2.PartitionProgress(
        topic=one.topic,
        partition=one.partition,
        committed_offset=progress.committed,
        high_watermark=progress.high_watermark,
        log_start_offset=progress.log_start_offset,
        lag=progress.lag,
        age_ms=one.age_ms,
        leased_count=progress.leased,
        waiting_count=progress.waiting,
        parked_count=progress.parked,
        failed_count=one.failed,
        expired_unsettled_count=progress.expired_unsettled,
        member_id=one.member,
        waits_for=one.waits_for,
        discarded_count=progress.discarded,
    )
