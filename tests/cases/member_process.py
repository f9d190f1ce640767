"""A process of members of one group, which a test kills and stops; by the generated stubs alone.

    python -m cases.member_process ADDRESS GROUP TOPIC STREAM_COUNT POLL_COUNT

`STREAM_COUNT` Consume streams with room for one record each, which settle nothing, and
`POLL_COUNT` Lease calls that wait. Says `ready` once all streams have joined and the calls are
sent, and then, for each record that comes, `got <offset>`.
"""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import grpc

from logbroker.v1 import consume_service_pb2 as pb
from logbroker.v1.consume_service_pb2_grpc import ConsumeServiceStub

TESTS = Path(__file__).parents[1]
STREAMS_PER_CHANNEL = 5
WAIT_MS = 60_000


def start_members(
    address: str, group: str, topic: str, *, stream_count: int = 0, poll_count: int = 0
) -> subprocess.Popen[str]:
    """Starts such a process."""
    arguments = [address, group, topic, str(stream_count), str(poll_count)]
    return subprocess.Popen(
        [sys.executable, "-m", "cases.member_process", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)])},
    )


def wait_said(process: subprocess.Popen[str], *lines: str) -> None:
    """Returns once the process has said these lines, in this order."""
    assert process.stdout
    for line in lines:
        said = process.stdout.readline().strip()
        assert said == line, f"{said!r}, not {line!r}"


def end(process: subprocess.Popen[str]) -> None:
    """Kills it, if it is there."""
    process.kill()
    process.wait()
    assert process.stdout
    process.stdout.close()


def say_offsets(batches) -> None:
    for batch in batches:
        deltas = batch.offset_span and range(batch.offset_span)
        for delta in deltas:
            print(f"got {batch.base_offset + delta}", flush=True)


async def _consume(call: grpc.aio.StreamStreamCall) -> None:
    while (response := await call.read()) is not grpc.aio.EOF:
        say_offsets(response.batches)


async def _open(stub: ConsumeServiceStub, group: str, topic: str) -> grpc.aio.StreamStreamCall:
    call = stub.Consume()
    limits = pb.FlowLimits(max_outstanding_records=1)
    opening = pb.OpenConsume(group=group, topics=[topic], limits=limits)
    await call.write(pb.ConsumeRequest(open=opening))
    await call.read()
    return call


async def _poll(stub: ConsumeServiceStub, group: str, topic: str) -> None:
    request = pb.LeaseRequest(group=group, topics=[topic], wait_ms=WAIT_MS)
    response = await stub.Lease(request)
    say_offsets(response.batches)
    await asyncio.Event().wait()  # it holds what it has


async def _main(address: str, group: str, topic: str, streams: int, polls: int) -> None:
    options = [("grpc.use_local_subchannel_pool", 1)]
    count = (streams + polls) // STREAMS_PER_CHANNEL + 1
    channels = [grpc.aio.insecure_channel(address, options=options) for _ in range(count)]
    stubs = [ConsumeServiceStub(channels[at % count]) for at in range(streams + polls)]
    calls = await asyncio.gather(*(_open(one, group, topic) for one in stubs[:streams]))
    polling = [asyncio.ensure_future(_poll(one, group, topic)) for one in stubs[streams:]]
    await asyncio.sleep(0)
    print("ready", flush=True)
    await asyncio.gather(*map(_consume, calls), *polling)


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:4], *map(int, sys.argv[4:])))
