"""Produce over gRPC where there is too much, or where the other end goes away."""

import asyncio

import grpc
import pytest

from logbroker.v1.produce_service_pb2 import ProduceEntry, ProduceRequest, PublishRequest
from logbroker.v1.record_pb2 import Record

from .calls import SMALL, ending, refusal, request, serving, stored, stubs_of, until, within_time
from .producing import high_watermarks, log_of, slow


@pytest.mark.slow
async def test_many_small_entries_are_answered_in_responses_that_fit():
    async with serving() as calls:
        bad = ProduceEntry(topic="é" * 300)
        stream = calls.produce.Produce(iter([ProduceRequest(entries=[bad] * 2_500)]))
        responses = [response async for response in stream]
        assert sum(len(response.results) for response in responses) == 2_500
        assert max(response.ByteSize() for response in responses) < 4 << 20
        empty = ProduceRequest(entries=[ProduceEntry()] * 20_000)
        assert await refusal(calls.produce.Produce(iter([empty]))) == (
            "INVALID_ARGUMENT",
            "INVALID_ARGUMENT",
        )


async def test_a_request_over_the_largest_is_refused_by_grpc_with_both_numbers():
    async with serving(limits=SMALL) as calls:
        huge = PublishRequest(topic="a", records=[Record(value=bytes(2 << 20))])
        for call in (
            calls.produce.Publish(huge),
            calls.produce.Produce(iter([request(stored(bytes(2 << 20)))])),
        ):
            code, _, message = await ending(call)
            assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert "larger than max" in message
        assert await high_watermarks(calls) == [0, 0]


async def test_a_client_that_cancels_leaves_nothing_in_flight_and_no_fault():
    async with serving(engine=slow()) as calls:
        log = await log_of(calls)
        for _ in range(20):
            stream = calls.produce.Produce()
            for _ in range(5):
                await stream.write(request(stored(b"x" * 1_000), stored(b"y")))
            await until(lambda: calls.broker.budget.taken >= 1_000)
            stream.cancel()
            await until(lambda: calls.broker.budget.taken == 0)
            log.flush()
        bad = [entry for entry in calls.logs if entry["log_level"] in ("error", "warning")]
        assert bad == []


async def test_a_connection_that_breaks_leaves_nothing_in_flight_and_no_fault():
    async with serving(engine=slow()) as calls:
        async with grpc.aio.insecure_channel(calls.address) as channel:
            stream = stubs_of(channel).produce.Produce()
            await stream.write(request(stored(b"x" * 1_000)))
            await until(lambda: calls.broker.budget.taken >= 1_000)
        await until(lambda: calls.broker.budget.taken == 0)


async def test_a_stream_is_not_read_beyond_its_share_and_goes_on_when_there_is_room():
    async with serving(engine=slow(), limits=SMALL) as calls:
        log = await log_of(calls)
        batch = stored(*[b"x" * 900] * 10)
        stream = calls.produce.Produce()

        async def write():
            for _ in range(40):
                await stream.write(request(batch))
            await stream.done_writing()

        writing = asyncio.create_task(write())
        await until(lambda: calls.broker.budget.taken > 50_000)
        assert calls.broker.budget.taken <= SMALL.connection_bytes
        refused = PublishRequest(topic="a", records=[Record(value=b"x" * 900)] * 70)
        assert await refusal(calls.produce.Publish(refused)) in (
            ("RESOURCE_EXHAUSTED", "OVERLOADED"),
            ("INVALID_ARGUMENT", "BATCH_TOO_LARGE"),
        )

        async def flush():
            while True:
                log.flush()
                await asyncio.sleep(0.001)

        flushing, count = asyncio.create_task(flush()), 0
        while count < 40:
            count += len((await within_time(stream.read())).results)
        await writing
        flushing.cancel()
        assert log.next_offset == 400


async def test_a_unary_call_is_refused_when_the_broker_holds_too_much():
    async with serving(engine=slow(), limits=SMALL) as calls:
        stream = calls.produce.Produce()
        await stream.write(request(stored(*[b"x" * 900] * 60)))
        await until(lambda: calls.broker.budget.taken > 50_000)
        publish = PublishRequest(topic="a", records=[Record(value=b"x" * 900)] * 30)
        code, info, _ = await ending(calls.produce.Publish(publish))
        assert (code, info.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
        assert int(info.metadata["retry_after_ms"]) > 0
        stream.cancel()
        await until(lambda: calls.broker.budget.taken == 0)


@pytest.mark.slow
async def test_the_answer_to_the_most_records_of_a_publish_fits():
    async with serving(topic="t" * 200, partition_count=1) as calls:
        publish = PublishRequest(topic="t" * 200, records=[Record()] * 10_000)
        assert (await calls.produce.Publish(publish)).ByteSize() < 4 << 20
