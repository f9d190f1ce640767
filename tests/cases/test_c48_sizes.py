"""C48: sizes and limits: what is at a limit goes through everywhere, what is over it nowhere."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import grpc
import pytest

from cases.commands import logbroker, output_of
from cases.effort import effort
from cases.raw import produce_request
from cases.watching import becomes_true, peak_rss_bytes, rss_bytes
from logbroker.client import Client
from logbroker.client.blocking import BlockingClient
from logbroker.config import Durability
from logbroker.errors import InvalidError, LogbrokerError
from logbroker.testing.running_broker import BrokerProcess
from logbroker.topic.topic import TopicSettings
from logbroker.v1.fetch_service_pb2 import FetchRequest, FetchResponse
from logbroker.v1.fetch_service_pb2_grpc import FetchServiceStub
from logbroker.v1.produce_service_pb2 import PublishRequest
from logbroker.v1.produce_service_pb2_grpc import ProduceServiceStub
from logbroker.v1.record_pb2 import Record as RecordMessage
from logbroker.v1.records_pb2 import Records
from logbroker.wire.status import error_of

MIB = 1 << 20
INT32_MAX = (1 << 31) - 1
UNCAPPED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]

pytestmark = pytest.mark.slow


class Limited:
    """A broker, and its limit of a record."""

    def __init__(self, address: str, record_bytes: int) -> None:
        self.address = address
        self.record_bytes = record_bytes

    def create(self, topic: str) -> str:
        with BlockingClient(self.address) as client:
            client.admin.create_topic(topic)
        return topic


@pytest.fixture(scope="module", params=[1, 8], ids=["1MiB", "8MiB"])
def limited(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Limited]:
    record_bytes = request.param * MIB
    settings = ["--set", f"limits.record_bytes={record_bytes}"]
    settings += ["--set", f"limits.batch_bytes={record_bytes + MIB}"]
    with BrokerProcess(tmp_path_factory.mktemp("c48") / "data", *settings) as broker:
        yield Limited(broker.address, record_bytes)


def sizes_of(address: str, topic: str) -> list[int]:
    with BlockingClient(address) as client, client.reader(topic) as reader:
        return [len(record.value or b"") for record in reader]


async def error_counts(client: Client) -> dict[str, int]:
    counts = (await client.admin.get_stats())["error_counts"]
    assert isinstance(counts, dict)
    return counts


async def test_records_up_to_the_limit_go_through_every_client_as_it_is(limited):
    topic = limited.create("up-to")
    just_below, most = os.urandom(limited.record_bytes - 1), os.urandom(limited.record_bytes)
    async with Client(limited.address) as client, client.producer(topic) as producer:
        await producer.publish(just_below)
        await producer.publish(most)
        await producer.publish(most[10:], key=most[:10])  # the key counts, too
    output_of("produce", topic, "--format", "file", server=limited.address, stdin=most)
    async with grpc.aio.insecure_channel(limited.address, options=UNCAPPED) as channel:
        request = PublishRequest(topic=topic, records=[RecordMessage(value=most)])
        await ProduceServiceStub(channel).Publish(request)

    expected = [just_below, most, most[10:], most, most]
    async with Client(limited.address) as client, client.reader(topic) as reader:
        assert [record.value async for record in reader] == expected
    with BlockingClient(limited.address) as blocking, blocking.reader(topic) as records:
        assert [record.value for record in records] == expected
    printed = output_of("fetch", topic, "--raw", server=limited.address)
    assert printed == b"".join(value + b"\n" for value in expected)


async def test_one_byte_more_is_an_invalid_argument_that_nobody_tries_again(limited):
    topic = limited.create("over")
    over = bytes(limited.record_bytes + 1)
    async with Client(limited.address) as client, client.producer(topic) as producer:
        for value, key in ((over, None), (over[1:], b"k")):
            with pytest.raises(InvalidError) as caught:
                await producer.publish(value, key=key)
            assert caught.value.reason == "RECORD_TOO_LARGE"
            assert not caught.value.may_retry
        await producer.publish(b"the others are not touched")
        with pytest.raises(InvalidError):
            await producer.send_many([b"of these", over, b"none is sent"])
        before = (await error_counts(client)).get("RECORD_TOO_LARGE", 0)
        async with grpc.aio.insecure_channel(limited.address, options=UNCAPPED) as channel:
            stub = ProduceServiceStub(channel)
            records = [RecordMessage(value=value) for value in (b"nor here", over)]
            with pytest.raises(grpc.aio.AioRpcError) as failure:
                await stub.Publish(PublishRequest(topic=topic, records=records))
            assert failure.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert error_of(failure.value).reason == "RECORD_TOO_LARGE"
            assert error_of(failure.value).details["record"] == "1", "its place in the batch"
            call = stub.Produce()
            await call.write(produce_request(topic, [over]))
            await call.write(produce_request(topic, [b"the stream goes on"]))
            results = [result async for response in call_of(call) for result in response.results]
        assert results[0].error.reason == "RECORD_TOO_LARGE"
        assert results[1].HasField("receipt")
        assert (await error_counts(client))["RECORD_TOO_LARGE"] == before + 2, "once each"
    done = logbroker(
        "produce", topic, server=limited.address, stdin=b"line 1\n" + b"x" * len(over) + b"\nline 3"
    )
    assert done.returncode == 1
    assert b"RECORD_TOO_LARGE" in done.stderr or b"record_bytes" in done.stderr
    assert b"line 2" in done.stderr
    values = [b"the others are not touched", b"the stream goes on", b"line 1"]
    assert sizes_of(limited.address, topic) == [len(value) for value in values]


async def call_of(call: grpc.aio.StreamStreamCall) -> AsyncIterator:
    await call.done_writing()
    async for response in call:
        yield response


async def test_many_records_whose_sum_passes_4_mib_are_cut_into_batches(limited):
    topic = limited.create("sum")
    values = [os.urandom(MIB // 2) for _ in range(12)]
    async with Client(limited.address) as client:
        async with client.producer(topic, max_batch_bytes=8 * MIB) as producer:
            await (await producer.send_many(values))
        async with client.reader(topic) as reader:
            assert [record.value async for record in reader] == values
    assert sizes_of(limited.address, topic) == [MIB // 2] * 12
    printed = output_of("fetch", topic, "--raw", server=limited.address)
    assert printed == b"".join(value + b"\n" for value in values)


async def test_a_batch_over_the_limit_of_batches_is_refused_whole(limited):
    topic = limited.create("batch")
    values = [bytes(limited.record_bytes // 2)] * 2 + [bytes(MIB)]
    async with grpc.aio.insecure_channel(limited.address, options=UNCAPPED) as channel:
        stub = ProduceServiceStub(channel)
        call = stub.Produce()
        await call.write(produce_request(topic, values))
        (result,) = [result async for response in call_of(call) for result in response.results]
        assert result.error.reason == "BATCH_TOO_LARGE"
        records = [RecordMessage(value=value) for value in values * 2]
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await stub.Publish(PublishRequest(topic=topic, records=records))
        error = error_of(failure.value)
        assert (type(error), error.reason) == (InvalidError, "BATCH_TOO_LARGE")
        assert not error.may_retry
    assert sizes_of(limited.address, topic) == []


async def test_a_fetch_limit_below_a_record_gives_the_record_alone_and_goes_on(limited):
    topic = limited.create("fetch-limit")
    sizes = [10, 900 << 10, 900 << 10, 10]
    async with Client(limited.address) as client, client.producer(topic) as producer:
        for size in sizes:
            await producer.publish(bytes(size))
    async with grpc.aio.insecure_channel(limited.address) as channel:
        request = FetchRequest(topic=topic, max_bytes=1_024)
        responses = [
            [len(value) for batch in response.batches for value in values_of(batch.records)]
            async for response in FetchServiceStub(channel).Fetch(request)
        ]
    assert [each for each in responses if each] == [[size] for size in sizes]
    async with (
        Client(limited.address) as client,
        client.reader(topic, prefetch_bytes=1_024) as reader,
    ):
        assert [len(record.value or b"") async for record in reader] == sizes


async def test_a_plain_grpc_client_gets_under_4_mib_or_an_error_that_names_the_cap(limited):
    topic = limited.create("plain")
    async with Client(limited.address) as client:
        async with client.producer(topic) as producer:
            for _ in range(8):
                await producer.publish(bytes(MIB - 100))
        async with grpc.aio.insecure_channel(limited.address) as channel:
            stub = FetchServiceStub(channel)
            request = FetchRequest(topic=topic, max_bytes=INT32_MAX)
            fetched = [response async for response in stub.Fetch(request)]
            assert sum(len(response.batches) for response in fetched) == 8
            assert max(response.ByteSize() for response in fetched) < 4 * MIB
            if limited.record_bytes < 4 * MIB:
                return
            async with client.producer(topic) as producer:
                large = await producer.publish(bytes(5 * MIB))
            with pytest.raises(grpc.aio.AioRpcError) as failure:
                await read_out(stub, FetchRequest(topic=topic, offset=large.offset))
            error = error_of(failure.value)
            assert (error.reason, failure.value.code()) == (
                "RESPONSE_TOO_LARGE",
                grpc.StatusCode.INVALID_ARGUMENT,
            )
            assert error.details["cap"] == str(4 * MIB - 1_024)
            assert "max_response_bytes" in str(error)


async def test_a_client_with_a_cap_of_its_own_is_told_what_does_not_fit(limited):
    topic = limited.create("own-cap")
    async with Client(limited.address) as client, client.producer(topic) as producer:
        await producer.publish(bytes(600 << 10))
    async with Client(limited.address, max_response_bytes=MIB // 2) as small:
        with pytest.raises(LogbrokerError) as caught:
            async with small.reader(topic) as reader:
                await anext(reader)
        assert caught.value.reason == "RESPONSE_TOO_LARGE"
        assert not caught.value.may_retry


async def read_out(stub: FetchServiceStub, request: FetchRequest) -> list[FetchResponse]:
    return [response async for response in stub.Fetch(request)]


def values_of(records: bytes) -> list[bytes]:
    return list(Records.FromString(records).values)


PARTITION_COUNT = 256
RECORD_BYTES = 64 << 10
RECORD_COUNT = effort(1, 6) * MIB // RECORD_BYTES
GROWTH_BYTES = 100 * MIB
STILL_COUNT = 30


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker with 256 partitions of some MiB, just started."""
    broker = BrokerProcess(tmp_path / "data")
    with broker:
        asyncio.run(_fill(broker.address))
    with broker:
        yield broker


async def _fill(address: str) -> None:
    values = [os.urandom(RECORD_BYTES)] * RECORD_COUNT
    async with Client(address) as client:
        settings = TopicSettings(durability=Durability.WRITTEN)
        await client.admin.create_topic("wide", PARTITION_COUNT, settings)
        async with client.producer("wide") as producer:
            for partition in range(PARTITION_COUNT):
                await producer.send_many(values, partition=partition)


@pytest.mark.parametrize("reads", [True, False], ids=["reads", "reads-nothing"])
async def test_one_client_that_asks_for_2_gib_of_256_partitions_costs_little_memory(filled, reads):
    before = rss_bytes(filled.pid)
    options = [*UNCAPPED, ("grpc.http2.lookahead_bytes", 64 << 20)]
    async with grpc.aio.insecure_channel(filled.address, options=options) as channel:
        stub = FetchServiceStub(channel)
        calls = [
            stub.Fetch(
                FetchRequest(
                    topic="wide",
                    partition=partition,
                    max_bytes=INT32_MAX,
                    max_response_bytes=INT32_MAX,
                    follow=True,
                )
            )
            for partition in range(PARTITION_COUNT)
        ]
        if reads:  # all there is; the streams stay open, and wait for more
            await asyncio.gather(*map(_read_all, calls))
        else:
            await _wait_still(filled.address)
        growth = peak_rss_bytes(filled.pid) - before
        print(f"the broker grew by {growth / MIB:.0f} MiB")
        assert growth < GROWTH_BYTES
        for call in calls:
            call.cancel()
    async with Client(filled.address) as client:
        await becomes_true(lambda: _are_streams_open(client, 0), "all streams have ended")


async def test_produce_streams_that_wait_hold_nothing_of_what_they_carried(tmp_path):
    with BrokerProcess(tmp_path / "data") as broker:
        async with Client(broker.address) as client:
            await client.admin.create_topic("t")
            before = rss_bytes(broker.pid)
            async with grpc.aio.insecure_channel(broker.address) as channel:
                calls = [ProduceServiceStub(channel).Produce() for _ in range(100)]
                for call in calls:
                    await call.write(produce_request("t", [bytes(MIB)]))
                    assert (await call.read()).results[0].HasField("receipt")
                assert await _are_streams_open(client, 100)
                growth = rss_bytes(broker.pid) - before
                print(f"the broker grew by {growth / MIB:.0f} MiB")
                assert growth < 50 * MIB, "half of what was carried"


async def _read_all(call: grpc.aio.UnaryStreamCall) -> None:
    while (await call.read()).next_offset < RECORD_COUNT:
        pass


async def _are_streams_open(client: Client, count: int) -> bool:
    return (await client.admin.get_stats())["open_stream_count"] == count


async def _wait_still(address: str) -> None:
    """Returns once the broker sends no more: all that may be under way is."""
    async with Client(address) as client:
        seen: list[object] = []

        async def is_still() -> bool:
            seen.append((await client.admin.get_stats())["fetched_bytes"])
            return len(seen) > STILL_COUNT and len(set(seen[-STILL_COUNT:])) == 1

        await becomes_true(is_still, "the broker sends no more", within_s=30)
