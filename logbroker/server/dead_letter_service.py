"""DeadLetterService: translate in, call one broker verb, translate out."""

from typing import Any, Protocol

from logbroker.broker.dead_letter_view import DeadLetterFilter
from logbroker.broker.parked_records import FoundLetter
from logbroker.broker.redrive import RedriveProgress
from logbroker.errors import InvalidError
from logbroker.group.dead_letter import own_headers
from logbroker.group.redrive import Selection
from logbroker.v1 import dead_letter_service_pb2 as pb
from logbroker.v1.dead_letter_service_pb2_grpc import DeadLetterServiceServicer
from logbroker.v1.records_pb2 import Header

RATE_MOST = 1_000_000_000


class DeadLettersOf(Protocol):
    """What this service asks of the broker."""

    async def list_page(
        self, wanted: DeadLetterFilter, *, with_resolved: bool, page_size: int, page_token: str
    ) -> tuple[list[FoundLetter], str]: ...
    async def get(self, wanted: DeadLetterFilter, partition: int, offset: int) -> FoundLetter: ...
    async def resolve(
        self, wanted: DeadLetterFilter, *, is_discard: bool, is_dry_run: bool
    ) -> int: ...
    async def copy(self, wanted: DeadLetterFilter, to_topic: str, *, is_dry_run: bool) -> int: ...
    async def start_redrive(
        self, wanted: DeadLetterFilter, rate: float, *, is_dry_run: bool
    ) -> RedriveProgress: ...
    def get_redrive(self, redrive_id: str) -> RedriveProgress: ...
    def list_redrives(self, group: str) -> list[RedriveProgress]: ...
    async def cancel_redrive(self, redrive_id: str) -> RedriveProgress: ...


class DeadLetterService(DeadLetterServiceServicer):
    """Looks at what groups failed at, and gives it back to them."""

    def __init__(self, dead_letters: DeadLettersOf) -> None:
        self._dead_letters = dead_letters

    async def ListDeadLetters(self, request: pb.ListDeadLettersRequest, context: Any) -> Any:
        """Lists dead letters in pages."""
        found, token = await self._dead_letters.list_page(
            _filter(request.filter),
            with_resolved=request.with_resolved,
            page_size=request.page_size,
            page_token=request.page_token,
        )
        return pb.ListDeadLettersResponse(dead_letters=map(_letter, found), next_page_token=token)

    async def GetDeadLetter(self, request: pb.GetDeadLetterRequest, context: Any) -> Any:
        """Returns one dead letter with its record."""
        wanted = DeadLetterFilter(
            group=request.group, topic=request.topic, is_blocked=request.blocked
        )
        found = await self._dead_letters.get(wanted, request.partition, request.offset)
        return pb.GetDeadLetterResponse(
            dead_letter=_letter(found),
            value=found.record.value,
            headers=[
                Header(name=header.name, value=header.value)
                for header in own_headers(found.record.headers)
            ],
        )

    async def ResolveDeadLetters(self, request: pb.ResolveDeadLettersRequest, context: Any) -> Any:
        """Settles dead letters without delivering them."""
        count = await self._dead_letters.resolve(
            _filter(request.filter), is_discard=request.discard, is_dry_run=request.dry_run
        )
        return pb.ResolveDeadLettersResponse(count=count)

    async def CopyDeadLetters(self, request: pb.CopyDeadLettersRequest, context: Any) -> Any:
        """Copies records of dead letters to another topic."""
        count = await self._dead_letters.copy(
            _filter(request.filter), request.to_topic, is_dry_run=request.dry_run
        )
        return pb.CopyDeadLettersResponse(count=count)

    async def StartRedrive(self, request: pb.StartRedriveRequest, context: Any) -> Any:
        """Starts to make dead letters available again."""
        rate = request.records_per_second
        if not 0 <= rate <= RATE_MOST:
            message = f"records_per_second is 0 to {RATE_MOST}, not {rate}"
            raise InvalidError("INVALID_ARGUMENT", message, records_per_second=str(rate))
        found = await self._dead_letters.start_redrive(
            _filter(request.filter), rate, is_dry_run=request.dry_run
        )
        return pb.StartRedriveResponse(redrive=_redrive(found))

    async def GetRedrive(self, request: pb.GetRedriveRequest, context: Any) -> Any:
        """Returns a redrive."""
        found = self._dead_letters.get_redrive(request.redrive_id)
        return pb.GetRedriveResponse(redrive=_redrive(found))

    async def ListRedrives(self, request: pb.ListRedrivesRequest, context: Any) -> Any:
        """Lists the redrives of a group."""
        found = self._dead_letters.list_redrives(request.group)
        return pb.ListRedrivesResponse(redrives=map(_redrive, found))

    async def CancelRedrive(self, request: pb.CancelRedriveRequest, context: Any) -> Any:
        """Ends a redrive."""
        found = await self._dead_letters.cancel_redrive(request.redrive_id)
        return pb.CancelRedriveResponse(redrive=_redrive(found))


def _filter(message: pb.DeadLetterFilter) -> DeadLetterFilter:
    selection = Selection(
        partition=message.partition if message.HasField("partition") else None,
        first_offset=message.first_offset,
        end_offset=message.end_offset if message.HasField("end_offset") else None,
        from_time_ms=message.from_ms if message.HasField("from_ms") else None,
        until_time_ms=message.until_ms if message.HasField("until_ms") else None,
        reason=message.reason_contains or None,
        key=message.key if message.HasField("key") else None,
        limit=message.limit,
    )
    return DeadLetterFilter(
        group=message.group,
        topic=message.topic,
        is_blocked=message.blocked,
        selection=selection,
    )


def _filter_to_proto(found: RedriveProgress) -> pb.DeadLetterFilter:
    selection = found.redrive.selection
    return pb.DeadLetterFilter(
        group=found.redrive.group,
        topic=found.topic,
        blocked=found.is_blocked,
        partition=selection.partition,
        first_offset=selection.first_offset or None,
        end_offset=selection.end_offset,
        from_ms=selection.from_time_ms,
        until_ms=selection.until_time_ms,
        reason_contains=selection.reason or "",
        key=selection.key,
        limit=selection.limit,
    )


def _letter(found: FoundLetter) -> pb.DeadLetter:
    letter, record = found.letter, found.record
    return pb.DeadLetter(
        dead_letter_topic=found.dead_letter_topic,
        partition=found.partition,
        offset=record.offset,
        state=found.state,
        source_topic=letter.topic,
        source_topic_id=letter.topic_id,
        source_offset=letter.offset,
        source_append_time_ms=letter.append_time_ms,
        failures=letter.failures,
        first_failure_ms=letter.first_failure_ms,
        last_failure_ms=letter.last_failure_ms,
        reason=letter.reason,
        redrives=found.redrives,
        dead_lettered_ms=found.dead_lettered_ms,
        timestamp_ms=record.timestamp_ms,
        key=record.key,
        value_bytes=len(record.value or b""),
    )


def _redrive(found: RedriveProgress) -> pb.Redrive:
    redrive = found.redrive
    return pb.Redrive(
        redrive_id=redrive.redrive_id,
        filter=_filter_to_proto(found),
        state=str(redrive.state),
        selected_count=redrive.selected,
        redriven_count=redrive.redriven,
        resolved_count=found.resolved,
        parked_again_count=found.parked_again,
        started_ms=redrive.created_ms,
        ended_ms=redrive.ended_ms,
        records_per_second=redrive.rate,
    )
