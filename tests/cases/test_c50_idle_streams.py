"""C50: many idle streams cost the others nothing; clients that vanish are noticed."""

import asyncio
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from signal import Signals

import grpc
import pytest
import structlog

from cases.effort import IS_FULL, effort
from cases.idle_subscribers import start_subscribers
from cases.watching import becomes_true, open_file_count, percentile, rss_bytes
from logbroker.client import Client, connection
from logbroker.testing.running_broker import BrokerProcess
from logbroker.v1.fetch_service_pb2 import FetchRequest
from logbroker.v1.fetch_service_pb2_grpc import FetchServiceStub

CHANNEL_COUNTS = (12, 13, 12, 13)
"""Of each client's process; 50 in all."""
STREAM_COUNT = 125
"""Of each client's process; 500 in all."""
BASELINE_S = effort(1, 5)
LOAD_S = effort(3, 60)
KEEPALIVE_MS = effort(1_000, 10_000)
"""Of broker and clients; in full the defaults."""
TIMEOUT_MS = effort(1_000, 5_000)
P99_MS = 100
KILLED_WITHIN_S = 2
SLACK = 3
"""This machine has other work too."""
CANCELLED_COUNT = effort(1_000, 5_000)
WARM_UP_COUNT = effort(500, 2_000)
AT_ONCE = 50

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300 if IS_FULL else 120)]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    settings = ["--set", f"listen.keepalive_ms={KEEPALIVE_MS}"]
    settings += ["--set", f"listen.keepalive_timeout_ms={TIMEOUT_MS}"]
    with BrokerProcess(tmp_path / "data", *settings) as started:
        yield started


async def open_stream_count(client: Client) -> int:
    count = (await client.admin.get_stats())["open_stream_count"]
    assert isinstance(count, int)
    return count


async def publish_for(client: Client, seconds: float) -> list[float]:
    """Publishes record after record; returns how many ms each took."""
    took: list[float] = []
    async with client.producer("busy") as producer:
        end = time.monotonic() + seconds
        while (begun := time.monotonic()) < end:
            await producer.publish(b"v" * 100)
            took.append((time.monotonic() - begun) * 1_000)
    return took


def wait_ready(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    assert process.stdout
    process.stdout.close()


async def test_idle_streams_cost_little_and_lost_clients_are_noticed(broker):
    async with Client(broker.address) as client:
        await client.admin.create_topic("busy")
        await client.admin.create_topic("idle")
        alone = await publish_for(client, BASELINE_S)
        with ExitStack() as cleanup:
            subscribers = [
                start_subscribers(
                    broker.address,
                    "idle",
                    channel_count=channel_count,
                    stream_count=STREAM_COUNT,
                    keepalive_ms=KEEPALIVE_MS,
                )
                for channel_count in CHANNEL_COUNTS
            ]
            for process in subscribers:
                cleanup.callback(end, process)
            await asyncio.to_thread(wait_ready, subscribers)
            await becomes_true(lambda: is_stream_count(client, 4 * STREAM_COUNT), "all are there")

            beside = await publish_for(client, LOAD_S)
            p99 = percentile(beside, 99)
            print(f"p99 alone {percentile(alone, 99):.1f} ms, beside 500 streams {p99:.1f} ms")
            assert p99 < max(P99_MS, 5 * percentile(alone, 99))
            await becomes_true(  # the producer's own stream may take a moment to end
                lambda: is_stream_count(client, 4 * STREAM_COUNT), "pings are no offence"
            )
            assert all(process.poll() is None for process in subscribers)

            for process in subscribers[:2]:
                process.kill()
            took_s = await becomes_true(
                lambda: is_stream_count(client, 2 * STREAM_COUNT),
                "killed clients are noticed",
                within_s=KILLED_WITHIN_S * SLACK,
            )
            print(f"killed clients noticed after {took_s:.2f} s")

            subscribers[2].send_signal(Signals.SIGSTOP)
            within_s = (KEEPALIVE_MS + TIMEOUT_MS) / 1_000
            took_s = await becomes_true(
                lambda: is_stream_count(client, STREAM_COUNT),
                "frozen clients are noticed",
                within_s=within_s + SLACK,
            )
            print(f"frozen clients noticed after {took_s:.2f} s")
            assert subscribers[3].poll() is None, "the others are not disturbed"
        await becomes_true(lambda: is_stream_count(client, 0), "all are gone")


async def is_stream_count(client: Client, count: int) -> bool:
    return await open_stream_count(client) == count


async def test_a_client_notices_a_broker_that_freezes(broker, monkeypatch):
    monkeypatch.setattr(connection, "KEEPALIVE_MS", KEEPALIVE_MS)
    monkeypatch.setattr(connection, "KEEPALIVE_TIMEOUT_MS", TIMEOUT_MS)
    async with Client(broker.address) as client:
        await client.admin.create_topic("idle")
        async with client.reader("idle", follow=True) as reader:
            coming = asyncio.ensure_future(anext(reader))
            with structlog.testing.capture_logs() as logs:
                broker.send(Signals.SIGSTOP)
                try:
                    await becomes_true(
                        lambda: any("lost the broker" in entry["event"] for entry in logs),
                        "the reader notices",
                        within_s=(KEEPALIVE_MS + TIMEOUT_MS) / 1_000 + SLACK,
                    )
                finally:
                    broker.send(Signals.SIGCONT)
            async with client.producer("idle") as producer:
                await producer.publish(b"back")
            assert (await coming).value == b"back"


async def test_streams_that_come_and_go_leave_nothing_behind(broker):
    async with Client(broker.address) as client:
        await client.admin.create_topic("idle")
        await open_and_cancel(broker.address, WARM_UP_COUNT)
        await becomes_true(lambda: is_stream_count(client, 0), "the first ones are gone")
        rss, files = rss_bytes(broker.pid), open_file_count(broker.pid)
        await open_and_cancel(broker.address, CANCELLED_COUNT)
        await becomes_true(lambda: is_stream_count(client, 0), "all are gone")
        await becomes_true(
            lambda: open_file_count(broker.pid) <= files * 1.1, "their connections are closed"
        )
        growth = rss_bytes(broker.pid) / rss - 1
        print(f"memory grew by {growth:.1%}")
        assert growth < 0.1


async def open_and_cancel(address: str, count: int) -> None:
    """Opens so many streams, some at once, each with its first response; cancels all."""
    request = FetchRequest(topic="idle", follow=True)
    for _ in range(0, count, 5 * AT_ONCE):
        async with grpc.aio.insecure_channel(
            address, options=[("grpc.use_local_subchannel_pool", 1)]
        ) as channel:
            stub = FetchServiceStub(channel)
            for _ in range(5):
                calls = [stub.Fetch(request) for _ in range(AT_ONCE)]
                await asyncio.gather(*(call.read() for call in calls))
                for call in calls:
                    call.cancel()
