"""A real fdatasync of a real broker fails: it is never believed, and costs nothing confirmed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest
from cases.grouped import calls_to, make_topic
from grpc_health.v1 import health_pb2, health_pb2_grpc
from server.members import publish

from crash.operations import commit
from crash.scene import TOPIC, committed_of, make_group, records_in, settle
from crash.strace import failing, require_strace
from logbroker.errors import REASONS
from logbroker.testing.running_broker import BrokerProcess
from logbroker.v1.broker_service_pb2 import GetStatsRequest
from logbroker.v1.topic_service_pb2 import GetTopicRequest
from logbroker.wire.status import error_of

SERVING = health_pb2.HealthCheckResponse.SERVING


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    require_strace()
    return tmp_path / "data"


@asynccontextmanager
async def broker_in(data_dir: Path) -> AsyncIterator[tuple[SimpleNamespace, BrokerProcess]]:
    """Yields stubs for a broker and its process, which gets SIGKILL at the end."""
    broker = BrokerProcess(data_dir)
    await asyncio.to_thread(broker.start)
    try:
        async with calls_to(broker.address) as calls:
            yield calls, broker
    finally:
        broker.kill()


def log_of(data_dir: Path, topic: str) -> Path:
    """Returns the file that is written to."""
    return sorted((data_dir / "topics" / topic / "0").glob("*.log"))[-1]


async def reason_of(call) -> str:
    """Returns why a call is refused, in its status or in its answer."""
    with pytest.raises((grpc.aio.AioRpcError, AssertionError)) as raised:
        await call
    if isinstance(raised.value, grpc.aio.AioRpcError):
        error = error_of(raised.value)
        assert type(error) is REASONS[error.reason][0]
        return error.reason
    [reason] = [name for name in REASONS if f'reason: "{name}"' in str(raised.value)]
    return reason


async def is_serving(calls, service: str) -> bool:
    """Returns what the health service says."""
    stub = health_pb2_grpc.HealthStub(calls.channel)
    request = health_pb2.HealthCheckRequest(service=service and f"logbroker.v1.{service}")
    return (await stub.Check(request)).status == SERVING


@pytest.mark.slow
async def test_a_partition_whose_sync_fails_takes_no_more_writes_and_loses_nothing(data_dir):
    assert not REASONS["STORAGE_FAILED"][0].no_effect, "its outcome is unknown"
    async with broker_in(data_dir) as (calls, broker):
        for topic in (TOPIC, "b"):
            await make_topic(calls, topic)
            for number in range(5):
                await publish(calls, b"%d" % number, topic=topic)
        confirmed = await records_in(calls, TOPIC)
        assert len(confirmed) == 5
        async with failing(broker.pid, "fdatasync", log_of(data_dir, TOPIC)):
            assert await reason_of(publish(calls, b"unknown")) == "STORAGE_FAILED"
        # the disk is well again, and what it said cannot be unsaid
        assert await reason_of(publish(calls, b"refused")) == "STORAGE_FAILED"
        assert await records_in(calls, TOPIC) == confirmed
        [part] = (await calls.topics.GetTopic(GetTopicRequest(topic=TOPIC))).partitions
        assert part.failure == "STORAGE_FAILED"
        stats = await calls.about.GetStats(GetStatsRequest())
        assert stats.failed_partition_count == 1
        assert not await is_serving(calls, "ProduceService")
        assert await is_serving(calls, ""), "all others go on"
        await publish(calls, b"5", topic="b")
    async with broker_in(data_dir) as (calls, _):
        found = await records_in(calls, TOPIC)
        assert found in (confirmed, {**confirmed, 5: b"unknown"})
        assert await is_serving(calls, "ProduceService")
        await publish(calls, b"again")
        assert (await records_in(calls, TOPIC))[len(found)] == b"again"
        assert len(await records_in(calls, "b")) == 6


@pytest.mark.slow
async def test_groups_whose_journal_cannot_be_synced_serve_no_more_and_forget_nothing(data_dir):
    async with broker_in(data_dir) as (calls, broker):
        await make_topic(calls, TOPIC)
        await publish(calls, *(b"%d" % number for number in range(9)))
        await make_group(calls)
        await commit(calls, 3)
        assert await is_serving(calls, "")
        async with failing(broker.pid, "fdatasync", log_of(data_dir, "__groups")):
            assert await reason_of(commit(calls, 6)) == "STORAGE_FAILED"
        for call in (commit(calls, 7), committed_of(calls), settle(calls, 1, 0, 1, 1)):
            assert await reason_of(call) == "STORAGE_FAILED"
        for service in ("", "ConsumeService", "GroupService", "DeadLetterService"):
            assert not await is_serving(calls, service)
        assert await is_serving(calls, "ProduceService")
        assert list((await calls.about.GetStats(GetStatsRequest())).failed_journals) == ["__groups"]
        await publish(calls, b"9")
    async with broker_in(data_dir) as (calls, _):
        assert await committed_of(calls) in {3, 6}
        assert await is_serving(calls, "")
        await commit(calls, 8)
        assert await committed_of(calls) == 8
        assert len(await records_in(calls, TOPIC)) == 10
