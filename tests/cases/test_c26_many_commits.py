"""C26: as many commits as one likes: the store stays bounded, and the next start is quick."""

import time

import pytest
from server.members import publish

from cases.grouped import calls_to, make_topic
from logbroker.testing.running_broker import BrokerProcess
from logbroker.v1.group_service_pb2 import Commit, CommitOffsetsRequest, GetOffsetsRequest

pytestmark = pytest.mark.slow
START_S = 5
"""More than a broker takes that has nothing to remember."""
STORE_BYTES = 64 << 20


async def test_c26_a_start_after_a_hundred_thousand_commits_is_quick_and_the_store_is_bounded(
    tmp_path,
):
    with BrokerProcess(tmp_path / "data") as broker:
        async with calls_to(broker.address) as calls:
            await make_topic(calls)
            await publish(calls, *[b"v"] * 1_000)
            for _ in range(100):
                commits = [Commit(topic="a", offset=offset) for offset in range(1, 1_001)]
                request = CommitOffsetsRequest(group="g", commits=commits)
                await calls.groups.CommitOffsets(request)
        broker.kill()
        assert seconds_to_start(broker) - seconds_of_an_empty_one(tmp_path) < START_S
        async with calls_to(broker.address) as calls:
            [found] = (await calls.groups.GetOffsets(GetOffsetsRequest(group="g"))).progress
            assert found.committed_offset == 1_000
        files = [file for file in (tmp_path / "data").rglob("*") if file.is_file()]
        assert sum(file.stat().st_blocks for file in files) * 512 < STORE_BYTES


def seconds_of_an_empty_one(tmp_path):
    broker = BrokerProcess(tmp_path / "empty")
    try:
        return seconds_to_start(broker)
    finally:
        broker.kill()


def seconds_to_start(broker):
    began = time.monotonic()
    broker.start()
    return time.monotonic() - began
