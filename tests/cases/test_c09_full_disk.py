"""C09: a full disk refuses writes and nothing else, loses nothing, and works again by itself."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from cases.data_dirs import log_lines
from cases.numbered import number_of, read_numbers, read_records, value_of, write_numbered
from cases.small_disk import SmallDisk
from cases.watching import becomes_true
from logbroker.client import Client
from logbroker.errors import (
    ExhaustedError,
    LogbrokerError,
    OutcomeUnknownError,
    UnavailableError,
)
from logbroker.testing.running_broker import BrokerProcess
from logbroker.topic.topic import TopicSettings
from logbroker.v1.produce_service_pb2 import PublishRequest
from logbroker.v1.produce_service_pb2_grpc import ProduceServiceStub
from logbroker.v1.record_pb2 import Record
from logbroker.wire.status import error_of

RESUMES_WITHIN_S = 10
VALUE_BYTES = 1 << 10


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with SmallDisk(tmp_path / "disk") as disk:
        yield disk


@pytest.fixture
def broker(disk: SmallDisk) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(disk.mount_point / "data", run_under=disk.run_under)
    with broker:
        yield broker


class Numbers:
    """Publishes numbered records one by one, and remembers those that are answered."""

    def __init__(self, address: str) -> None:
        self.acked: list[int] = []
        self._next = 0
        self._channel = grpc.aio.insecure_channel(address)
        self._stub = ProduceServiceStub(self._channel)

    async def publish(self) -> LogbrokerError | None:
        """Returns why the broker does not take one more record; None if it does."""
        value = value_of(self._next, size=VALUE_BYTES)
        self._next += 1
        request = PublishRequest(topic="orders", records=[Record(value=value)])
        try:
            await self._stub.Publish(request, wait_for_ready=True, timeout=10)
        except grpc.aio.AioRpcError as failure:
            return error_of(failure)
        self.acked.append(self._next - 1)
        return None

    async def publish_until_refused(self) -> LogbrokerError:
        """Returns the error of the first record that is refused."""
        while (error := await self.publish()) is None:
            pass
        return error

    async def close(self) -> None:
        await self._channel.close()


@asynccontextmanager
async def connected(broker: BrokerProcess) -> AsyncIterator[tuple[Client, Numbers]]:
    numbers = Numbers(broker.address)
    try:
        async with Client(broker.address) as client:
            yield client, numbers
    finally:
        await numbers.close()


async def _resumes(numbers: Numbers) -> None:
    async def is_taken() -> bool:
        return await numbers.publish() is None

    await becomes_true(is_taken, "writes are taken again", within_s=RESUMES_WITHIN_S)


def _logs(disk: SmallDisk) -> dict[str, bytes]:
    """Returns what lies in the segment files, without the room made in advance."""
    paths = (disk.outside / "data" / "topics").rglob("*.log")
    return {str(path): path.read_bytes().rstrip(b"\0") for path in paths}


@pytest.mark.slow
async def test_c09_a_full_disk_refuses_writes_and_serves_reads_and_resumes_by_itself(disk, broker):
    async with connected(broker) as (client, numbers):
        await client.admin.create_topic("orders", settings=TopicSettings(segment_bytes=1 << 20))
        disk.fill("filler", 13 << 20)
        error = await numbers.publish_until_refused()
        disk.fill("rest")  # now there is no room for anything at all
        for _ in range(100):
            error = await numbers.publish() or error
        assert isinstance(error, ExhaustedError)
        assert error.reason == "DISK_FULL"
        assert len(numbers.acked) > 500
        assert await read_numbers(client, "orders") == numbers.acked
        stats = await client.admin.get_stats()
        assert stats["disk_free_bytes"] < 64 << 10
        assert stats["failed_partition_count"] == 0
        # a producer says why once its time is over, unless it is waiting for an answer just then
        async with client.producer("orders", delivery_timeout_ms=300) as producer:
            with pytest.raises((ExhaustedError, OutcomeUnknownError), match="no room on the disk"):
                await producer.publish(b"v" * 100_000)
        assert await read_numbers(client, "orders") == numbers.acked

        # who waits for room gets it
        waiting = asyncio.create_task(write_numbered(client, "orders", [0], size=50_000))
        disk.free("rest")
        disk.free("filler")
        await _resumes(numbers)
        await asyncio.wait_for(waiting, RESUMES_WITHIN_S)
        records = await read_records(client, "orders")
        read = [number_of(record.value)[1] for record in records if len(record.value) < 50_000]
        assert read == numbers.acked
        assert len(records) == len(numbers.acked) + 1
        assert (await client.admin.get_stats())["disk_free_bytes"] > 10 << 20
        assert "Traceback" not in broker.log_file.read_text()


@pytest.mark.slow
async def test_c09_a_topic_is_made_on_a_full_disk_or_it_is_not_and_never_half(disk, broker):
    async with connected(broker) as (client, numbers):
        made = [await client.admin.create_topic("orders", 2)]
        await client.admin.create_topic("gone", 2)
        disk.fill("filler", 15 << 20)
        refusal = None
        while refusal is None:
            try:
                made.append(await client.admin.create_topic(f"topic-{len(made)}", 3))
            except ExhaustedError as error:
                refusal = error.reason
        assert refusal == "DISK_FULL"
        disk.fill("rest")
        refused = f"topic-{len(made)}"
        for name, count in ((refused, 3), ("another", 1)):
            with pytest.raises(LogbrokerError, match="no room on the disk"):
                await client.admin.create_topic(name, count)
        with pytest.raises(ExhaustedError):
            await client.admin.grow_topic("orders", 200)
        assert (await client.admin.get_topic("orders")).topic.partition_count == 2
        await client.admin.delete_topic("gone")  # which makes room: deletions must work
        topics = [topic.topic_id for topic in await client.admin.list_topics()]
        assert sorted(topics) == sorted(topic.topic_id for topic in made)

        broker.kill()
        disk.fill("rest")
        broker.start()
        assert [topic.topic_id for topic in await client.admin.list_topics()] == topics
        assert (await client.admin.get_stats())["damaged_topics"] == []
        disk.free("rest")
        disk.free("filler")
        await client.admin.create_topic(refused, 3)
        await client.admin.create_topic("gone", 5)
        assert len(await client.admin.list_topics()) == len(made) + 2
        await _resumes(numbers)


@pytest.mark.slow
async def test_c09_a_start_on_a_full_disk_has_everything_and_deletes_nothing(disk, broker):
    async with connected(broker) as (client, numbers):
        await client.admin.create_topic("orders", settings=TopicSettings(segment_bytes=256 << 10))
        await client.admin.create_topic("others", 4)
        disk.fill("filler", 14 << 20)
        await numbers.publish_until_refused()
        disk.fill("rest")
        topics = await client.admin.list_topics()
        before = _logs(disk)
        for is_killed in (True, False, True):
            if is_killed:
                broker.kill()
            else:
                assert broker.stop() == 0
            disk.fill("more")
            broker.start()
            assert await client.admin.list_topics() == topics
            assert await read_numbers(client, "orders") == numbers.acked
            error = await numbers.publish_until_refused()
            assert error.reason == "DISK_FULL"
            assert await read_numbers(client, "orders") == numbers.acked
            after = _logs(disk)
            assert after.keys() >= before.keys()
            assert [path for path in before if not after[path].startswith(before[path])] == []
            disk.free("more")
        assert log_lines(broker, "data lost") == []
        disk.free("rest")
        disk.free("filler")
        started = time.monotonic()
        await _resumes(numbers)
        assert time.monotonic() - started < RESUMES_WITHIN_S
        assert await read_numbers(client, "orders") == numbers.acked


@pytest.mark.slow
async def test_c09_a_directory_that_becomes_read_only_refuses_new_segments_until_it_is_not(
    disk, broker
):
    """As after a mistaken mount: files that are open can be written, none can be made."""
    async with connected(broker) as (client, numbers):
        await client.admin.create_topic("orders", settings=TopicSettings(segment_bytes=64 << 10))
        await client.admin.create_topic("others")
        await numbers.publish()
        place = str(disk.mount_point / "data" / "topics" / "orders" / "0")
        disk.run("mount", "--bind", place, place)
        disk.run("mount", "-o", "remount,bind,ro", place)
        error = await numbers.publish_until_refused()
        assert isinstance(error, UnavailableError)
        assert error.reason == "STORAGE_FAILED"
        assert len(numbers.acked) > 50
        assert await read_numbers(client, "orders") == numbers.acked
        await write_numbered(client, "others", range(10))
        disk.run("umount", place)
        await _resumes(numbers)
        await numbers.publish()
        assert await read_numbers(client, "orders") == numbers.acked
        broker.kill()
        broker.start()
        assert await read_numbers(client, "orders") == numbers.acked


@pytest.mark.slow
async def test_c09_a_read_only_disk_is_refused_at_the_start_and_stays_as_it_is(disk, broker):
    async with connected(broker) as (client, numbers):
        await client.admin.create_topic("orders")
        for _ in range(10):
            await numbers.publish()
        broker.kill()
        before = _logs(disk)
        disk.run("mount", "-o", "remount,ro", str(disk.mount_point))
        with pytest.raises(RuntimeError) as error:
            broker.start()
        assert "the broker ended with 1" in str(error.value)
        assert "EROFS" in str(error.value)
        assert str(broker.data_dir) in str(error.value)
        assert "Traceback" not in str(error.value)
        assert _logs(disk) == before
        disk.run("mount", "-o", "remount,rw", str(disk.mount_point))
        broker.start()
        assert await read_numbers(client, "orders") == numbers.acked
        assert await numbers.publish() is None
