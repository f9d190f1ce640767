"""ProduceService: translate in, call one broker verb, translate out."""

import asyncio
from collections import Counter, deque
from itertools import islice, takewhile
from typing import Any, Protocol

import grpc

from logbroker.broker.backpressure import ByteBudget
from logbroker.broker.produce import Appending, NewRecord
from logbroker.errors import InvalidError, LogbrokerError
from logbroker.record.batch import Batch
from logbroker.record.receipt import Receipt
from logbroker.server.open_streams import OpenStreams, shutting_down
from logbroker.v1 import produce_service_pb2 as pb
from logbroker.v1 import record_pb2
from logbroker.wire.convert import headers_of
from logbroker.wire.produce_request import Produced, entries_of
from logbroker.wire.produce_response import produce_response

FIRST_EPOCH = 0

RESULTS_PER_RESPONSE = 500
"""So that a response of the longest errors still fits gRPC's default of 4 MiB."""


class Producing(Protocol):
    """What this service asks of the broker."""

    budget: ByteBudget
    error_counts: Counter[str]

    def produce(
        self,
        topic: str,
        topic_id: str,
        partition: int,
        batch: Batch,
        expected_offset: int | None,
    ) -> Appending: ...
    async def publish(
        self,
        topic: str,
        topic_id: str,
        records: list[NewRecord],
        partition: int | None,
        expected_offset: int | None,
    ) -> list[Receipt | LogbrokerError]: ...
    async def create_producer(self) -> int: ...


class ProduceService:
    """Takes bytes for batches: their records are never parsed here."""

    def __init__(self, broker: Producing, streams: OpenStreams, connection_bytes: int) -> None:
        self._broker = broker
        self._streams = streams
        self._connection_bytes = connection_bytes

    def handler(self) -> grpc.GenericRpcHandler:
        """Returns the handlers of this service's methods."""
        methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            "Produce": grpc.stream_stream_rpc_method_handler(self.Produce, None, None),
            "Publish": grpc.unary_unary_rpc_method_handler(
                self.Publish, pb.PublishRequest.FromString, None
            ),
            "CreateProducer": grpc.unary_unary_rpc_method_handler(
                self.CreateProducer,
                pb.CreateProducerRequest.FromString,
                pb.CreateProducerResponse.SerializeToString,
            ),
        }
        return grpc.method_handlers_generic_handler("logbroker.v1.ProduceService", methods)

    async def Produce(self, requests: Any, context: Any) -> None:
        """Appends batches, answered in order."""
        stream = ProduceStream(self._broker, context, self._connection_bytes)
        with self._streams.entered(stream.stop):
            await stream.run()
            if self._streams.is_stopping:
                raise shutting_down()

    async def Publish(self, request: pb.PublishRequest, context: Any) -> bytes:
        """Appends a list of records."""
        size = request.ByteSize()
        self._broker.budget.take_or_refuse(size)
        try:
            results = await self._broker.publish(
                request.topic,
                request.topic_id,
                [_record(record) for record in request.records],
                request.partition if request.HasField("partition") else None,
                request.expected_offset if request.HasField("expected_offset") else None,
            )
        finally:
            self._broker.budget.give(size)
        return produce_response(results)

    async def CreateProducer(self, request: pb.CreateProducerRequest, context: Any) -> Any:
        """Gives out a producer id."""
        producer_id = await self._broker.create_producer()
        return pb.CreateProducerResponse(producer_id=producer_id, producer_epoch=FIRST_EPOCH)


class ProduceStream:
    """One open `Produce`: a task that reads and appends, and one that answers in order.

    While nothing waits for the disk the reader answers by itself, which saves a turn.
    """

    def __init__(self, broker: Producing, context: Any, connection_bytes: int) -> None:
        self._broker = broker
        self._context = context
        self._own = ByteBudget(connection_bytes)
        self._under_way: deque[tuple[Appending | LogbrokerError, int]] = deque()
        self._has_more = asyncio.Event()
        self._held = 0
        self._is_read_out = False
        self._is_stopped = False
        self._is_waiting = False
        """The reader waits for a request, or for room for it: nothing has become of it yet."""
        self._reader: asyncio.Task[None] | None = None
        self._failure: InvalidError | None = None

    async def run(self) -> None:
        """Returns when the client has sent all and has all its answers, or after `stop`.

        InvalidError for bytes that are no request, once all before them is answered.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                self._reader = tasks.create_task(self._read())
                answerer = tasks.create_task(self._answer())
                await asyncio.wait({self._reader})
                self._is_read_out = True
                self._has_more.set()
                await answerer
        finally:
            self._broker.budget.give(self._held)
            for under_way, _ in self._under_way:
                if isinstance(under_way, Appending):
                    under_way.abandon()
        if self._failure:
            raise self._failure

    def stop(self) -> None:
        """Begins no more; what was begun is still answered."""
        self._is_stopped = True
        if self._reader and self._is_waiting:
            self._reader.cancel()

    async def _read(self) -> None:
        while not self._is_stopped and await self._read_one():
            pass

    async def _read_one(self) -> bool:
        """Reads a request and begins what it asks for; returns False at the end of them.

        Its frame ends with each request, so that a stream that waits holds no last one. So
        does that of `_answer_next`.
        """
        self._is_waiting = True
        data = await self._context.read()
        if data is grpc.aio.EOF:
            return False
        size = len(data)
        await self._own.wait_room(size)
        await self._broker.budget.wait_room(size)
        self._is_waiting = False
        self._held += size
        try:
            entries = entries_of(data)
        except InvalidError as error:
            self._failure = error
            return False
        begun = [self._begin(produced) for produced in entries]
        if not begun:
            self._give(size)
        elif not self._under_way and _can_answer(begun):
            await self._context.write(produce_response(map(self._result_of, begun)))
            self._give(size)
        else:
            self._under_way += ((under_way, 0) for under_way in begun[:-1])
            self._under_way.append((begun[-1], size))
            self._has_more.set()
        return True

    def _begin(self, produced: Produced) -> Appending | LogbrokerError:
        try:
            return self._broker.produce(*produced)
        except LogbrokerError as error:
            return error

    async def _answer(self) -> None:
        while not (self._is_read_out and not self._under_way):
            await self._has_more.wait()
            self._has_more.clear()
            while self._under_way:
                await self._answer_next()

    async def _answer_next(self) -> None:
        first, _ = self._under_way[0]
        if isinstance(first, Appending):
            await first.wait_done()
        begun = islice(self._under_way, RESULTS_PER_RESPONSE)
        done = list(takewhile(lambda one: _is_known(one[0]), begun))
        await self._context.write(produce_response(self._result_of(one) for one, _ in done))
        for _, size in done:  # only now: while any is left, the reader answers nothing
            self._under_way.popleft()
            self._give(size)

    def _result_of(self, under_way: Appending | LogbrokerError) -> Receipt | LogbrokerError:
        try:
            if isinstance(under_way, LogbrokerError):
                raise under_way
            return under_way.receipt()
        except LogbrokerError as error:
            self._broker.error_counts[error.reason] += 1
            return error

    def _give(self, size: int) -> None:
        self._own.give(size)
        self._held -= size
        self._broker.budget.give(size)


def _record(record: record_pb2.Record) -> NewRecord:
    return NewRecord(
        key=record.key if record.HasField("key") else None,
        value=record.value if record.HasField("value") else None,
        headers=headers_of(record.headers),
        timestamp_ms=record.timestamp_ms if record.HasField("timestamp_ms") else None,
        partition=record.partition if record.HasField("partition") else None,
    )


def _can_answer(begun: list[Appending | LogbrokerError]) -> bool:
    return len(begun) <= RESULTS_PER_RESPONSE and all(map(_is_known, begun))


def _is_known(under_way: Appending | LogbrokerError) -> bool:
    return isinstance(under_way, LogbrokerError) or under_way.done()
