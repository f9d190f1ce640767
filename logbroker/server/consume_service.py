"""ConsumeService: translate in, call one broker verb, translate out."""

import asyncio
from collections.abc import Iterable
from typing import Any, Protocol

import grpc
from google.protobuf.message import DecodeError

from logbroker.broker.lease import LeaseSpec
from logbroker.broker.leasing import Delivery
from logbroker.broker.member import NOTHING, Member, News
from logbroker.broker.membership import MemberSpec
from logbroker.broker.settle import Settlement, SettleResult
from logbroker.errors import InvalidError, LogbrokerError
from logbroker.server.open_streams import OpenStreams, shutting_down
from logbroker.v1 import consume_service_pb2 as pb
from logbroker.v1 import error_pb2
from logbroker.wire.consume_response import delivery_fields
from logbroker.wire.convert_groups import (
    CAUSES,
    ORDERS,
    group_settings_of,
    group_settings_to_proto,
    topic_partitions,
)
from logbroker.wire.status import error_to_proto


class Consuming(Protocol):
    """What this service asks of the broker."""

    async def join(self, spec: MemberSpec) -> Member: ...
    async def leave(self, member: Member, *, has_vanished: bool) -> None: ...
    async def lease(self, spec: LeaseSpec) -> Delivery | None: ...
    async def settle(self, group: str, settlements: list[Settlement]) -> list[SettleResult]: ...
    def extend(
        self, group: str, extensions: list[tuple[int, int]]
    ) -> list[LogbrokerError | None]: ...


class ConsumeService:
    """Gives bytes for batches: their records are not parsed here."""

    def __init__(self, broker: Consuming, streams: OpenStreams) -> None:
        self._broker = broker
        self._streams = streams

    def handler(self) -> grpc.GenericRpcHandler:
        """Returns the handlers of this service's methods."""
        methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            "Consume": grpc.stream_stream_rpc_method_handler(self.Consume, None, None),
            "Lease": grpc.unary_unary_rpc_method_handler(
                self.Lease, pb.LeaseRequest.FromString, None
            ),
            "Settle": grpc.unary_unary_rpc_method_handler(
                self.Settle, pb.SettleRequest.FromString, pb.SettleResponse.SerializeToString
            ),
            "Extend": grpc.unary_unary_rpc_method_handler(
                self.Extend, pb.ExtendRequest.FromString, pb.ExtendResponse.SerializeToString
            ),
        }
        return grpc.method_handlers_generic_handler("logbroker.v1.ConsumeService", methods)

    async def Consume(self, requests: Any, context: Any) -> None:
        """Makes the stream a member of a group, as long as it lasts."""
        stream = ConsumeStream(self._broker, context)
        with self._streams.entered(stream.stop):
            await stream.run()
            if self._streams.is_stopping:
                raise shutting_down()

    async def Lease(self, request: pb.LeaseRequest, context: Any) -> bytes:
        """Leases records without a stream."""
        with self._streams.entered():
            found = await self._broker.lease(
                LeaseSpec(
                    group=request.group,
                    topics=tuple(request.topics),
                    max_records=request.max_records,
                    max_bytes=request.max_bytes,
                    lease_ms=request.lease_ms,
                    wait_ms=request.wait_ms,
                )
            )
        return _delivery(found) + found.batches if found else b""

    async def Settle(self, request: pb.SettleRequest, context: Any) -> Any:
        """Takes answers for leased records."""
        results = await self._broker.settle(request.group, _settlements(request.settlements))
        return pb.SettleResponse(results=_settled(results))

    async def Extend(self, request: pb.ExtendRequest, context: Any) -> Any:
        """Moves deadlines."""
        results = self._broker.extend(request.group, _extensions(request.extensions))
        return pb.ExtendResponse(results=map(_extended, results))


class ConsumeStream:
    """One open `Consume`: a task that reads, and one that tells and delivers."""

    def __init__(self, broker: Consuming, context: Any) -> None:
        self._broker = broker
        self._context = context
        self._member: Member | None = None
        self._has_left = False
        """In order: by a `leave`, or as the broker stops."""
        self._reader: asyncio.Task[None] | None = None
        self._is_writing = self._is_over = False

    async def run(self) -> None:
        """Returns when the client has left, or after `stop`; raises what ends the stream."""
        data = await self._context.read()
        if data is grpc.aio.EOF:
            raise InvalidError("INVALID_ARGUMENT", "the first request is `open`")
        self._member = await self._broker.join(_spec(_request(data)))
        try:
            self._reader = asyncio.create_task(self._read(self._member))
            teller = asyncio.create_task(self._tell(self._member))
            tasks = {self._reader, teller}
            try:
                if not self._has_left:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                self._is_over = True
                if self._is_writing:  # gRPC cannot end a stream whose write was given up
                    tasks.remove(teller)
            finally:
                for task in tasks:
                    task.cancel()
                tasks.add(teller)
                await asyncio.wait(tasks)
            for task in tasks:
                if not task.cancelled():
                    task.result()
        finally:
            leaving = self._broker.leave(self._member, has_vanished=not self._has_left)
            await asyncio.shield(asyncio.ensure_future(leaving))

    def stop(self) -> None:
        """Ends the stream as the broker stops."""
        self._has_left = True
        if self._reader:
            self._reader.cancel()

    async def _read(self, member: Member) -> None:
        while True:
            data = await self._context.read()
            if data is grpc.aio.EOF:
                return
            request = _request(data)
            match request.WhichOneof("request"):
                case "settle":
                    await member.settle(_settlements(request.settle.settlements))
                case "extend":
                    member.extend(_extensions(request.extend.extensions))
                case "limits":
                    member.limit(*_limits(request.limits))
                case "leave":
                    self._has_left = True
                    return
                case "open":
                    raise InvalidError("INVALID_ARGUMENT", "the stream is open already")
                case None:
                    raise InvalidError("INVALID_ARGUMENT", "a request without a content")

    async def _tell(self, member: Member) -> None:
        while True:
            news, found = await member.next()
            fields = b"" if news is NOTHING else _news(news).SerializeToString()
            self._is_writing = True
            await self._context.write(
                fields + _delivery(found) + found.batches if found else fields
            )
            self._is_writing = False
            if self._is_over:
                return


def _request(data: bytes) -> pb.ConsumeRequest:
    try:
        return pb.ConsumeRequest.FromString(data)
    except DecodeError as error:
        message = "the bytes are not a ConsumeRequest"
        raise InvalidError("INVALID_ARGUMENT", message) from error


def _spec(request: pb.ConsumeRequest) -> MemberSpec:
    if request.WhichOneof("request") != "open":
        raise InvalidError("INVALID_ARGUMENT", "the first request is `open`")
    opening = request.open
    max_records, max_bytes = _limits(opening.limits)
    return MemberSpec(
        group=opening.group,
        topics=tuple(opening.topics),
        settings=group_settings_of(opening.settings),
        order=ORDERS.get(opening.settings.order),
        client_id=opening.client_id,
        instance_id=opening.instance_id,
        max_records=max_records,
        max_bytes=max_bytes,
        max_response_bytes=opening.max_response_bytes,
    )


def _limits(message: pb.FlowLimits) -> tuple[int | None, int | None]:
    return (
        message.max_outstanding_records if message.HasField("max_outstanding_records") else None,
        message.max_outstanding_bytes if message.HasField("max_outstanding_bytes") else None,
    )


def _settlements(messages: Iterable[pb.Settlement]) -> list[Settlement]:
    """Returns them as values: mostly acknowledgements, which say nothing more."""
    found = []
    for one in messages:
        outcome = one.outcome
        what = one.token, one.first_offset, one.end_offset, CAUSES.get(outcome)
        if outcome == pb.OUTCOME_ACKNOWLEDGE:
            found.append(Settlement(*what))
        else:
            delay_ms = one.delay_ms if one.HasField("delay_ms") else None
            found.append(Settlement(*what, delay_ms, one.reason))
    return found


def _extensions(messages: Iterable[pb.Extension]) -> list[tuple[int, int]]:
    return [(one.token, one.lease_ms) for one in messages]


def _delivery(found: Delivery) -> bytes:
    return delivery_fields(
        topic=found.topic,
        topic_id=found.topic_id,
        partition=found.partition,
        token=found.token,
        lease_ms=found.lease_ms,
        runs=found.runs,
        dead_letter_topic=found.dead_letter_topic,
    )


def _news(news: News) -> pb.ConsumeResponse:
    response = pb.ConsumeResponse(caught_up=topic_partitions(news.caught_up))
    if news.taken_back:
        response.taken_back.extend(
            pb.TakenBack(token=one.token, first_offset=first, end_offset=end)
            for one in news.taken_back
            for first, end in one.ranges
        )
    if news.settled:
        response.settled.extend(_settled(news.settled))
    if news.extended:
        response.extended.extend(map(_extended, news.extended))
    if news.joined:
        settings = group_settings_to_proto(news.joined.settings)
        response.joined.CopyFrom(pb.Joined(member_id=news.joined.member_id, settings=settings))
    if news.assigned is not None:
        assignment = pb.Assignment(partitions=topic_partitions(news.assigned))
        response.assignment.CopyFrom(assignment)
    return response


def _settled(results: Iterable[SettleResult]) -> list[pb.SettleResult]:
    """Returns the messages: one and the same for those that are one and the same."""
    messages: list[pb.SettleResult] = []
    before, message = None, pb.SettleResult()
    for result in results:
        if result is not before:
            error = _error(result.error)
            before = result
            message = pb.SettleResult(committed_offset=result.committed, error=error)
        messages.append(message)
    return messages


def _extended(error: LogbrokerError | None) -> pb.ExtendResult:
    return pb.ExtendResult(error=_error(error))


def _error(error: LogbrokerError | None) -> error_pb2.Error | None:
    return error_to_proto(error) if error else None
