"""Readers against a real broker in memory."""

import asyncio
from collections import Counter
from random import Random

import pytest

from client.brokers import RestartableBroker, client_of_broker, send_all
from logbroker.client import Client, Reader, Reset, Timestamp
from logbroker.config import LimitsConfig
from logbroker.errors import (
    InvalidError,
    NotFoundError,
    OffsetOutOfRangeError,
    PreconditionError,
    UnavailableError,
)


async def fill(client: Client, count: int, *, partition: int = 0, batch: int = 10) -> None:
    """Stores records whose value, and timestamp, is their offset; `batch` of them a batch."""
    async with client.producer("t") as producer:
        for at in range(0, count, batch):
            numbers = range(at, min(at + batch, count))
            values = [b"%d" % number for number in numbers]
            times = list(numbers)
            await (await producer.send_many(values, None, times, partition=partition))


async def offsets_of(reader: Reader) -> list[int]:
    return [record.offset async for record in reader]


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, range(100)),
        ({"start": 0}, range(100)),
        ({"start": 37}, range(37, 100)),
        ({"start": 100}, range(0)),
        ({"start": "latest"}, range(0)),
        ({"start": Timestamp(42)}, range(42, 100)),
        ({"start": Timestamp(1_000)}, range(0)),
        ({"start": {0: 55}}, range(55, 100)),
        ({"stop_offset": 13}, range(13)),
        ({"start": 11, "stop_offset": 12}, range(11, 12)),
        ({"start": 20, "stop_offset": 20}, range(0)),
        ({"stop_offset": 1_000}, range(100)),
        ({"stop_timestamp_ms": 33}, range(33)),
        ({"stop_timestamp_ms": 33, "stop_offset": 31}, range(31)),
        ({"stop_timestamp_ms": 1_000}, range(100)),
        ({"follow": True, "stop_offset": 77}, range(77)),
        ({"follow": True, "start": Timestamp(5), "stop_timestamp_ms": 8}, range(5, 8)),
    ],
)
async def test_exactly_the_records_between_start_and_stop_are_read(options, expected):
    async with client_of_broker() as client:
        await fill(client, 100)
        async with client.reader("t", **options) as reader:
            assert await offsets_of(reader) == list(expected)
            assert await offsets_of(reader) == []
        async with client.reader("t", **options) as reader:
            found = [offset async for batch in reader.batches() for offset in batch.offsets]
            assert found == list(expected)


async def test_all_partitions_are_read_each_in_order_and_none_waits_for_another():
    async with client_of_broker(3) as client:
        for partition in range(3):
            await fill(client, 50, partition=partition)
        async with client.reader("t", prefetch_bytes=1) as reader:
            records = [record async for record in reader]
        assert Counter(record.partition for record in records) == {0: 50, 1: 50, 2: 50}
        for partition in range(3):
            mine = [record.offset for record in records if record.partition == partition]
            assert mine == list(range(50))
        async with client.reader("t", partition=[2, 0]) as reader:
            assert {record.partition async for record in reader} == {0, 2}


async def test_an_empty_topic_ends_at_once_or_waits():
    async with client_of_broker() as client:
        assert await offsets_of(client.reader("t")) == []
        async with client.reader("t", follow=True) as reader:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(reader), 0.05)


async def test_from_latest_everything_after_entering_is_read():
    async with client_of_broker() as client:
        await fill(client, 10)
        async with client.reader("t", start="latest", follow=True) as reader:
            await fill(client, 5)
            assert [(await anext(reader)).offset for _ in range(5)] == list(range(10, 15))


async def test_positions_are_exact_in_the_midst_of_a_batch_and_a_new_reader_goes_on_there():
    async with client_of_broker(2) as client:
        await fill(client, 30)
        await fill(client, 30, partition=1)
        async with client.reader("t") as reader:
            assert reader.positions() == {0: 0, 1: 0}
            for _ in range(25):
                record = await anext(reader)
                assert reader.position(record.partition) == record.offset + 1
            positions = reader.positions()
            assert sum(positions.values()) == 25
        rest = [record async for record in client.reader("t", start=positions)]
        assert len(rest) == 35


async def test_batches_give_what_records_have_left():
    async with client_of_broker() as client:
        await fill(client, 20)
        async with client.reader("t") as reader:
            assert [(await anext(reader)).offset for _ in range(3)] == [0, 1, 2]
            found = [list(batch.offsets) async for batch in reader.batches()]
        assert found == [list(range(3, 10)), list(range(10, 20))]


async def test_seek_goes_back_and_forth():
    async with client_of_broker() as client:
        await fill(client, 40)
        async with client.reader("t") as reader:
            await anext(reader)
            await reader.seek(0, 30)
            assert reader.position(0) == 30
            assert (await anext(reader)).offset == 30
            await reader.seek(0, 5)
            assert await offsets_of(reader) == list(range(5, 40))
            await reader.seek(0, 39)
            assert await offsets_of(reader) == [39]


async def test_cancelled_waits_lose_and_double_nothing():
    async with client_of_broker() as client:
        async with client.reader("t", follow=True) as reader:
            records = aiter(reader)
            sending = asyncio.create_task(_trickle(client, 300))
            found = []
            random = Random(5)
            while len(found) < 300:
                try:
                    wait_s = random.choice([0, 0.0001, 0.001])
                    found.append((await asyncio.wait_for(anext(records), wait_s)).offset)
                except TimeoutError:
                    continue
            await sending
        assert found == list(range(300))


async def _trickle(client: Client, count: int) -> None:
    async with client.producer("t") as producer:
        for _ in range(count):
            await producer.publish(b"v")


async def test_what_is_read_ahead_is_bounded():
    async with client_of_broker() as client:
        async with client.producer("t", max_batch_bytes=10_000) as producer:
            await send_all(producer, [b"v" * 1_000] * 3_000)
        async with client.reader("t", prefetch_bytes=100_000) as reader:
            await anext(reader)
            await asyncio.sleep(0.1)
            held = sum(item.size_bytes for _, item in reader._inbox)
            assert held <= 100_000 + (1 << 20)
            assert len(await offsets_of(reader)) == 2_999


@pytest.mark.parametrize("policy, to", [("earliest", 20), ("latest", 50)])
async def test_out_of_range_goes_on_by_policy_and_says_what_was_skipped(policy, to):
    async with client_of_broker() as client:
        await fill(client, 50)
        await client.admin.trim_topic("t", 0, 20)
        async with client.reader("t", start=5, out_of_range=policy) as reader:
            assert await offsets_of(reader) == list(range(to, 50))
            assert reader.resets == [Reset(0, 5, to, to - 5)]


async def test_out_of_range_can_be_an_error():
    async with client_of_broker() as client:
        await fill(client, 50)
        with pytest.raises(OffsetOutOfRangeError) as caught:
            await offsets_of(client.reader("t", start=51, out_of_range="error"))
        assert caught.value.details["high_watermark"] == "50"


async def test_retention_that_passes_a_reader_is_a_reset_and_never_a_hang():
    limits = LimitsConfig()
    async with client_of_broker(limits=limits) as client:
        await fill(client, 2_000, batch=1_000)
        async with client.reader("t", prefetch_bytes=1) as reader:
            assert (await anext(reader)).offset == 0
            await client.admin.trim_topic("t", 0, 1_990)
            found = await offsets_of(reader)
        assert found[-1] == 1_999
        assert found == sorted(set(found))


async def test_a_deleted_topic_ends_who_follows_it():
    async with client_of_broker() as client:
        await fill(client, 3)
        async with client.reader("t", follow=True) as reader:
            assert [(await anext(reader)).offset for _ in range(3)] == [0, 1, 2]
            waiting = asyncio.ensure_future(anext(reader))
            await asyncio.sleep(0)
            await client.admin.delete_topic("t")
            with pytest.raises(NotFoundError):
                await asyncio.wait_for(waiting, 10)
            with pytest.raises(StopAsyncIteration):
                await anext(reader)


async def test_what_is_not_there_is_an_error_at_once():
    async with client_of_broker() as client:
        with pytest.raises(NotFoundError):
            await client.reader("other").open()
        with pytest.raises(NotFoundError):
            await client.reader("t", partition=1).open()
        with pytest.raises(NotFoundError):
            async with client.reader("t") as reader:
                reader.position(7)


async def test_a_reader_goes_on_where_it_was_when_the_broker_is_back():
    async with RestartableBroker() as broker, Client(broker.address) as client:
        await client.admin.create_topic("t")
        await fill(client, 10)
        async with client.reader("t", follow=True) as reader:
            for offset in range(7):
                assert (await anext(reader)).offset == offset
            for end in (20, 30):
                await broker.stop()
                waiting = asyncio.ensure_future(anext(reader))
                await asyncio.sleep(0.05)
                await broker.start()
                await fill(client, 10)
                assert (await waiting).offset == reader.position(0) - 1
                while reader.position(0) < end:
                    await anext(reader)
            assert reader.position(0) == 30
            assert reader.resets == []


async def test_a_reader_that_never_met_a_broker_says_so():
    async with Client("127.0.0.1:1", timeout_ms=200) as client:
        with pytest.raises(UnavailableError) as caught:
            await client.reader("t").open()
        assert caught.value.reason == "UNREACHABLE"


async def test_a_closed_reader_refuses():
    async with client_of_broker() as client:
        reader = client.reader("t", follow=True)
        waiting = asyncio.ensure_future(anext(reader))
        await asyncio.sleep(0.05)
        await reader.close()
        with pytest.raises(PreconditionError):
            await waiting
        with pytest.raises(PreconditionError):
            await anext(reader)


@pytest.mark.parametrize(
    "options",
    [
        {"start": "middle"},
        {"start": -1},
        {"start": {0: -1}},
        {"stop_offset": -2},
        {"out_of_range": "guess"},
    ],
)
async def test_options_that_cannot_be_are_refused(options):
    with pytest.raises(InvalidError):
        Client().reader("t", **options)


async def test_large_records_come_back_with_no_settings():
    limits = LimitsConfig(record_bytes=9 << 20, batch_bytes=10 << 20, connection_bytes=16 << 20)
    async with client_of_broker(limits=limits) as client, client.producer("t") as producer:
        await producer.publish(b"v" * (9 << 20))
        await producer.publish(b"w")
        sizes = [len(record.value) async for record in client.reader("t")]
        assert sizes == [9 << 20, 1]
