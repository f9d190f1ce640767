"""A broker in this process, reached as any client reaches it: by generated stubs alone."""

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace

import grpc
import structlog
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_status import rpc_status

from logbroker.config import LimitsConfig, ListenConfig
from logbroker.record.columns import Columns, encode_batch
from logbroker.testing.running_broker import running_broker
from logbroker.v1 import broker_service_pb2_grpc as broker_grpc
from logbroker.v1 import consume_service_pb2_grpc as consume_grpc
from logbroker.v1 import dead_letter_service_pb2_grpc as dead_letter_grpc
from logbroker.v1 import fetch_service_pb2_grpc as fetch_grpc
from logbroker.v1 import group_service_pb2_grpc as group_grpc
from logbroker.v1 import produce_service_pb2_grpc as produce_grpc
from logbroker.v1 import topic_service_pb2_grpc as topic_grpc
from logbroker.v1.broker_service_pb2 import GetBrokerRequest, GetStatsRequest
from logbroker.v1.produce_service_pb2 import ProduceEntry, ProduceRequest
from logbroker.v1.stored_batch_pb2 import StoredBatch
from logbroker.v1.topic_service_pb2 import CreateTopicRequest

HOW_LONG_S = 10
"""Whatever is awaited here comes within this time, or the test fails."""


@asynccontextmanager
async def serving(*, topic="a", partition_count=2, fault_count=0, **broker):
    """Yields stubs, the address and the broker; at the end the broker answers and had no fault."""
    listen = ListenConfig(grpc="127.0.0.1:0", stop_grace_ms=500)
    with structlog.testing.capture_logs() as logs:
        async with (
            running_broker(**{"listen": listen, **broker}) as (address, inside),
            grpc.aio.insecure_channel(address) as channel,
        ):
            calls = stubs_of(channel)
            calls.address, calls.broker, calls.logs = address, inside, logs
            if topic:
                request = CreateTopicRequest(topic=topic, partition_count=partition_count)
                await calls.topics.CreateTopic(request)
            yield calls
            await calls.about.GetBroker(GetBrokerRequest(), timeout=HOW_LONG_S)
        assert inside.budget.taken == 0, "bytes are still in flight"
    faults = [entry for entry in logs if entry["event"] == "broker fault"]
    assert len(faults) == fault_count, faults


def stubs_of(channel):
    """Returns the stubs of all services on a channel."""
    return SimpleNamespace(
        channel=channel,
        topics=topic_grpc.TopicServiceStub(channel),
        produce=produce_grpc.ProduceServiceStub(channel),
        fetch=fetch_grpc.FetchServiceStub(channel),
        consume=consume_grpc.ConsumeServiceStub(channel),
        groups=group_grpc.GroupServiceStub(channel),
        dead_letters=dead_letter_grpc.DeadLetterServiceStub(channel),
        about=broker_grpc.BrokerServiceStub(channel),
    )


async def refusal(call):
    """Returns the code's name and the reason that a call or a stream ends with."""
    code, info, _ = await ending(call)
    assert info.domain == "logbroker", code
    return code.name, info.reason


async def ending(call):
    """Returns code, ErrorInfo and message that a call or a stream ends with."""
    try:
        async with asyncio.timeout(HOW_LONG_S):
            if hasattr(call, "read"):
                while await call.read() is not grpc.aio.EOF:
                    pass
            else:
                await call
    except grpc.aio.AioRpcError as error:
        status, info = rpc_status.from_call(error), ErrorInfo()
        for detail in status.details if status else ():
            detail.Unpack(info)
        return error.code(), info, error.details()
    return grpc.StatusCode.OK, ErrorInfo(), ""


async def within_time(awaitable):
    """Returns what it does; fails if that takes too long."""
    async with asyncio.timeout(HOW_LONG_S):
        return await awaitable


async def until(condition):
    """Returns once the condition holds, which something else brings about."""
    async with asyncio.timeout(HOW_LONG_S):
        while not condition():  # noqa: ASYNC110  # it lies beyond the network
            await asyncio.sleep(0.001)


async def until_no_stream(calls):
    """Returns once the broker counts no open stream."""
    async with asyncio.timeout(HOW_LONG_S):
        while (await calls.about.GetStats(GetStatsRequest())).open_stream_count:
            pass


def stored(*values, **of_batch):
    """Returns the values as a StoredBatch message."""
    batch = encode_batch(Columns(list(values)), **{"now_ms": 5, **of_batch})
    header = batch.header
    return StoredBatch(
        record_count=header.record_count,
        max_timestamp_ms=header.max_timestamp_ms,
        attributes=header.attributes,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        records_crc=header.records_crc,
        records=batch.records,
    )


def request(*batches, topic="a", **fields):
    """Returns a ProduceRequest with an entry for each batch."""
    entries = [ProduceEntry(batch=batch, topic=topic, **fields) for batch in batches]
    return ProduceRequest(entries=entries)


SMALL = LimitsConfig(
    record_bytes=1_000,
    batch_bytes=66_536,
    header_count=3,
    header_bytes=100,
    connection_bytes=66_536,
    in_flight_bytes=66_536,
)
