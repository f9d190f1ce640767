"""FetchService over gRPC: streams that live, end with a reason, and fit any client."""

import asyncio

import grpc
import pytest

from logbroker.config import LimitsConfig
from logbroker.v1 import fetch_service_pb2 as pb
from logbroker.v1.produce_service_pb2 import PublishRequest
from logbroker.v1.record_pb2 import Record
from logbroker.v1.records_pb2 import Records
from logbroker.v1.topic_service_pb2 import DeleteTopicRequest

from .calls import (
    ending,
    refusal,
    request,
    serving,
    stored,
    stubs_of,
    until,
    until_no_stream,
    within_time,
)


async def publish(calls, *values, partition=0, timestamp_ms=None):
    records = [Record(value=value, timestamp_ms=timestamp_ms) for value in values]
    await calls.produce.Publish(PublishRequest(topic="a", partition=partition, records=records))


async def values_of(stream):
    responses = [response async for response in stream]
    batches = [batch for response in responses for batch in response.batches]
    return [value for batch in batches for value in Records.FromString(batch.records).values]


async def test_a_fetch_gives_all_and_ends():
    async with serving() as calls:
        await publish(calls, b"1", b"2")
        await publish(calls, b"3")
        assert await values_of(calls.fetch.Fetch(pb.FetchRequest(topic="a"))) == [b"1", b"2", b"3"]


@pytest.mark.parametrize(
    "start, first",
    [
        ({}, 0),
        ({"position": pb.START_POSITION_EARLIEST}, 0),
        ({"position": pb.START_POSITION_LATEST}, 3),
        ({"offset": 0}, 0),
        ({"offset": 2}, 2),
        ({"offset": 3}, 3),
        ({"timestamp_ms": 0}, 0),
        ({"timestamp_ms": 15}, 2),
        ({"timestamp_ms": 99}, 3),
    ],
)
async def test_a_fetch_starts_where_the_request_says(start, first):
    async with serving() as calls:
        for number in range(3):
            await publish(calls, b"%d" % number, timestamp_ms=number * 10)
        stream = calls.fetch.Fetch(pb.FetchRequest(topic="a", **start))
        response = await within_time(stream.read())
        assert (response.start_offset, response.high_watermark) == (first, 3)
        found = pb.FindOffsetRequest(topic="a", timestamp_ms=start.get("timestamp_ms", 0))
        offset = await calls.fetch.FindOffset(found)
        assert offset.HasField("offset") == (start.get("timestamp_ms", 0) < 99)
        stream.cancel()


async def test_an_offset_of_0_and_a_stop_at_0_are_not_the_same_as_none():
    async with serving() as calls:
        await publish(calls, b"1")
        stopped = pb.FetchRequest(topic="a", offset=0, stop_offset=0, follow=True)
        [response] = [each async for each in calls.fetch.Fetch(stopped)]
        assert (len(response.batches), response.next_offset) == (0, 0)


INVALID, NOT_FOUND = "INVALID_ARGUMENT", "NOT_FOUND"


@pytest.mark.parametrize(
    "fields, code, reason",
    [
        ({"topic": ""}, INVALID, "INVALID_NAME"),
        ({"topic": "a/b"}, INVALID, "INVALID_NAME"),
        ({"topic": "__topics"}, INVALID, "INVALID_NAME"),
        ({"topic": "b"}, NOT_FOUND, "TOPIC_NOT_FOUND"),
        ({"topic_id": "x" * 90_000}, "FAILED_PRECONDITION", "TOPIC_RECREATED"),
        ({"partition": 2}, NOT_FOUND, "PARTITION_NOT_FOUND"),
        ({"partition": -1}, NOT_FOUND, "PARTITION_NOT_FOUND"),
        ({"offset": -1}, INVALID, "INVALID_OFFSET"),
        ({"offset": 2}, "OUT_OF_RANGE", "OFFSET_OUT_OF_RANGE"),
        ({"offset": 2**63 - 1}, "OUT_OF_RANGE", "OFFSET_OUT_OF_RANGE"),
        ({"position": 3}, INVALID, "INVALID_ARGUMENT"),
        ({"stop_offset": -1}, INVALID, "INVALID_ARGUMENT"),
        ({"max_bytes": -1}, INVALID, "INVALID_ARGUMENT"),
        ({"max_response_bytes": -1}, INVALID, "INVALID_ARGUMENT"),
        ({"max_response_bytes": 1}, INVALID, "INVALID_ARGUMENT"),
    ],
)
async def test_a_bad_fetch_is_refused(fields, code, reason):
    async with serving() as calls:
        await publish(calls, b"1")
        fetch = pb.FetchRequest(**{"topic": "a", "follow": True, **fields})
        assert await refusal(calls.fetch.Fetch(fetch)) == (code, reason)
        if fields.keys() <= {"topic", "topic_id", "partition"}:
            find = pb.FindOffsetRequest(**{"topic": "a", **fields})
            assert await refusal(calls.fetch.FindOffset(find)) == (code, reason)
        assert len(await values_of(calls.fetch.Fetch(pb.FetchRequest(topic="a")))) == 1


async def test_out_of_range_tells_the_bounds():
    async with serving() as calls:
        await publish(calls, b"1", b"2")
        _, info, _ = await ending(calls.fetch.Fetch(pb.FetchRequest(topic="a", offset=9)))
        assert dict(info.metadata) == {
            "offset": "9",
            "log_start_offset": "0",
            "high_watermark": "2",
        }


async def test_streams_of_a_deleted_topic_end_with_not_found():
    async with serving() as calls:
        streams = [
            calls.fetch.Fetch(pb.FetchRequest(topic="a", partition=partition, follow=True))
            for partition in (0, 1)
        ]
        for stream in streams:
            await within_time(stream.read())
        await calls.topics.DeleteTopic(DeleteTopicRequest(topic="a"))
        for stream in streams:
            assert (await refusal(stream))[0] == "NOT_FOUND"
        await until(lambda: calls.broker.stats().partition_count == 0)


@pytest.mark.slow
async def test_200_idle_streams_say_that_they_live_and_go_when_their_clients_do():
    limits = LimitsConfig(idle_heartbeat_ms=100)
    async with serving(limits=limits) as calls:
        async with grpc.aio.insecure_channel(calls.address) as channel:
            fetch = stubs_of(channel).fetch.Fetch
            streams = [fetch(pb.FetchRequest(topic="a", follow=True)) for _ in range(200)]

            async def beats(stream):
                for _ in range(3):
                    response = await within_time(stream.read())
                    assert (response.next_offset, len(response.batches)) == (0, 0)

            await asyncio.gather(*map(beats, streams))
            await publish(calls, b"x")
            assert sum(await asyncio.gather(*map(batches_next, streams))) == 200
        await until_no_stream(calls)


async def batches_next(stream):
    while not (response := await within_time(stream.read())).batches:
        pass
    return len(response.batches)


async def test_a_client_that_cancels_a_fetch_is_no_fault_and_leaves_no_stream():
    async with serving() as calls:
        await publish(calls, *[b"x" * 10_000] * 100)
        for wait in (False, True) * 20:
            stream = calls.fetch.Fetch(pb.FetchRequest(topic="a", follow=True))
            if wait:
                await within_time(stream.read())
            stream.cancel()
        await until_no_stream(calls)


async def test_a_client_with_grpcs_default_cap_can_read_everything():
    async with serving() as calls:
        sizes = [1 << 20, 1, 900_000, 1 << 20, 10]
        for size in sizes:
            await publish(calls, bytes(size))
        batch = stored(*[b"x" * 1_000] * 2_000)  # nearly batch_bytes
        await within_time(calls.produce.Produce(iter([request(batch)])).read())
        for fetch in (
            pb.FetchRequest(topic="a"),
            pb.FetchRequest(topic="a", max_bytes=2**63 - 1),
            pb.FetchRequest(topic="a", max_bytes=1),
        ):
            values = await values_of(calls.fetch.Fetch(fetch))
            assert [len(value) for value in values] == [*sizes, *[1_000] * 2_000]


@pytest.mark.slow
async def test_a_batch_over_the_clients_cap_is_an_error_that_names_it():
    limits = LimitsConfig(record_bytes=8 << 20, batch_bytes=9 << 20)
    async with serving(limits=limits) as calls:
        await publish(calls, bytes(8 << 20))
        fetch = pb.FetchRequest(topic="a")
        code, info, message = await ending(calls.fetch.Fetch(fetch))
        assert (code.name, info.reason) == ("INVALID_ARGUMENT", "RESPONSE_TOO_LARGE")
        assert "max_response_bytes" in message
        cap = 16 << 20
        options = [("grpc.max_receive_message_length", cap)]
        async with grpc.aio.insecure_channel(calls.address, options=options) as channel:
            fetch.max_response_bytes = cap
            [value] = await values_of(stubs_of(channel).fetch.Fetch(fetch))
            assert len(value) == 8 << 20


async def test_a_reader_that_does_not_read_does_not_hold_up_others():
    async with serving() as calls:
        for _ in range(8):
            await publish(calls, *[b"x" * 100_000] * 10)
        lazy = calls.fetch.Fetch(pb.FetchRequest(topic="a", follow=True))
        await within_time(lazy.read())
        assert len(await values_of(calls.fetch.Fetch(pb.FetchRequest(topic="a")))) == 80
        await publish(calls, b"y")
        lazy.cancel()
