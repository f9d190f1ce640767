"""C49: thousands of partitions work through few open files, and cost little while idle."""

import asyncio
import errno
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cases.data_dirs import PARTITION, log_lines
from cases.effort import effort
from cases.numbered import value_of
from cases.processes import cpu_s, require
from cases.watching import open_file_count, rss_bytes
from logbroker.client import Client
from logbroker.clock import SystemClock
from logbroker.config import LogConfig, StorageConfig
from logbroker.storage.file.engine import FileEngine
from logbroker.testing.engine_harness import batch_of, values_from
from logbroker.testing.faulty_disk import FaultyDisk
from logbroker.testing.running_broker import BrokerProcess
from logbroker.topic.topic import TopicSettings

COUNT = effort(500, 2_000)
OPEN_FILES = effort(256, 1_024)
"""What `ulimit -n` allows: less than half as many as there are partitions."""
BESIDE_SEGMENTS = 40
"""Sockets, pipes and the like."""
IDLE_S = effort(1.5, 30)
START_WITHIN_S = 30
BYTES_EACH = 64 << 10


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    require(shutil.which("prlimit") is not None, "prlimit is needed to bound open files")
    limited = ["prlimit", f"--nofile={OPEN_FILES}"]
    with BrokerProcess(tmp_path / "data", run_under=limited) as broker:
        yield broker


async def _write(client: Client, number: int) -> None:
    """Writes one record to each partition."""
    async with client.producer("many") as producer:
        for partition in range(COUNT):
            await producer.send(value_of(number, partition), partition=partition)


async def _read(client: Client) -> list[list[bytes | None]]:
    """Returns the values in each partition."""
    values: list[list[bytes | None]] = [[] for _ in range(COUNT)]
    async with client.reader("many") as reader:
        async for record in reader:
            values[record.partition].append(record.value)
    return values


def _expected(numbers: int) -> list[list[bytes]]:
    return [[value_of(number, part) for number in range(numbers)] for part in range(COUNT)]


def _segment_count(broker: BrokerProcess) -> int:
    return len(list((broker.data_dir / "topics" / "many").rglob("*.log")))


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_c49_many_partitions_work_with_few_open_files_over_restarts(broker):
    async with Client(broker.address, timeout_ms=120_000) as client:
        rss_without = rss_bytes(broker.pid)
        await client.admin.create_topic("many", COUNT)
        await _write(client, 0)
        assert await _read(client) == _expected(1)
        files, segments = open_file_count(broker.pid), _segment_count(broker)
        assert files <= OPEN_FILES // 2 + BESIDE_SEGMENTS
        assert segments == COUNT
        for is_killed in (True, False, True):
            broker.kill() if is_killed else broker.stop()
            started = time.monotonic()
            await asyncio.to_thread(broker.start)
            assert time.monotonic() - started < START_WITHIN_S
            assert open_file_count(broker.pid) <= files * 1.05
            assert _segment_count(broker) == segments
            assert rss_bytes(broker.pid) - rss_without < COUNT * BYTES_EACH
        used_s, started = cpu_s(broker.pid), time.monotonic()
        await asyncio.sleep(IDLE_S)
        assert cpu_s(broker.pid) - used_s < 0.05 * (time.monotonic() - started)
        async with Client(broker.address) as another:
            await _write(another, 1)
            assert await _read(another) == _expected(2)
        assert open_file_count(broker.pid) <= files * 1.05
        assert rss_bytes(broker.pid) - rss_without < COUNT * BYTES_EACH
        assert (await client.admin.get_stats())["failed_partition_count"] == 0
        assert log_lines(broker, "storage failed") == []


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_c49_connections_that_take_all_descriptors_cost_no_partition_its_disk(broker):
    async with Client(broker.address, timeout_ms=120_000) as client:
        settings = TopicSettings(segment_bytes=4 << 10)
        await client.admin.create_topic("many", COUNT, settings)
        await _write(client, 0)
        host, _, port = broker.address.rpartition(":")
        with ExitStack() as connections:
            for _ in range(OPEN_FILES):
                connection = connections.enter_context(socket.socket())
                connection.setblocking(False)
                connection.connect_ex((host, int(port)))
            await _write(client, 1)
            async with client.producer("many") as producer:  # which begins new segments
                for number in range(10):
                    await producer.send(value_of(number, size=1_000), partition=3)
        assert (await client.admin.get_stats())["failed_partition_count"] == 0
        assert log_lines(broker, "storage failed") == []
        async with Client(broker.address) as another:
            found = await _read(another)
            assert len(found.pop(3)) == 12
            expected = _expected(2)
            expected.pop(3)
            assert found == expected


@pytest.mark.parametrize("call", ["open", "sync_directory"])
async def test_c49_where_no_descriptor_is_left_a_file_that_is_not_used_makes_way(tmp_path, call):
    disk = FaultyDisk(tmp_path)
    engine = await FileEngine.start(StorageConfig(data_dir=tmp_path), SystemClock(), disk)
    try:
        first = await engine.open(PARTITION, LogConfig())
        await first.append(batch_of("a"))
        second = await engine.open(PARTITION._replace(partition=1), LogConfig())
        assert engine.stats().open_file_count == 1
        disk.fail(call, errno.EMFILE)
        await second.append(batch_of("b"))
        assert second.stats().failure == ""
        await first.append(batch_of("c"))
        assert await values_from(first, 0) == ["a", "c"]
    finally:
        await engine.close()
