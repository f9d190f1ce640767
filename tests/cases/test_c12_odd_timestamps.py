"""C12: retention counts from the append time, so a wrong clock at a producer costs nothing.

Timestamps are never refused for being odd, and come back as they were sent.
"""

import time
from pathlib import Path

import pytest

from cases.data_dirs import files
from cases.effort import effort
from cases.numbered import read_records, value_of, write_numbered
from cases.watching import becomes_true
from logbroker.client import Client
from logbroker.testing.running_broker import BrokerProcess
from logbroker.topic.topic import TopicSettings

CHECK_MS = 250
RETENTION_MS = effort(1_000, 10_000)
SLACK_S = 3
"""For a busy machine."""
YEAR_MS = 365 * 24 * 3_600_000
IN_2019_MS = 1_560_000_000_000
WEEK_MS = 7 * 24 * 3_600_000


@pytest.fixture
def broker(tmp_path: Path):
    with BrokerProcess(
        tmp_path / "data", "--set", f"storage.check_interval_ms={CHECK_MS}"
    ) as broker:
        yield broker


async def _is_empty(client: Client, topic: str) -> bool:
    [part] = (await client.admin.get_topic(topic)).partitions
    return part.log_start_offset == part.high_watermark


@pytest.mark.slow
async def test_c12_a_stamp_in_the_far_future_does_not_hold_segments_for_ever(broker):
    future_ms = time.time_ns() // 1_000_000 + 10 * YEAR_MS
    async with Client(broker.address) as client:
        await client.admin.create_topic("orders", settings=TopicSettings(segment_bytes=64 << 10))
        await write_numbered(client, "orders", [0], timestamps_ms=[future_ms])
        count = 5 * 360
        await write_numbered(client, "orders", range(1, count))
        records = await read_records(client, "orders")
        assert records[0].timestamp_ms == future_ms
        assert [record.value for record in records] == list(map(value_of, range(count)))
        assert await client.find_offset("orders", 0, future_ms) == 0
        assert len(files(broker.data_dir, "orders")) > 5
        await client.admin.update_topic("orders", TopicSettings(retention_ms=RETENTION_MS))
        await becomes_true(
            lambda: _is_empty(client, "orders"),
            "everything is gone two checks after it is too old",
            within_s=(RETENTION_MS + 2 * CHECK_MS) / 1_000 + SLACK_S,
        )
        await becomes_true(lambda: files(broker.data_dir, "orders") == [], "and so are the files")
        [part] = (await client.admin.get_topic("orders")).partitions
        assert (part.log_start_offset, part.next_offset) == (count, count)
        assert await client.find_offset("orders", 0, 0) is None


@pytest.mark.slow
async def test_c12_old_imports_are_kept_as_long_as_anything_else(broker):
    stamps = [IN_2019_MS + number for number in range(1_000)]
    async with Client(broker.address) as client:
        settings = TopicSettings(segment_bytes=64 << 10, retention_ms=WEEK_MS)
        await client.admin.create_topic("imports", settings=settings)
        await client.admin.create_topic("checked", settings=TopicSettings(retention_ms=1))
        await write_numbered(client, "imports", range(1_000), timestamps_ms=stamps)
        for _ in range(3):  # each time retention has looked at all topics
            await write_numbered(client, "checked", [0])
            await becomes_true(lambda: _is_empty(client, "checked"), "retention looks")
        records = await read_records(client, "imports")
        assert [record.timestamp_ms for record in records] == stamps
        assert [record.value for record in records] == list(map(value_of, range(1_000)))
        assert await client.find_offset("imports", 0, IN_2019_MS + 777) == 777


@pytest.mark.slow
async def test_c12_any_stamp_comes_back_as_it_was_sent_and_can_be_looked_up(broker):
    stamps = [0, -1, 1, (1 << 63) - 1, -(1 << 63), 253_402_300_800_000, -62_135_596_800_001]
    async with Client(broker.address) as client:
        await client.admin.create_topic("orders")
        await write_numbered(client, "orders", range(len(stamps)), timestamps_ms=stamps)
        async with client.producer("orders") as producer:
            await producer.send_many([b"x"] * len(stamps), timestamps_ms=stamps, partition=0)
        for _ in range(2):
            records = await read_records(client, "orders")
            assert [record.timestamp_ms for record in records] == stamps * 2
            for stamp in stamps:
                first = next(at for at, found in enumerate(stamps) if found >= stamp)
                assert await client.find_offset("orders", 0, stamp) == first
            assert broker.stop() == 0
            broker.start()
