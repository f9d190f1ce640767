"""A scripted ConsumeService: the test says what the broker sends, and reads what it was sent."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import grpc

from logbroker.client import Client, Consumer, Delivered
from logbroker.errors import ConflictError
from logbroker.record.batch import Batch
from logbroker.record.columns import Columns, encode_batch
from logbroker.v1 import consume_service_pb2 as pb
from logbroker.v1 import group_pb2
from logbroker.v1.stored_batch_pb2 import StoredBatch
from logbroker.wire.status import status_of

TOPIC_ID = "topic-id"


def stored(offset: int, values: Sequence[bytes], keys: Sequence[bytes] | None = None, headers=()):
    """Returns a batch as a delivery carries it."""
    batch: Batch = encode_batch(Columns(values, keys, None, headers), now_ms=1_000)
    header, records = batch
    return StoredBatch(
        base_offset=offset,
        append_time_ms=1_000,
        record_count=header.record_count,
        offset_span=header.record_count,
        max_timestamp_ms=header.max_timestamp_ms,
        attributes=header.attributes,
        records_crc=header.records_crc,
        records=records,
    )


class Member:
    """The broker's end of one Consume stream."""

    def __init__(self, number: int, lease_ms: int) -> None:
        self.number = number
        self.lease_ms = lease_ms
        self.opening = pb.OpenConsume()
        self.requests: asyncio.Queue[pb.ConsumeRequest] = asyncio.Queue()
        self.settlements: list[pb.Settlement] = []
        self.refused: set[int] = set()
        """Offsets for which the lease is lost."""
        self.confirms = asyncio.Event()
        self.confirms.set()
        self.was_asked = asyncio.Event()
        self.responses: asyncio.Queue[pb.ConsumeResponse | ConflictError | None] = asyncio.Queue()
        self.changed = asyncio.Condition()

    def send(self, **fields: object) -> None:
        self.responses.put_nowait(pb.ConsumeResponse(**fields))

    def deliver(
        self,
        first: int,
        values: Sequence[bytes],
        *,
        token: int = 1,
        partition: int = 0,
        keys: Sequence[bytes] | None = None,
        ranges: Sequence[pb.LeasedRange] | None = None,
        batches: Sequence[StoredBatch] | None = None,
        dead_letter_topic: str = "",
    ) -> None:
        """Sends records `first` and following under one lease."""
        whole = pb.LeasedRange(
            first_offset=first, end_offset=first + len(values), delivery_number=1
        )
        delivery = pb.Delivery(
            topic="t",
            topic_id=TOPIC_ID,
            partition=partition,
            token=token,
            lease_ms=self.lease_ms,
            ranges=ranges or [whole],
            dead_letter_topic=dead_letter_topic,
        )
        self.send(delivery=delivery, batches=batches or [stored(first, values, keys)])

    def take_back(self, token: int, first: int, end: int) -> None:
        self.send(taken_back=[pb.TakenBack(token=token, first_offset=first, end_offset=end)])

    def catch_up(self, *partitions: int) -> None:
        self.send(caught_up=[group_pb2.TopicPartition(topic="t", partition=n) for n in partitions])

    def end(self) -> None:
        self.responses.put_nowait(None)

    def fence(self) -> None:
        """Ends the stream with MEMBER_FENCED."""
        self.responses.put_nowait(ConflictError("MEMBER_FENCED", "another one has come"))

    def settled(self, outcome: int = pb.OUTCOME_ACKNOWLEDGE) -> list[int]:
        """Returns the offsets that were answered so, in the order of the answers."""
        return [
            offset
            for one in self.settlements
            if one.outcome == outcome
            for offset in range(one.first_offset, one.end_offset)
        ]

    async def wait_settled(self, count: int, outcome: int = pb.OUTCOME_ACKNOWLEDGE) -> list[int]:
        """Returns once so many offsets were answered so."""
        async with self.changed:
            await self.changed.wait_for(lambda: len(self.settled(outcome)) >= count)
        return self.settled(outcome)

    async def wait_for(self, kind: str) -> pb.ConsumeRequest:
        """Returns the next request of this kind; others before it are passed over."""
        while True:
            request = await self.requests.get()
            if request.WhichOneof("request") == kind:
                return request

    async def take(self, request: pb.ConsumeRequest) -> None:
        if request.HasField("settle"):
            self.was_asked.set()
            await self.confirms.wait()
            self.send(settled=[self._answer(one) for one in request.settle.settlements])
            async with self.changed:
                self.settlements += request.settle.settlements
                self.changed.notify_all()
        elif request.HasField("extend"):
            self.send(extended=[pb.ExtendResult() for _ in request.extend.extensions])
        elif request.HasField("leave"):
            self.end()
        self.requests.put_nowait(request)

    def _answer(self, one: pb.Settlement) -> pb.SettleResult:
        result = pb.SettleResult(committed_offset=one.end_offset)
        if self.refused & set(range(one.first_offset, one.end_offset)):
            result.error.code, result.error.reason = 10, "LEASE_LOST"
        return result


class FakeGroup:
    """Members come one after another; the test meets each by `await group.member()`."""

    def __init__(self, order: int = group_pb2.ORDER_PARTITION, lease_ms: int = 30_000) -> None:
        self.address = ""
        self.settings = group_pb2.GroupSettings(order=order, lease_ms=lease_ms)
        self.error: tuple[grpc.StatusCode, str] | None = None
        self._members: asyncio.Queue[Member] = asyncio.Queue()
        self._count = 0

    async def member(self) -> Member:
        return await self._members.get()

    async def consume(self, requests: AsyncIterator[bytes], context) -> AsyncIterator[bytes]:
        if self.error is not None:
            await context.abort(*self.error)
        self._count += 1
        member = Member(self._count, self.settings.lease_ms)
        member.opening = pb.ConsumeRequest.FromString(await anext(aiter(requests))).open
        member.send(joined=pb.Joined(member_id=f"m{self._count}", settings=self.settings))
        reading = asyncio.create_task(self._read(requests, member))
        self._members.put_nowait(member)
        try:
            while (response := await member.responses.get()) is not None:
                if isinstance(response, ConflictError):
                    await context.abort_with_status(status_of(response))
                yield response.SerializeToString()
        finally:
            reading.cancel()

    async def _read(self, requests: AsyncIterator[bytes], member: Member) -> None:
        async for request in requests:
            await member.take(pb.ConsumeRequest.FromString(request))


@asynccontextmanager
async def fake_group(
    order: int = group_pb2.ORDER_PARTITION, lease_ms: int = 30_000, **options: object
) -> AsyncIterator[tuple[FakeGroup, Client]]:
    """Yields the broker's end and a client."""
    group = FakeGroup(order, lease_ms)
    server = grpc.aio.server()
    handler = grpc.stream_stream_rpc_method_handler(group.consume)
    methods = {"Consume": handler}
    service = grpc.method_handlers_generic_handler("logbroker.v1.ConsumeService", methods)
    server.add_generic_rpc_handlers((service,))
    group.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    try:
        async with Client(group.address, **options) as client:
            yield group, client
    finally:
        await server.stop(None)


def values(count: int, first: int = 0) -> list[bytes]:
    """Returns values that are numbers, from `first` on."""
    return [b"%d" % number for number in range(first, first + count)]


async def take(consumer: Consumer, count: int) -> list[Delivered]:
    """Returns the next records of a consumer."""
    return [await anext(consumer) for _ in range(count)]


def all_requests(member) -> list[pb.ConsumeRequest]:
    """Returns what the member has said and nobody has looked at."""
    found = []
    while not member.requests.empty():
        found.append(member.requests.get_nowait())
    return found
