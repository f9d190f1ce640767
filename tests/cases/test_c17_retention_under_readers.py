"""C17: retention takes segments from under a reader, who learns of the gap and goes on."""

import asyncio
from pathlib import Path

import grpc
import pytest

from cases.data_dirs import files, log_lines
from cases.numbered import read_numbers, value_of, write_numbered
from cases.processes import open_paths
from cases.watching import becomes_true
from logbroker.client import Client, Reader
from logbroker.errors import LogbrokerError, OffsetOutOfRangeError
from logbroker.testing.running_broker import BrokerProcess
from logbroker.topic.topic import TopicSettings
from logbroker.v1.fetch_service_pb2 import FetchRequest
from logbroker.v1.fetch_service_pb2_grpc import FetchServiceStub
from logbroker.wire.status import error_of

SEGMENT_BYTES = 4 << 20
"""gRPC holds some 4 MiB for a reader that does not read."""
SEGMENTS = 8
VALUE_BYTES = 32_000
PER_SEGMENT = SEGMENT_BYTES // (VALUE_BYTES + 100)
COUNT = SEGMENTS * PER_SEGMENT - 5
INSIDE_SEGMENT_2 = PER_SEGMENT + 20
FIRST_MS = 1_000_000
STAMPS = [FIRST_MS + number for number in range(COUNT)]


@pytest.fixture
def broker(tmp_path: Path):
    with BrokerProcess(tmp_path / "data", "--set", "storage.check_interval_ms=100") as broker:
        yield broker


async def _filled(broker: BrokerProcess, client: Client) -> None:
    """Fills segments 1 to 8. For an idempotent producer retention waits, and goes in two steps."""
    settings = TopicSettings(segment_bytes=SEGMENT_BYTES)
    await client.admin.create_topic("orders", settings=settings)
    await write_numbered(
        client, "orders", range(COUNT), size=VALUE_BYTES, timestamps_ms=STAMPS, idempotent=False
    )
    assert len(files(broker.data_dir, "orders")) == SEGMENTS


async def _drop_five_segments(broker: BrokerProcess, client: Client) -> int:
    """Lets retention take segments 1 to 5, and returns where the log starts then."""
    kept_bytes = int(2.5 * SEGMENT_BYTES)
    await client.admin.update_topic("orders", TopicSettings(retention_bytes=kept_bytes))
    await becomes_true(
        lambda: len(files(broker.data_dir, "orders")) == SEGMENTS - 5, "five segments are gone"
    )
    [part] = (await client.admin.get_topic("orders")).partitions
    assert part.log_start_offset == 5 * PER_SEGMENT
    return part.log_start_offset


async def _read_slowly(reader: Reader, count: int) -> list[int]:
    return [(await anext(reader)).offset for _ in range(count)]


@pytest.mark.slow
async def test_c17_a_slow_reader_has_a_notice_of_the_gap_and_reads_on_behind_it(broker):
    async with Client(broker.address) as client:
        await _filled(broker, client)
        reader = client.reader("orders", prefetch_bytes=1)
        async with reader:
            offsets = await _read_slowly(reader, INSIDE_SEGMENT_2)
            start = await _drop_five_segments(broker, client)
            async for record in reader:
                assert record.value == value_of(record.offset, size=VALUE_BYTES)
                offsets.append(record.offset)
        [reset] = reader.resets
        assert reset.partition == 0
        assert reset.to_offset == start
        assert reset.from_offset < start, "it was not simply read in time"
        expected = [*range(reset.from_offset), *range(start, COUNT)]
        assert offsets == expected
        assert reset.skipped_count == start - reset.from_offset


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["latest", "error"])
async def test_c17_a_reader_goes_on_by_its_policy(broker, policy):
    async with Client(broker.address) as client:
        await _filled(broker, client)
        reader = client.reader("orders", prefetch_bytes=1, out_of_range=policy, follow=True)
        async with reader:
            await _read_slowly(reader, INSIDE_SEGMENT_2)
            start = await _drop_five_segments(broker, client)
            rest = asyncio.create_task(_until(reader, COUNT))
            if policy == "error":
                with pytest.raises(OffsetOutOfRangeError) as error:
                    await rest
                assert error.value.details["log_start_offset"] == str(start)
            else:
                await becomes_true(lambda: bool(reader.resets), "it is reset")
                await write_numbered(client, "orders", [COUNT], size=VALUE_BYTES)
                read = await rest
                from_offset = reader.resets[0].from_offset
                assert read == [*range(INSIDE_SEGMENT_2, from_offset), COUNT]


async def _until(reader: Reader, last: int) -> list[int]:
    offsets: list[int] = []
    async for record in reader:
        offsets.append(record.offset)
        if record.offset == last:
            break
    return offsets


@pytest.mark.slow
async def test_c17_a_stream_of_any_client_ends_with_the_range_that_is_left(broker):
    """One that reads nothing for a while: the broker waits, and is not ahead by much."""
    async with Client(broker.address) as client, grpc.aio.insecure_channel(broker.address) as raw:
        await _filled(broker, client)
        stub = FetchServiceStub(raw)
        request = FetchRequest(topic="orders", offset=PER_SEGMENT, max_bytes=1)
        responses = aiter(stub.Fetch(request))
        offsets = [batch.base_offset for batch in (await anext(responses)).batches]
        start = await _drop_five_segments(broker, client)

        async def read() -> None:
            async for response in responses:
                offsets.extend(batch.base_offset for batch in response.batches)

        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await asyncio.wait_for(read(), 10)
        assert failure.value.code() is grpc.StatusCode.OUT_OF_RANGE
        assert error_of(failure.value).details["log_start_offset"] == str(start)
        assert offsets == list(range(PER_SEGMENT, PER_SEGMENT + len(offsets)))
        assert offsets[-1] < start


@pytest.mark.slow
async def test_c17_nothing_answers_below_the_start_while_retention_is_at_work(broker):
    async with Client(broker.address) as client, grpc.aio.insecure_channel(broker.address) as raw:
        await _filled(broker, client)
        stub, dropped = FetchServiceStub(raw), asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            asking = [tasks.create_task(_ask(client, stub, dropped)) for _ in range(4)]
            start = await _drop_five_segments(broker, client)
            dropped.set()
        assert [task.result() for task in asking] == [start] * 4
        for offset in (0, INSIDE_SEGMENT_2, start - 1):
            with pytest.raises(grpc.aio.AioRpcError) as failure:
                await anext(aiter(stub.Fetch(FetchRequest(topic="orders", offset=offset))))
            details = error_of(failure.value).details
            assert failure.value.code() is grpc.StatusCode.OUT_OF_RANGE
            assert details["log_start_offset"] == str(start)
            assert details["high_watermark"] == str(COUNT)
        assert await read_numbers(client, "orders") == list(range(start, COUNT))
        assert log_lines(broker, "data lost") == []
        await becomes_true(lambda: _deleted(broker) == [], "removed files are let go", within_s=30)


async def _ask(client: Client, stub: FetchServiceStub, dropped: asyncio.Event) -> int:
    """Asks for what goes until it has gone; returns where `earliest` begins then."""
    while True:
        is_last = dropped.is_set()
        [part] = (await client.admin.get_topic("orders")).partitions
        found = await client.find_offset("orders", 0, FIRST_MS + 10)
        assert found is not None
        assert found >= max(10, part.log_start_offset)
        reader = client.reader("orders", stop_offset=COUNT)
        first = (await anext(aiter(reader))).offset
        await reader.close()
        assert first >= part.log_start_offset
        response = await anext(aiter(stub.Fetch(FetchRequest(topic="orders"))))
        assert response.batches[0].base_offset == response.start_offset >= part.log_start_offset
        try:
            async for response in stub.Fetch(FetchRequest(topic="orders", offset=10)):
                assert response.batches[0].base_offset == 10
                break
        except grpc.aio.AioRpcError as failure:
            error: LogbrokerError = error_of(failure)
            assert error.reason == "OFFSET_OUT_OF_RANGE"
        if is_last:
            assert found == first
            return first


def _deleted(broker: BrokerProcess) -> list[str]:
    return [path for path in open_paths(broker.pid) if path.endswith(".log (deleted)")]


@pytest.mark.slow
async def test_c17_a_reader_that_stays_does_not_hold_removed_files_either(broker):
    async with Client(broker.address) as client:
        await _filled(broker, client)
        async with client.reader("orders", prefetch_bytes=1) as reader:
            await _read_slowly(reader, INSIDE_SEGMENT_2)
            await _drop_five_segments(broker, client)
            await becomes_true(lambda: _deleted(broker) == [], "removed files are let go")
