"""FetchService: translate in, call one broker verb, translate out."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Protocol
from weakref import WeakValueDictionary

import grpc

from logbroker.broker.fetch import At, Edge, Fetched, FetchSpec
from logbroker.broker.response_room import ResponseRoom
from logbroker.errors import InvalidError
from logbroker.server.open_streams import OpenStreams
from logbroker.v1 import fetch_service_pb2 as pb
from logbroker.wire.fetch_response import fetch_response

EDGES = {
    pb.START_POSITION_UNSPECIFIED: Edge.EARLIEST,
    pb.START_POSITION_EARLIEST: Edge.EARLIEST,
    pb.START_POSITION_LATEST: Edge.LATEST,
}


class Fetching(Protocol):
    """What this service asks of the broker."""

    def response_room(self) -> ResponseRoom: ...
    def fetch(self, spec: FetchSpec, room: ResponseRoom) -> AsyncGenerator[Fetched]: ...
    async def find_offset(
        self, topic: str, topic_id: str, partition: int, timestamp_ms: int
    ) -> int | None: ...


class FetchService:
    """Gives bytes, where a generated servicer would give messages: nothing is encoded twice."""

    def __init__(self, broker: Fetching, streams: OpenStreams) -> None:
        self._broker = broker
        self._streams = streams
        self._rooms = WeakValueDictionary[str, ResponseRoom]()
        """By connection, as long as one of its streams is open."""

    def handler(self) -> grpc.GenericRpcHandler:
        """Returns the handlers of this service's methods."""
        methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            "Fetch": grpc.unary_stream_rpc_method_handler(
                self.Fetch, pb.FetchRequest.FromString, None
            ),
            "FindOffset": grpc.unary_unary_rpc_method_handler(
                self.FindOffset,
                pb.FindOffsetRequest.FromString,
                pb.FindOffsetResponse.SerializeToString,
            ),
        }
        return grpc.method_handlers_generic_handler("logbroker.v1.FetchService", methods)

    async def Fetch(self, request: pb.FetchRequest, context: Any) -> None:
        """Streams batches from a place on."""
        room = self._rooms.setdefault(context.peer(), self._broker.response_room())
        with self._streams.entered():
            async with aclosing(self._broker.fetch(_spec(request), room)) as responses:
                async for found in responses:
                    response = fetch_response(**found._asdict())
                    del found  # its buffer is for the next read, of whichever stream
                    await context.write(response)
                    del response  # a stream that waits for records must not hold its last ones

    async def FindOffset(self, request: pb.FindOffsetRequest, context: Any) -> Any:
        """Looks a time up."""
        offset = await self._broker.find_offset(
            request.topic, request.topic_id, request.partition, request.timestamp_ms
        )
        return pb.FindOffsetResponse(offset=offset)


def _spec(request: pb.FetchRequest) -> FetchSpec:
    start: int | Edge | At = Edge.EARLIEST
    match request.WhichOneof("start"):
        case "offset":
            start = request.offset
        case "timestamp_ms":
            start = At(request.timestamp_ms)
        case "position" if request.position in EDGES:
            start = EDGES[request.position]
        case "position":
            message = f"position {request.position} is neither earliest (1) nor latest (2)"
            raise InvalidError("INVALID_ARGUMENT", message, position=request.position)
    return FetchSpec(
        topic=request.topic,
        topic_id=request.topic_id,
        partition=request.partition,
        start=start,
        stop_offset=request.stop_offset if request.HasField("stop_offset") else None,
        stop_timestamp_ms=(
            request.stop_timestamp_ms if request.HasField("stop_timestamp_ms") else None
        ),
        follow=request.follow,
        max_bytes=request.max_bytes,
        max_response_bytes=request.max_response_bytes,
    )
