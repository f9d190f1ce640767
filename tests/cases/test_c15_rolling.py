"""C15: an idle partition ages too, and stamps in wrong units make no segments."""

import math
from pathlib import Path

import pytest

from cases.data_dirs import files
from cases.effort import effort
from cases.numbered import read_numbers, read_records, write_numbered
from cases.watching import becomes_true
from logbroker.client import Client
from logbroker.errors import OffsetOutOfRangeError
from logbroker.testing.running_broker import BrokerProcess
from logbroker.topic.topic import TopicSettings

CHECK_MS = 250
RETENTION_MS = effort(700, 5_000)
SLACK_S = 3
HOUR_MS = 3_600_000
NOW_S = 1_790_000_000


@pytest.fixture
def broker(tmp_path: Path):
    with BrokerProcess(
        tmp_path / "data", "--set", f"storage.check_interval_ms={CHECK_MS}"
    ) as broker:
        yield broker


@pytest.mark.slow
async def test_c15a_a_lone_record_expires_without_further_writes_and_the_end_is_kept(broker):
    """Within retention_ms and storage.check_interval_ms, which bounds how long nobody looks."""
    async with Client(broker.address) as client:
        settings = TopicSettings(retention_ms=RETENTION_MS)
        await client.admin.create_topic("orders", settings=settings)
        await write_numbered(client, "orders", [0])

        async def is_gone() -> bool:
            [part] = (await client.admin.get_topic("orders")).partitions
            return part.log_start_offset == 1

        within_s = (RETENTION_MS + CHECK_MS) / 1_000 + SLACK_S
        await becomes_true(is_gone, "the record expires", within_s=within_s)
        for end in (1, 2):
            assert await read_records(client, "orders") == []
            reader = client.reader("orders", start=0, out_of_range="error")
            with pytest.raises(OffsetOutOfRangeError) as error:
                await anext(aiter(reader))
            await reader.close()
            assert error.value.details["log_start_offset"] == str(end)
            assert error.value.details["high_watermark"] == str(end)
            broker.kill() if end == 1 else broker.stop()
            broker.start()
            [part] = (await client.admin.get_topic("orders")).partitions
            assert (part.log_start_offset, part.next_offset) == (end, end)
            async with client.producer("orders") as producer:
                assert (await producer.publish(b"next")).offset == end
            await becomes_true(
                lambda end=end: _starts_at(client, end + 1),
                "and the next one too",
                within_s=within_s,
            )


async def _starts_at(client: Client, offset: int) -> bool:
    [part] = (await client.admin.get_topic("orders")).partitions
    return part.log_start_offset == offset


STAMPS = {
    "in seconds": [NOW_S + number for number in range(1_000)],
    "in microseconds": [(NOW_S + number) * 1_000_000 for number in range(1_000)],
    "alternating": [(NOW_S + number) * (1_000 if number % 2 else 1) for number in range(1_000)],
}


@pytest.mark.slow
async def test_c15b_stamps_in_wrong_units_make_no_more_segments_than_their_bytes_need(broker):
    settings = TopicSettings(segment_bytes=64 << 10, segment_ms=HOUR_MS)
    async with Client(broker.address) as client:
        for name, stamps in STAMPS.items():
            topic = name.replace(" ", "-")
            await client.admin.create_topic(topic, settings=settings)
            await write_numbered(client, topic, range(1_000), timestamps_ms=stamps)
            [part] = (await client.admin.get_topic(topic)).partitions
            at_most = math.ceil(part.size_bytes / (64 << 10)) + 2
            assert 1 <= part.segment_count <= at_most
            assert len(files(broker.data_dir, topic)) == part.segment_count
            records = await read_records(client, topic)
            assert [record.timestamp_ms for record in records] == stamps
            assert await read_numbers(client, topic) == list(range(1_000))


@pytest.mark.slow
async def test_c15b_a_segment_that_is_old_by_the_brokers_clock_is_closed_without_traffic(broker):
    settings = TopicSettings(segment_ms=1)
    async with Client(broker.address) as client:
        await client.admin.create_topic("orders", settings=settings)
        await write_numbered(client, "orders", [0], timestamps_ms=STAMPS["in seconds"][:1])
        await becomes_true(
            lambda: len(files(broker.data_dir, "orders", suffix=".index")) == 1, "it is closed"
        )
        await write_numbered(client, "orders", [1])
        assert [path.stem for path in files(broker.data_dir, "orders")] == [f"{0:020}", f"{1:020}"]
        assert await read_numbers(client, "orders") == [0, 1]
