"""When a producer sends what is ready, and when that waits for more."""

import asyncio
from random import Random
from types import SimpleNamespace

import grpc
import pytest
from grpc.aio import AioRpcError, Metadata

from logbroker.client.delivery import (
    LANES_LOOKED_AT,
    REQUEST_BYTES,
    REQUESTS_UNDER_WAY,
    Delivery,
    DeliverySettings,
)
from logbroker.client.retry import Backoff
from logbroker.record.compression import Codec
from logbroker.testing.clock import ManualClock

SETTINGS = DeliverySettings(
    codec=Codec.NONE, max_in_flight=5, is_idempotent=True, delivery_timeout_ms=1_000
)


class Waiting:
    """A lane of which so much waits."""

    asked = 0

    def __init__(self, size):
        self.size = size

    @property
    def waiting_bytes(self):
        """Returns that."""
        Waiting.asked += 1
        return self.size


def delivery_with(lanes):
    """Returns one that has as many requests under way as go without waiting for more."""
    delivery = Delivery(SimpleNamespace(clock=ManualClock()), SETTINGS, seal=None, on_answered=None)
    delivery._writer = SimpleNamespace(is_free=True)
    delivery._under_way = SimpleNamespace(size_bytes=1, request_count=REQUESTS_UNDER_WAY)
    delivery._ready.extend(lanes)
    return delivery


@pytest.mark.parametrize(
    ("lane_count", "size", "must_wait"),
    [
        (0, 0, True),
        (1, REQUEST_BYTES - 1, True),
        (1, REQUEST_BYTES, False),
        (4, REQUEST_BYTES // 4, False),
        (1_000, REQUEST_BYTES // 1_000, True),
        (1_000, REQUEST_BYTES // 999, False),
    ],
)
def test_little_waits_for_more_while_two_requests_are_not_answered(lane_count, size, must_wait):
    assert delivery_with([Waiting(size)] * lane_count)._must_wait() is must_wait


def test_of_many_partitions_that_wait_a_few_are_looked_at():
    Waiting.asked = 0
    delivery_with([Waiting(100)] * 1_000)._must_wait()
    assert 0 < Waiting.asked <= LANES_LOOKED_AT


class Connection:
    """Always there, with a stream that ends when the test says so."""

    target, timeout_ms, random = "a:1", 1_000, Random(1)

    def __init__(self):
        self.clock, self.backoff = ManualClock(), Backoff()
        self.lost = asyncio.get_running_loop().create_future()

    async def wait_ready(self, _):
        """Returns at once."""

    def open_stream(self, *_):
        """Returns the stream."""

        async def read():
            await self.lost

        return SimpleNamespace(read=read, cancel=lambda: None)


@pytest.mark.parametrize("turns", range(8))
async def test_a_producer_that_is_stopped_as_its_stream_breaks_ends(turns):
    connection = Connection()
    delivery = Delivery(connection, SETTINGS, seal=None, on_answered=None)
    running = asyncio.create_task(delivery._run_stream())
    await pass_turns(5)
    unavailable = grpc.StatusCode.UNAVAILABLE
    connection.lost.set_exception(AioRpcError(unavailable, Metadata(), Metadata(), details="reset"))
    await pass_turns(turns)
    running.cancel()
    await pass_turns(20)
    assert running.done()
    assert running.cancelled()


async def pass_turns(count):
    """Returns when the loop has gone round so often."""
    for _ in range(count):
        await asyncio.sleep(0)
