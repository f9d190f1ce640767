"""C05: one bad byte costs one batch: an explicit error there, and everything else is read."""

import asyncio
import json
import time
from itertools import product
from pathlib import Path
from typing import NamedTuple

import grpc
import pytest

from cases.commands import logbroker
from cases.data_dirs import files, log_lines
from cases.effort import effort
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
BATCH_BYTES = HEADER.size + 2 + 100
"""Of a batch with one record of 100 bytes."""
HARMS = {"value": HEADER.size + 50, "header": 30, "length": 2, "tag": 0, "last byte": 182}
"""Where in the batch the byte is changed."""
PLACES = {"first": 0, "inside": 123, "last": (64 << 10) // BATCH_BYTES - 1}
"""Which batch of its segment it is."""


class Damage(NamedTuple):
    """One changed byte, and the record that it costs."""

    bad: int
    at: int = HARMS["value"]

    @property
    def good(self) -> list[int]:
        return [number for number in range(COUNT) if number != self.bad]

    @property
    def offsets(self) -> dict[str, str]:
        return {"offset": str(self.bad), "next_offset": str(self.bad + 1)}

    def do(self, data_dir: Path) -> None:
        """Changes the byte, in a sealed segment."""
        path, second = files(data_dir, "orders", 0)
        assert self.bad < int(second.stem)
        with path.open("r+b") as file:
            file.seek(self.bad * BATCH_BYTES + self.at)
            [byte] = file.read(1)
            file.seek(self.bad * BATCH_BYTES + self.at)
            file.write(bytes([byte ^ 0x55]))


INSIDE = Damage(PLACES["inside"])


async def _filled(broker: BrokerProcess, client: Client) -> None:
    settings = TopicSettings(segment_bytes=64 << 10)
    await client.admin.create_topic("orders", 2, settings)
    for partition in range(2):
        await write_numbered(client, "orders", range(COUNT), partition=partition)


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


SOME = [("value", "inside", True), ("header", "first", False), ("length", "last", False)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "harm,place,is_restarted", effort(SOME, list(product(HARMS, PLACES, (False, True))))
)
async def test_c05_every_way_to_read_gives_what_is_good_and_one_error_between(
    broker, harm, place, is_restarted
):
    damage = Damage(PLACES[place], HARMS[harm])
    async with Client(broker.address) as client:
        await _filled(broker, client)
        damage.do(broker.data_dir)
        if is_restarted:
            broker.kill()
            broker.start()
        await _check_stream(broker.address, damage)
        await _check_client(client, damage)
        await asyncio.to_thread(_check_blocking_client, broker.address, damage)
        await _check_metrics(broker, client, damage)
        # and nothing of it holds up who writes, or reads elsewhere
        await write_numbered(client, "orders", range(COUNT, COUNT + 10))
        assert await read_numbers(client, "orders", start=COUNT) == list(range(COUNT, COUNT + 10))
        assert await read_numbers(client, "orders", partition=1) == list(range(COUNT))


async def _check_stream(address: str, damage: Damage) -> None:
    """Reads as any gRPC client does."""
    async with grpc.aio.insecure_channel(address) as channel:
        stub = FetchServiceStub(channel)
        offsets: list[int] = []

        async def read() -> None:
            async for response in stub.Fetch(FetchRequest(topic="orders")):
                offsets.extend(batch.base_offset for batch in response.batches)

        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await read()
        assert offsets == list(range(damage.bad))
        assert failure.value.code() is grpc.StatusCode.DATA_LOSS
        error = error_of(failure.value)
        assert error.reason == "DAMAGED_BATCH"
        assert error.details.items() >= damage.offsets.items()
        assert "orders/0" in str(error)
        offset = int(error.details["next_offset"])
        rest = [
            batch.base_offset
            async for response in stub.Fetch(FetchRequest(topic="orders", offset=offset))
            for batch in response.batches
        ]
        assert rest == list(range(damage.bad + 1, COUNT))


async def _check_client(client: Client, damage: Damage) -> None:
    async with client.reader("orders", partition=0) as reader:
        numbers, errors = await _read(reader)
        assert numbers == damage.good
        assert [error.details.items() >= damage.offsets.items() for error in errors] == [True]
        assert reader.skipped_count == 0
    async with client.reader("orders", skip_damage=True) as reader:
        by_partition: dict[int, list[int]] = {0: [], 1: []}
        async for record in reader:
            by_partition[record.partition].append(number_of(record.value)[1])
        assert by_partition == {0: damage.good, 1: list(range(COUNT))}
        assert reader.skipped_count == 1


def _check_blocking_client(address: str, damage: Damage) -> None:
    with BlockingClient(address) as client:
        with client.reader("orders", partition=0) as reader:
            offsets: list[int] = []
            with pytest.raises(DataLossError) as error:
                offsets.extend(record.offset for record in reader)
            assert error.value.details.items() >= damage.offsets.items()
            offsets.extend(record.offset for record in reader)
            assert offsets == damage.good
        with client.reader("orders", partition=0, skip_damage=True) as reader:
            assert [record.offset for record in reader] == damage.good
            assert reader.skipped_count == 1


async def _check_metrics(broker: BrokerProcess, client: Client, damage: Damage) -> None:
    """The range is named once in the log, and counted once, however often it was met."""
    [line] = log_lines(broker, "data lost")
    assert (line["topic"], line["partition"]) == ("orders", 0)
    assert (line["offset"], line["next_offset"]) == (damage.bad, damage.bad + 1)
    assert (await client.admin.get_stats())["damaged_range_count"] == 1
    damaged = [part.damaged for part in (await client.admin.get_topic("orders")).partitions]
    assert damaged == [((damage.bad, damage.bad + 1),), ()]


@pytest.mark.slow
async def test_c05_the_command_line_prints_what_is_good_and_says_where_to_go_on(broker):
    async with Client(broker.address) as client:
        await _filled(broker, client)
    INSIDE.do(broker.data_dir)
    fetch = ["fetch", "orders", "-p", "0", "--format", r"{offset}\n"]
    read = await asyncio.to_thread(logbroker, *fetch, server=broker.address)
    assert read.returncode == 1
    assert [int(line) for line in read.stdout.splitlines()] == list(range(INSIDE.bad))
    assert read.stderr.count(b"DAMAGED_BATCH") == 1
    assert f"--from {INSIDE.bad + 1}".encode() in read.stderr
    read = await asyncio.to_thread(logbroker, *fetch, "--skip-damage", server=broker.address)
    assert read.returncode == 0
    assert [int(line) for line in read.stdout.splitlines()] == INSIDE.good
    assert b"left out for damage: 1 record" in read.stderr
    later = await asyncio.to_thread(
        logbroker, *fetch, "--from", str(INSIDE.bad + 1), server=broker.address
    )
    assert (later.returncode, len(later.stdout.splitlines())) == (0, COUNT - INSIDE.bad - 1)


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
@pytest.mark.parametrize("follow", effort([True], [False, True]))
@pytest.mark.parametrize("start", ["earliest", INSIDE.bad, 5])
async def test_c05_damage_where_a_reader_starts_is_skipped_once_and_counted(broker, start, follow):
    """It had asked for `earliest` again and again, and met the damage each time."""
    async with Client(broker.address) as client:
        await _filled(broker, client)
        await client.admin.trim_topic("orders", 0, INSIDE.bad)
        INSIDE.do(broker.data_dir)
        reader = client.reader(
            "orders", partition=0, start=start, follow=follow, skip_damage=True, stop_offset=COUNT
        )
        async with reader:
            assert [record.offset async for record in reader] == INSIDE.good[INSIDE.bad :]
        assert reader.skipped_count == 1
        assert (await client.admin.get_stats())["error_counts"]["DAMAGED_BATCH"] == 1


@pytest.mark.slow
async def test_c05_readers_that_wait_at_the_damage_or_behind_it_cost_nothing(broker):
    async with Client(broker.address) as client:
        await _filled(broker, client)
        INSIDE.do(broker.data_dir)
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


@pytest.mark.slow
async def test_c05_a_bad_byte_that_nobody_reads_is_found_by_the_scrub(tmp_path):
    often = ["--set", "storage.check_interval_ms=50", "--set", "storage.scrub_interval_ms=1000"]
    with BrokerProcess(tmp_path / "data", *often) as broker:
        async with Client(broker.address) as client:
            await _filled(broker, client)
            INSIDE.do(broker.data_dir)

            async def is_scrubbed(passes: int = 1) -> bool:
                stats = await client.admin.get_stats()
                return int(str(stats["scrubbed_segment_count"])) >= 2 * passes

            await becomes_true(is_scrubbed, "a sealed segment of each partition is read")
            stats = await client.admin.get_stats()
            assert stats["damaged_range_count"] == 1
            assert stats["damaged_partitions"] == ["orders/0"]
            assert int(str(stats["scrubbed_bytes"])) > 2 * 60_000
            await becomes_true(lambda: is_scrubbed(2), "and again")
            assert stats["fetched_bytes"] == 0
            await _check_stream(broker.address, INSIDE)
            await _check_metrics(broker, client, INSIDE)
        told = await asyncio.to_thread(logbroker, "broker", "describe", server=broker.address)
        rows = dict(line.split(maxsplit=1) for line in told.stdout.decode().splitlines() if line)
        assert (rows["damaged_range_count"], rows["damaged_partitions"]) == ("1", "orders/0")
        assert rows["scrub_finished_time_ms"].endswith("Z")
        told = await asyncio.to_thread(
            logbroker, "broker", "describe", "-o", "json", server=broker.address
        )
        assert json.loads(told.stdout)["stats"]["damaged_partitions"] == ["orders/0"]
