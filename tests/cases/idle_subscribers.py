"""A process of idle subscribers: streams that follow a topic to which nobody writes.

    python -m cases.idle_subscribers ADDRESS TOPIC CHANNEL_COUNT STREAM_COUNT KEEPALIVE_MS

Says `ready` once each stream has its first response, and ends with 1 when a stream does.
"""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import grpc

from logbroker.v1.fetch_service_pb2 import FetchRequest
from logbroker.v1.fetch_service_pb2_grpc import FetchServiceStub

TESTS = Path(__file__).parents[1]


def start_subscribers(
    address: str, topic: str, *, channel_count: int, stream_count: int, keepalive_ms: int
) -> subprocess.Popen[str]:
    """Starts such a process."""
    numbers = map(str, (channel_count, stream_count, keepalive_ms))
    return subprocess.Popen(
        [sys.executable, "-m", "cases.idle_subscribers", address, topic, *numbers],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)])},
    )


async def _subscribe(
    address: str, topic: str, channel_count: int, stream_count: int, keepalive_ms: int
) -> None:
    options = [
        ("grpc.keepalive_time_ms", keepalive_ms),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    channels = [grpc.aio.insecure_channel(address, options=options) for _ in range(channel_count)]
    request = FetchRequest(topic=topic, follow=True)
    calls = [
        FetchServiceStub(channels[number % channel_count]).Fetch(request)
        for number in range(stream_count)
    ]
    for call in calls:
        await call.read()
    print("ready", flush=True)
    await asyncio.wait(
        [asyncio.ensure_future(_read_on(call)) for call in calls],
        return_when=asyncio.FIRST_COMPLETED,
    )


async def _read_on(call: grpc.aio.UnaryStreamCall) -> None:
    try:
        while await call.read() is not grpc.aio.EOF:
            pass
    finally:
        print(f"a stream has ended: {await call.code()} {await call.details()}", flush=True)


if __name__ == "__main__":
    asyncio.run(_subscribe(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])))
    sys.exit(1)
