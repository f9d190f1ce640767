"""C52: a stop in good order: calls are told, what was answered is kept, the next start is clean."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from signal import Signals

import grpc
import pytest

from cases.stopped_writer import Writer
from cases.watching import becomes_true
from logbroker.client import Client
from logbroker.storage.file import paths
from logbroker.testing.running_broker import BrokerProcess
from logbroker.v1.fetch_service_pb2 import FetchRequest
from logbroker.v1.fetch_service_pb2_grpc import FetchServiceStub
from logbroker.v1.produce_service_pb2_grpc import ProduceServiceStub
from logbroker.wire.status import error_of

GRACE_S = 5
EXIT_WITHIN_S = GRACE_S + 1
STREAM_COUNT = 50
PRODUCER_COUNT = 5
"""Of each of the two kinds."""

pytestmark = pytest.mark.slow


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    grace = ["--set", f"listen.stop_grace_ms={GRACE_S * 1_000}"]
    with BrokerProcess(tmp_path / "data", *grace) as started:
        yield started


async def follow(address: str) -> list[grpc.aio.UnaryStreamCall]:
    """Opens streams that wait for records; each has its first response."""
    channels = [grpc.aio.insecure_channel(address) for _ in range(10)]
    request = FetchRequest(topic="idle", follow=True)
    calls = [FetchServiceStub(channels[n % 10]).Fetch(request) for n in range(STREAM_COUNT)]
    await asyncio.gather(*(anext(aiter(call)) for call in calls))
    return calls


async def status_of(call: grpc.aio.UnaryStreamCall) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        async for _ in call:
            pass
    return failure.value.code(), error_of(failure.value).reason


@pytest.mark.parametrize(
    "signals",
    [[Signals.SIGTERM], [Signals.SIGINT], [Signals.SIGTERM, Signals.SIGTERM]],
    ids=["SIGTERM", "SIGINT", "SIGTERM-twice"],
)
async def test_a_stop_tells_all_keeps_what_was_answered_and_leaves_a_clean_log(
    broker, tmp_path, signals
):
    async with Client(broker.address) as client:
        await client.admin.create_topic("t")
        await client.admin.create_topic("idle")
    calls = await follow(broker.address)
    writers = [Writer(f"{kind}{n}") for kind in "ab" for n in range(PRODUCER_COUNT)]
    writing = [
        asyncio.create_task((each.produce if n < PRODUCER_COUNT else each.publish)(broker.address))
        for n, each in enumerate(writers)
    ]
    await becomes_true(lambda: all(len(each.acked) > 5 for each in writers[5:]), "writers write")

    started = time.monotonic()
    for number in signals:
        broker.send(number)
    assert await asyncio.to_thread(broker.wait) == 0
    took_s = time.monotonic() - started
    print(f"ended after {took_s:.2f} s")
    assert took_s < EXIT_WITHIN_S
    statuses = set(await asyncio.gather(*map(status_of, calls)))
    assert statuses == {(grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN")}
    await asyncio.gather(*writing)
    codes = {each.code for each in writers[PRODUCER_COUNT:]}
    assert codes <= {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}

    assert (tmp_path / "data" / paths.CLEAN).exists(), "the next start need not scan"
    await asyncio.to_thread(broker.start)
    async with Client(broker.address) as client:
        assert (await client.admin.get_stats())["torn_bytes"] == 0
        async with client.reader("t") as reader:
            records = [record async for record in reader]
    offsets = {record.value: record.offset for record in records}
    assert len(offsets) == len(records), "none is doubled"
    acked = {value: offset for each in writers for value, offset in each.acked.items()}
    assert {value: offsets.get(value) for value in acked} == acked
    allowed = {value for each in writers for value in each.open}
    assert offsets.keys() - acked.keys() <= allowed, "the others were failed or unknown"
    assert not any(value in offsets for each in writers for value in each.surely_not_stored)
    for each in writers:
        numbers = [r.value for r in records if r.value.startswith(f"{each.name}:".encode())]
        assert numbers == [each.value_of(n) for n in range(len(numbers))], "in order, no gap"


async def test_signals_that_keep_coming_do_not_spoil_the_stop(broker, tmp_path):
    async with Client(broker.address) as client:
        await client.admin.create_topic("t")
        await (client.producer("t")).publish(b"v")
    ended = asyncio.create_task(asyncio.to_thread(broker.wait))
    while not ended.done():
        broker.send(Signals.SIGTERM)
        await asyncio.sleep(0.000_5)
    assert await ended == 0
    assert (tmp_path / "data" / paths.CLEAN).exists()


async def test_who_calls_while_the_broker_stops_is_told_so(broker):
    async with Client(broker.address) as client:
        await client.admin.create_topic("t")
    writers = [Writer(str(n)) for n in range(10)]
    writing = [asyncio.create_task(each.publish(broker.address)) for each in writers]
    await becomes_true(lambda: all(len(each.acked) > 5 for each in writers), "writers write")
    broker.send(Signals.SIGTERM)
    assert await asyncio.to_thread(broker.wait) == 0
    await asyncio.gather(*writing)
    told = [each for each in writers if each.code is grpc.StatusCode.UNAVAILABLE]
    assert len(told) > 5, "but for one that calls at the very moment the port closes"


async def test_a_client_that_does_not_read_holds_a_stop_up_no_longer_than_its_grace(tmp_path):
    grace_s = 1
    grace = ["--set", f"listen.stop_grace_ms={grace_s * 1_000}"]
    with BrokerProcess(tmp_path / "data", *grace) as broker:
        async with Client(broker.address) as client:
            await client.admin.create_topic("t")
            async with client.producer("t") as producer:
                await producer.send_many([bytes(64 << 10)] * 300)
        async with grpc.aio.insecure_channel(broker.address) as channel:
            call = FetchServiceStub(channel).Fetch(FetchRequest(topic="t", follow=True))
            await call.read()
            started = time.monotonic()
            broker.send(Signals.SIGTERM)
            assert await asyncio.to_thread(broker.wait) == 0
            assert time.monotonic() - started < grace_s + 1 + 1  # this machine has other work too
        assert (tmp_path / "data" / paths.CLEAN).exists()


async def test_a_produce_stream_that_is_open_and_silent_ends_with_the_broker(broker):
    async with grpc.aio.insecure_channel(broker.address) as channel:
        call = ProduceServiceStub(channel).Produce()
        await call.wait_for_connection()
        async with Client(broker.address) as client:

            async def is_open() -> bool:
                return (await client.admin.get_stats())["open_stream_count"] == 1

            await becomes_true(is_open, "the stream is open")
        started = time.monotonic()
        broker.send(Signals.SIGTERM)
        assert await asyncio.to_thread(broker.wait) == 0
        assert time.monotonic() - started < EXIT_WITHIN_S
        assert (await call.code()) is grpc.StatusCode.UNAVAILABLE
