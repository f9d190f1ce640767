"""Members of groups whose journal is on a disk that failed: told, and back after a restart."""

import asyncio
import errno
from contextlib import asynccontextmanager

import pytest
from grpc.aio import insecure_channel
from grpc_health.v1 import health_pb2, health_pb2_grpc

from logbroker.client import Client
from logbroker.clock import SystemClock
from logbroker.config import ListenConfig, StorageConfig
from logbroker.errors import LogbrokerError, UnavailableError
from logbroker.storage.file.engine import FileEngine
from logbroker.testing.faulty_disk import FaultyDisk
from logbroker.testing.running_broker import running_broker

pytestmark = pytest.mark.slow

HOW_LONG_S = 60
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@asynccontextmanager
async def broker_in(data_dir, disk, address="127.0.0.1:0"):
    """Yields the address of a broker in this process, on this disk."""
    engine = await FileEngine.start(StorageConfig(data_dir=data_dir), SystemClock(), disk)
    try:
        listen = ListenConfig(grpc=address, stop_grace_ms=100)
        async with running_broker(engine=engine, listen=listen) as (address, _):
            yield address
    finally:
        await engine.close()


async def health_of(address, service):
    """Returns the state of a service, as anybody asks for it."""
    async with insecure_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        return (await stub.Check(health_pb2.HealthCheckRequest(service=service))).status


async def wait_not_serving(address, service):
    """Returns once the service says that it does not serve."""
    async with insecure_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        async for answer in stub.Watch(health_pb2.HealthCheckRequest(service=service)):
            if answer.status == NOT_SERVING:
                return


async def test_a_consumer_is_told_and_goes_on_when_the_broker_is_started_again(tmp_path):
    disk = FaultyDisk(tmp_path)
    async with asyncio.timeout(HOW_LONG_S):
        async with broker_in(tmp_path, disk) as address:
            client = Client(address)
            await client.admin.create_topic("t")
            async with client.producer("t") as producer:
                for number in range(5):
                    await producer.publish(b"%d" % number)
            consumer = await client.consumer("g", "t", auto_settle=False).open()
            records = [await anext(consumer) for _ in range(3)]
            await consumer.acknowledge(records[0])
            disk.fail("sync", errno.EIO)
            with pytest.raises(LogbrokerError) as raised:
                await consumer.acknowledge(records[1])
            assert raised.value.reason in ("STORAGE_FAILED", "OUTCOME_UNKNOWN")
            for service in ("", "ConsumeService", "GroupService", "DeadLetterService"):
                name = service and f"logbroker.v1.{service}"
                await wait_not_serving(address, name)
            assert await health_of(address, "logbroker.v1.ProduceService") != NOT_SERVING
            stats = await client.admin.get_stats()
            assert (stats["failed_journals"], stats["groups"]) == (["__groups"], [])
            async with Client(address, timeout_ms=500) as other:
                for call in (
                    lambda: other.consumer("h", "t").open(),
                    lambda: other.admin.get_group("g"),
                    lambda: other.admin.list_groups(),
                ):
                    with pytest.raises(UnavailableError) as refused:
                        await call()
                    assert refused.value.reason == "STORAGE_FAILED"
                async with other.producer("t") as producer:
                    await producer.publish(b"5")
            disk.lose_power()
        async with broker_in(tmp_path, None, address):
            again = [await anext(consumer) for _ in range(5)]
            assert [record.value for record in again] == [b"1", b"2", b"3", b"4", b"5"]
            for record in again:
                await consumer.acknowledge(record)
            [progress] = await client.admin.get_offsets("g")
            assert (progress.lag, progress.failed_count) == (0, 0)
            await client.close()
