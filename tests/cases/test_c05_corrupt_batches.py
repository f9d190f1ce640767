"""C05: one bad byte costs one batch: an explicit error there, and everything else is read."""

import asyncio
import time
from pathlib import Path

import grpc
import pytest

from cases.commands import logbroker
from cases.data_dirs import files, log_lines
from cases.numbered import number_of, read_numbers, value_of, write_numbered
from cases.processes import cpu_s
from cases.watching import becomes_true
from logbroker.client import Client, Reader
from logbroker.client.blocking import BlockingClient
from logbroker.errors import DataLossError
from logbroker.record.batch import HEADER
from logbroker.testing.running_broker import BrokerProcess
from logbroker.topic.topic import TopicSettings
from logbroker.v1.fetch_service_pb2 import FetchRequest
from logbroker.v1.fetch_service_pb2_grpc import FetchServiceStub
from logbroker.wire.status import error_of

COUNT = 500
"""Records of each partition; the first, of partition 0, has the damage."""
BAD = 123
GOOD = [number for number in range(COUNT) if number != BAD]
OFFSETS = {"offset": str(BAD), "next_offset": str(BAD + 1)}
BATCH_BYTES = HEADER.size + 2 + 100
"""Of a batch with one record of 100 bytes."""
HARMS = {"value": HEADER.size + 50, "header": 30, "length": 2}
"""Where in the batch the byte is changed."""


async def _filled(broker: BrokerProcess, client: Client) -> None:
    settings = TopicSettings(segment_bytes=64 << 10)
    await client.admin.create_topic("orders", 2, settings)
    for partition in range(2):
        await write_numbered(client, "orders", range(COUNT), partition=partition)


def _damage(data_dir: Path, at: int) -> None:
    """Changes one byte of batch BAD, which lies in a sealed segment."""
    path, *others = files(data_dir, "orders", 0)
    assert others, "the first segment is sealed"
    data = bytearray(path.read_bytes())
    assert data[BAD * BATCH_BYTES] == 0x0A
    data[BAD * BATCH_BYTES + at] ^= 0x55
    with path.open("r+b") as file:
        file.write(data)


@pytest.fixture
def broker(tmp_path):
    with BrokerProcess(tmp_path / "data") as broker:
        yield broker


async def _read(reader: Reader) -> tuple[list[int], list[DataLossError]]:
    """Returns the numbers read and the errors met, until the end."""
    numbers, errors = [], []
    while True:
        try:
            async for record in reader:
                assert record.value == value_of(record.offset)
                numbers.append(record.offset)
        except DataLossError as error:
            errors.append(error)
            continue
        return numbers, errors


@pytest.mark.slow
@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("is_restarted", [False, True])
async def test_c05_every_way_to_read_gives_what_is_good_and_one_error_between(
    broker, harm, is_restarted
):
    async with Client(broker.address) as client:
        await _filled(broker, client)
        _damage(broker.data_dir, HARMS[harm])
        if is_restarted:
            broker.kill()
            broker.start()
        await _check_stream(broker.address)
        await _check_client(client)
        await asyncio.to_thread(_check_blocking_client, broker.address)
        await _check_metrics(broker, client)
        # and nothing of it holds up who writes, or reads elsewhere
        await write_numbered(client, "orders", range(COUNT, COUNT + 10))
        assert await read_numbers(client, "orders", start=COUNT) == list(range(COUNT, COUNT + 10))
        assert await read_numbers(client, "orders", partition=1) == list(range(COUNT))


async def _check_stream(address: str) -> None:
    """Reads as any gRPC client does."""
    async with grpc.aio.insecure_channel(address) as channel:
        stub = FetchServiceStub(channel)
        offsets: list[int] = []

        async def read() -> None:
            async for response in stub.Fetch(FetchRequest(topic="orders")):
                offsets.extend(batch.base_offset for batch in response.batches)

        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await read()
        assert offsets == list(range(BAD))
        assert failure.value.code() is grpc.StatusCode.DATA_LOSS
        error = error_of(failure.value)
        assert error.reason == "DAMAGED_BATCH"
        assert error.details.items() >= OFFSETS.items()
        assert "orders/0" in str(error)
        offset = int(error.details["next_offset"])
        rest = [
            batch.base_offset
            async for response in stub.Fetch(FetchRequest(topic="orders", offset=offset))
            for batch in response.batches
        ]
        assert rest == list(range(BAD + 1, COUNT))


async def _check_client(client: Client) -> None:
    async with client.reader("orders", partition=0) as reader:
        numbers, errors = await _read(reader)
        assert numbers == GOOD
        assert [error.details.items() >= OFFSETS.items() for error in errors] == [True]
        assert reader.skipped_count == 0
    async with client.reader("orders", skip_damage=True) as reader:
        by_partition: dict[int, list[int]] = {0: [], 1: []}
        async for record in reader:
            by_partition[record.partition].append(number_of(record.value)[1])
        assert by_partition == {0: GOOD, 1: list(range(COUNT))}
        assert reader.skipped_count == 1


def _check_blocking_client(address: str) -> None:
    with BlockingClient(address) as client:
        with client.reader("orders", partition=0) as reader:
            offsets: list[int] = []
            with pytest.raises(DataLossError) as error:
                offsets.extend(record.offset for record in reader)
            assert error.value.details.items() >= OFFSETS.items()
            offsets.extend(record.offset for record in reader)
            assert offsets == GOOD
        with client.reader("orders", partition=0, skip_damage=True) as reader:
            assert [record.offset for record in reader] == GOOD
            assert reader.skipped_count == 1


async def _check_metrics(broker: BrokerProcess, client: Client) -> None:
    """The range is named once in the log, and counted once, however often it was met."""
    [line] = log_lines(broker, "data lost")
    assert (line["topic"], line["partition"]) == ("orders", 0)
    assert (line["offset"], line["next_offset"]) == (BAD, BAD + 1)
    assert (await client.admin.get_stats())["damaged_range_count"] == 1
    damaged = [part.damaged for part in (await client.admin.get_topic("orders")).partitions]
    assert damaged == [((BAD, BAD + 1),), ()]


@pytest.mark.slow
async def test_c05_the_command_line_prints_what_is_good_and_says_where_to_go_on(broker):
    async with Client(broker.address) as client:
        await _filled(broker, client)
    _damage(broker.data_dir, HARMS["value"])
    fetch = ["fetch", "orders", "-p", "0", "--format", r"{offset}\n"]
    read = await asyncio.to_thread(logbroker, *fetch, server=broker.address)
    assert read.returncode == 1
    assert [int(line) for line in read.stdout.splitlines()] == list(range(BAD))
    assert read.stderr.count(b"DAMAGED_BATCH") == 1
    assert f"--from {BAD + 1}".encode() in read.stderr
    read = await asyncio.to_thread(logbroker, *fetch, "--skip-damage", server=broker.address)
    assert read.returncode == 0
    assert [int(line) for line in read.stdout.splitlines()] == GOOD
    assert b"left out for damage: 1 record" in read.stderr
    later = await asyncio.to_thread(
        logbroker, *fetch, "--from", str(BAD + 1), server=broker.address
    )
    assert (later.returncode, len(later.stdout.splitlines())) == (0, COUNT - BAD - 1)


@pytest.mark.slow
async def test_c05_records_that_share_the_bad_batch_are_skipped_and_counted_together(broker):
    async with Client(broker.address) as client:
        settings = TopicSettings(segment_bytes=4 << 10)
        await client.admin.create_topic("orders", settings=settings)
        async with client.producer("orders") as producer:
            for first in range(0, 100, 10):
                await producer.send_many([value_of(first + at) for at in range(10)], partition=0)
        path = files(broker.data_dir, "orders")[0]
        data = path.read_bytes()
        at = data.index(value_of(23))
        path.write_bytes(data[:at] + b"?" + data[at + 1 :])
        expected = [*range(20), *range(30, 100)]
        async with client.reader("orders") as reader:
            numbers, errors = await _read(reader)
            assert numbers == expected
            [error] = errors
            assert (error.details["offset"], error.details["next_offset"]) == ("20", "30")
        assert await read_numbers(client, "orders", skip_damage=True, start=25) == expected[20:]
        async with client.reader("orders", skip_damage=True, start=25) as reader:
            assert (await anext(aiter(reader))).offset == 30
            assert reader.skipped_count == 5


@pytest.mark.slow
async def test_c05_readers_that_wait_at_the_damage_or_behind_it_cost_nothing(broker):
    async with Client(broker.address) as client:
        await _filled(broker, client)
        _damage(broker.data_dir, HARMS["value"])
        stopped = client.reader("orders", follow=True)
        skipping = client.reader("orders", follow=True, skip_damage=True)
        async with stopped, skipping:
            with pytest.raises(DataLossError):
                async for _ in stopped:
                    pass
            seen = 0
            while seen < 2 * COUNT - 1:
                seen += (await skipping.next_batch()).record_count
            errors = (await client.admin.get_stats())["error_counts"]
            assert errors == {"DAMAGED_BATCH": 2}, "one for each reader"
            used_s, started = cpu_s(broker.pid) + time.process_time(), time.monotonic()
            await asyncio.sleep(1.5)
            used_s = cpu_s(broker.pid) + time.process_time() - used_s
            assert used_s < 0.1 * (time.monotonic() - started)
            assert (await client.admin.get_stats())["error_counts"] == errors
            await write_numbered(client, "orders", [COUNT])
            batch = await skipping.next_batch()
            assert batch is not None
            assert batch.values == [value_of(COUNT)]
            await becomes_true(lambda: skipping.skipped_count == 1, "the skipped one is counted")
