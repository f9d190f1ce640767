"""Dead letters: looking at them, giving them back to their group, putting them away."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from logbroker.client.connection import Connection
from logbroker.limits import PAGE_SIZE
from logbroker.record.record import Header
from logbroker.v1 import dead_letter_service_pb2 as pb
from logbroker.wire.convert import headers_of


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterFilter:
    """Which dead letters, or blocked records. What is None or empty does not restrict."""

    group: str
    topic: str
    """That they came from."""
    partition: int | None = None
    first_offset: int | None = None
    """In the dead-letter topic."""
    end_offset: int | None = None
    """One past the last."""
    from_ms: int | None = None
    """Dead-lettered at or after this time, in ms since 1970."""
    until_ms: int | None = None
    """Dead-lettered before this time."""
    reason_contains: str = ""
    key: bytes | None = None
    limit: int = 0
    """At most so many, by partition, the oldest first; 0: all."""
    blocked: bool = False
    """Not dead letters, but what waits in its place in the topic (`exhausted = block`)."""

    def to_proto(self) -> pb.DeadLetterFilter:
        """Returns the message."""
        return pb.DeadLetterFilter(**{name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def of(cls, message: pb.DeadLetterFilter) -> "DeadLetterFilter":
        """Returns the value."""
        return cls(**_fields(message, cls.__slots__))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterInfo:
    """What a group failed at."""

    dead_letter_topic: str
    """Empty for a blocked record."""
    partition: int
    """Of both topics."""
    offset: int
    """In the dead-letter topic, or of the blocked record."""
    state: str
    """`parked`, `available`, `leased`, `waiting` or `resolved`."""
    source_topic: str
    source_topic_id: str
    source_offset: int
    source_append_time_ms: int
    failures: int
    """Before it came here or, if it failed again since its last redrive, since that."""
    first_failure_ms: int
    """Of all."""
    last_failure_ms: int
    reason: str
    """Of the last failure."""
    redrives: int
    dead_lettered_ms: int
    timestamp_ms: int
    """The record's own."""
    key: bytes | None
    value_bytes: int

    @classmethod
    def of(cls, message: pb.DeadLetter) -> "DeadLetterInfo":
        """Returns the value."""
        return cls(**_fields(message, cls.__slots__))


class DeadLetterRecord(NamedTuple):
    """A dead letter with its record."""

    dead_letter: DeadLetterInfo
    value: bytes | None
    headers: tuple[Header, ...]
    """Its own, without ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveInfo:
    """A redrive: a job that makes dead letters available to their group again."""

    redrive_id: str
    filter: DeadLetterFilter
    state: str
    """`running`, `done` or `cancelled`."""
    selected_count: int
    """How many it is about."""
    redriven_count: int
    """How many it has made available."""
    resolved_count: int
    """How many of these are settled since."""
    parked_again_count: int
    """How many of these failed again and are parked now."""
    started_ms: int
    ended_ms: int
    """0 while it runs."""
    records_per_second: float
    """As asked for; 0: as fast as the group takes them."""

    @classmethod
    def of(cls, message: pb.Redrive) -> "RedriveInfo":
        """Returns the value."""
        plain = _fields(message, cls.__slots__)
        return cls(**{**plain, "filter": DeadLetterFilter.of(message.filter)})


class DeadLetterAdmin:
    """The verbs of dead letters; a part of `Admin`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list_dead_letters(
        self,
        which: DeadLetterFilter,
        *,
        with_resolved: bool = False,
    ) -> list[DeadLetterInfo]:
        """Returns those that `which` means, by partition and offset, up to its limit."""
        found: list[DeadLetterInfo] = []
        token = ""
        while True:
            left = which.limit - len(found) if which.limit else PAGE_SIZE
            request = pb.ListDeadLettersRequest(
                filter=which.to_proto(),
                with_resolved=with_resolved,
                page_size=min(left, PAGE_SIZE),
                page_token=token,
            )
            response = await self._connection.call(
                "DeadLetterService/ListDeadLetters", request, pb.ListDeadLettersResponse
            )
            found += map(DeadLetterInfo.of, response.dead_letters)
            token = response.next_page_token
            if not token or 0 < which.limit <= len(found):
                return found[: which.limit] if which.limit else found

    async def get_dead_letter(
        self, group: str, topic: str, partition: int, offset: int, *, blocked: bool = False
    ) -> DeadLetterRecord:
        """Returns the dead letter at this offset of the dead-letter topic. NotFoundError.

        `blocked`: a blocked record at this offset of the topic itself.
        """
        request = pb.GetDeadLetterRequest(
            group=group, topic=topic, partition=partition, offset=offset, blocked=blocked
        )
        response = await self._connection.call(
            "DeadLetterService/GetDeadLetter", request, pb.GetDeadLetterResponse
        )
        return DeadLetterRecord(
            DeadLetterInfo.of(response.dead_letter),
            response.value if response.HasField("value") else None,
            headers_of(response.headers),
        )

    async def resolve_dead_letters(
        self,
        which: DeadLetterFilter,
        *,
        discard: bool = False,
        dry_run: bool = False,
    ) -> int:
        """Settles them for good without delivering them; returns how many.

        Those that a member holds, after a redrive, are left alone.
        `discard`: they are given up, rather than dealt with elsewhere.
        """
        request = pb.ResolveDeadLettersRequest(
            filter=which.to_proto(), discard=discard, dry_run=dry_run
        )
        response = await self._connection.call(
            "DeadLetterService/ResolveDeadLetters", request, pb.ResolveDeadLettersResponse
        )
        return response.count

    async def copy_dead_letters(
        self,
        which: DeadLetterFilter,
        to_topic: str,
        *,
        dry_run: bool = False,
    ) -> int:
        """Copies their records to another topic; they stay parked. Returns how many."""
        request = pb.CopyDeadLettersRequest(
            filter=which.to_proto(), to_topic=to_topic, dry_run=dry_run
        )
        response = await self._connection.call(
            "DeadLetterService/CopyDeadLetters",
            request,
            pb.CopyDeadLettersResponse,
            repeatable=dry_run,
        )
        return response.count

    async def start_redrive(
        self,
        which: DeadLetterFilter,
        *,
        records_per_second: float = 0,
        dry_run: bool = False,
    ) -> RedriveInfo:
        """Begins to make them available to their group again, and returns the job.

        ConflictError REDRIVE_RUNNING if another one is about the same ones. With `dry_run`
        only `selected_count` says something.
        """
        request = pb.StartRedriveRequest(
            filter=which.to_proto(), records_per_second=records_per_second, dry_run=dry_run
        )
        response = await self._connection.call(
            "DeadLetterService/StartRedrive",
            request,
            pb.StartRedriveResponse,
            repeatable=dry_run,
        )
        return RedriveInfo.of(response.redrive)

    async def get_redrive(self, redrive_id: str) -> RedriveInfo:
        """Returns the job as it is now. NotFoundError REDRIVE_NOT_FOUND."""
        request = pb.GetRedriveRequest(redrive_id=redrive_id)
        response = await self._connection.call(
            "DeadLetterService/GetRedrive", request, pb.GetRedriveResponse
        )
        return RedriveInfo.of(response.redrive)

    async def list_redrives(self, group: str) -> list[RedriveInfo]:
        """Returns the jobs of a group, newest first."""
        request = pb.ListRedrivesRequest(group=group)
        response = await self._connection.call(
            "DeadLetterService/ListRedrives", request, pb.ListRedrivesResponse
        )
        return [RedriveInfo.of(one) for one in response.redrives]

    async def cancel_redrive(self, redrive_id: str) -> RedriveInfo:
        """Ends the job; what it has made available stays so."""
        request = pb.CancelRedriveRequest(redrive_id=redrive_id)
        response = await self._connection.call(
            "DeadLetterService/CancelRedrive", request, pb.CancelRedriveResponse
        )
        return RedriveInfo.of(response.redrive)


def _fields(message: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Returns fields by name; an optional one that is absent is None."""
    found = {}
    for name in names:
        field = message.DESCRIPTOR.fields_by_name[name]
        is_absent = field.has_presence and not message.HasField(name)
        found[name] = None if is_absent and field.message_type is None else getattr(message, name)
    return found
