"""What tests of Produce over gRPC say again and again."""

import asyncio

from slow_engine import SlowEngine

from logbroker.testing.clock import ManualClock
from logbroker.v1.topic_service_pb2 import GetTopicRequest


async def answers_to(calls, *requests):
    """Returns all results of a stream that sends these and then no more."""
    stream = calls.produce.Produce(iter(requests))
    async with asyncio.timeout(10):
        return [result async for response in stream for result in response.results]


async def high_watermarks(calls, topic="a"):
    """Returns that of each partition."""
    found = await calls.topics.GetTopic(GetTopicRequest(topic=topic))
    return [status.high_watermark for status in found.partitions]


async def log_of(calls, partition=0):
    """Returns the log of a partition of `a`, which the engine holds."""
    topic = calls.broker.get_topic("a")
    return await calls.broker._engine.open(topic.partition(partition), topic.settings)


def slow():
    """Returns an engine whose disk takes as long as the test says."""
    return SlowEngine(ManualClock())
