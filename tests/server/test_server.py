"""The server: how it starts, stops, and outlives its clients."""

import asyncio
import sys
from contextlib import AsyncExitStack

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from slow_engine import SlowEngine

from logbroker.config import ListenConfig
from logbroker.errors import UnavailableError
from logbroker.storage.memory import MemoryEngine
from logbroker.testing.clock import ManualClock
from logbroker.testing.running_broker import running_broker
from logbroker.v1.fetch_service_pb2 import FetchRequest
from logbroker.v1.produce_service_pb2 import PublishRequest
from logbroker.v1.record_pb2 import Record
from logbroker.v1.topic_service_pb2 import CreateTopicRequest, GetTopicRequest

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

GRACE_MS = 2_000


async def started(stack, engine=None, grace_ms=GRACE_MS):
    """Starts a broker with the topic `a` that the test itself stops: stubs, the broker, `stop`."""
    listen = ListenConfig(grpc="127.0.0.1:0", stop_grace_ms=grace_ms)
    running = running_broker(engine=engine, listen=listen)
    address, broker = await running.__aenter__()
    calls = stubs_of(await stack.enter_async_context(grpc.aio.insecure_channel(address)))
    await calls.topics.CreateTopic(CreateTopicRequest(topic="a"))
    calls.address = address

    async def stop():
        await running.__aexit__(None, None, None)

    return calls, broker, stop


async def test_a_stop_ends_open_streams_with_a_word():
    async with AsyncExitStack() as stack:
        calls, broker, stop = await started(stack)
        fetches = [calls.fetch.Fetch(FetchRequest(topic="a", follow=True)) for _ in range(25)]
        produces = [calls.produce.Produce() for _ in range(25)]
        for number, stream in enumerate(produces):
            await stream.write(request(stored(b"x")))
            answer = await within_time(stream.read())
            assert answer.results[0].receipt.base_offset == number
        for stream in fetches:
            await within_time(stream.read())
        begun = asyncio.get_running_loop().time()
        await within_time(stop())
        took_s = asyncio.get_running_loop().time() - begun
        for stream in (*fetches, *produces):
            assert await refusal(stream) == ("UNAVAILABLE", "SHUTTING_DOWN")
        assert took_s < GRACE_MS / 1_000, "nobody used up the grace"
        assert broker.budget.taken == 0


async def test_a_stop_answers_what_was_begun():
    async with AsyncExitStack() as stack:
        engine = SlowEngine(ManualClock())
        calls, broker, stop = await started(stack, engine)
        topic = broker.get_topic("a")
        log = await engine.open(topic.partition(0), topic.settings)
        stream = calls.produce.Produce()
        await stream.write(request(stored(b"1"), stored(b"2")))
        await stream.write(request(stored(b"3")))
        await until(lambda: log.next_offset == 3)
        stopping = asyncio.create_task(stop())
        health = health_pb2_grpc.HealthStub(calls.channel)
        watched = health.Watch(health_pb2.HealthCheckRequest())
        await ending_or_not_serving(watched)
        log.flush()
        results = []
        while len(results) < 3:
            results += (await within_time(stream.read())).results
        assert [result.receipt.base_offset for result in results] == [0, 1, 2]
        assert await refusal(stream) == ("UNAVAILABLE", "SHUTTING_DOWN")
        await within_time(stopping)
        assert broker.budget.taken == 0


async def ending_or_not_serving(watched):
    """Returns when the health service says that the broker serves no more."""
    try:
        while True:
            found = await within_time(watched.read())
            if found is grpc.aio.EOF or found.status != health_pb2.HealthCheckResponse.SERVING:
                return
    except grpc.aio.AioRpcError:
        return


async def test_a_stop_gives_unary_calls_their_grace():
    async with AsyncExitStack() as stack:
        engine = SlowEngine(ManualClock())
        calls, broker, stop = await started(stack, engine)
        topic = broker.get_topic("a")
        log = await engine.open(topic.partition(0), topic.settings)
        publish = PublishRequest(topic="a", records=[Record(value=b"x")])
        publishing = asyncio.ensure_future(calls.produce.Publish(publish))
        await until(lambda: log.next_offset == 1)
        stopping = asyncio.create_task(stop())
        await asyncio.sleep(0)
        log.flush()
        answer = await within_time(publishing)
        assert answer.results[0].receipt.base_offset == 0
        await within_time(stopping)


async def test_a_reader_that_does_not_read_does_not_hold_up_a_stop_beyond_the_grace():
    async with AsyncExitStack() as stack:
        calls, _, stop = await started(stack, grace_ms=100)
        for _ in range(30):
            publish = PublishRequest(topic="a", records=[Record(value=bytes(1 << 20))])
            await calls.produce.Publish(publish)
        lazy = calls.fetch.Fetch(FetchRequest(topic="a", follow=True))
        await within_time(lazy.read())
        await asyncio.wait_for(stop(), 5)
        code, _, _ = await ending(lazy)
        assert code is grpc.StatusCode.UNAVAILABLE


async def test_calls_after_a_stop_are_unavailable():
    async with AsyncExitStack() as stack:
        calls, _, stop = await started(stack)
        await within_time(stop())
        code, _, _ = await ending(calls.topics.GetTopic(GetTopicRequest(topic="a")))
        assert code is grpc.StatusCode.UNAVAILABLE


async def test_a_port_that_is_taken_is_an_error_that_names_it():
    async with serving() as calls:
        listen = ListenConfig(grpc=calls.address)
        with pytest.raises(UnavailableError, match=f"cannot listen on {calls.address}"):
            async with running_broker(engine=MemoryEngine(ManualClock()), listen=listen):
                pass


CLIENT = """
import sys, grpc
from logbroker.v1.fetch_service_pb2 import FetchRequest
from logbroker.v1.fetch_service_pb2_grpc import FetchServiceStub
from logbroker.v1.produce_service_pb2_grpc import ProduceServiceStub
from logbroker.v1.produce_service_pb2 import ProduceRequest, ProduceEntry
import itertools, threading
channel = grpc.insecure_channel(sys.argv[1])
fetch = FetchServiceStub(channel).Fetch(FetchRequest(topic="a", follow=True))
next(fetch)
def requests():
    yield ProduceRequest(entries=[ProduceEntry(topic="a")])
    threading.Event().wait()
produce = ProduceServiceStub(channel).Produce(requests())
next(produce)
print("open", flush=True)
threading.Event().wait()
"""


@pytest.mark.slow
async def test_a_client_that_is_killed_leaves_no_stream_and_no_bytes():
    async with serving() as calls:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", CLIENT, calls.address, stdout=asyncio.subprocess.PIPE
        )
        assert await asyncio.wait_for(process.stdout.readline(), 20) == b"open\n"
        process.kill()
        await process.wait()
        await until_no_stream(calls)
        assert calls.broker.budget.taken == 0
