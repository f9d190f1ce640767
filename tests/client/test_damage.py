"""Readers of damaged records: one error that says where to go on, or a count of the skipped."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from logbroker.client import Client, Reader
from logbroker.clock import SystemClock
from logbroker.config import StorageConfig
from logbroker.errors import DataLossError
from logbroker.storage.file.engine import FileEngine
from logbroker.testing.running_broker import running_broker

GOOD = [b"good", b"good too"]
BAD = b"this one is bad"
BEHIND = [b"behind", b"the last"]


@asynccontextmanager
async def damaged_topic(data_dir: Path) -> AsyncIterator[Client]:
    """Yields a client of a broker whose topic `t` has damage at offset 2 of partition 0."""
    clock = SystemClock()
    engine = await FileEngine.start(StorageConfig(data_dir=data_dir), clock)
    try:
        async with running_broker(engine=engine) as (address, _), Client(address) as client:
            await client.admin.create_topic("t", 2)
            async with client.producer("t") as producer:
                for value in (*GOOD, BAD, *BEHIND):
                    await producer.publish(value, partition=0)
                await producer.publish(b"healthy", partition=1)
            damage(data_dir)
            yield client
    finally:
        await engine.close()


def damage(data_dir: Path) -> None:
    (segment,) = (path for path in data_dir.rglob("*.log") if BAD in path.read_bytes())
    with segment.open("r+b") as file:
        file.seek(segment.read_bytes().index(BAD))
        file.write(b"T")


async def read_into(found: list[bytes | None], reader: Reader) -> None:
    async for record in reader:
        found.append(record.value)  # noqa: PERF401  # kept when the reader raises


async def test_good_records_come_first_then_one_error_that_says_where_to_go_on(tmp_path):
    async with damaged_topic(tmp_path) as client, client.reader("t", partition=0) as reader:
        found: list[bytes | None] = []
        with pytest.raises(DataLossError) as caught:
            await read_into(found, reader)
        assert found == GOOD
        assert (caught.value.details["offset"], caught.value.details["next_offset"]) == ("2", "3")
        with pytest.raises(StopAsyncIteration):
            await anext(reader)
        assert [record.value async for record in reader] == BEHIND
        assert reader.skipped_count == 0


async def test_damage_is_skipped_and_counted_on_request(tmp_path):
    async with damaged_topic(tmp_path) as client:
        async with client.reader("t", partition=0, skip_damage=True) as reader:
            assert [record.value async for record in reader] == GOOD + BEHIND
            assert reader.skipped_count == 1
        async with client.reader("t", partition=0, skip_damage=True, stop_offset=3) as reader:
            assert [record.value async for record in reader] == GOOD
            assert reader.skipped_count == 1


async def test_healthy_partitions_are_not_held_up(tmp_path):
    async with damaged_topic(tmp_path) as client, client.reader("t") as reader:
        found: list[bytes | None] = []
        with pytest.raises(DataLossError):
            await read_into(found, reader)
        await read_into(found, reader)
        assert sorted(found) == sorted([*GOOD, *BEHIND, b"healthy"])


async def test_seek_goes_behind_damage_too(tmp_path):
    async with damaged_topic(tmp_path) as client, client.reader("t", partition=0) as reader:
        with pytest.raises(DataLossError):
            _ = [record async for record in reader]
        await reader.seek(0, 4)
        assert [record.value async for record in reader] == BEHIND[1:]
