"""C28, C26: after a kill a group goes on exactly behind what it settled, and starts quickly."""

import time

import grpc
import pytest

from logbroker.testing.running_broker import BrokerProcess
from logbroker.v1.group_service_pb2 import Commit, CommitOffsetsRequest, GetOffsetsRequest
from logbroker.v1.topic_service_pb2 import CreateTopicRequest
from tests.server.calls import stubs_of
from tests.server.members import member_of, publish

pytestmark = pytest.mark.slow
START_S = 5
"""More than a broker takes that has nothing to remember."""


async def test_only_what_was_not_acknowledged_comes_again_after_a_kill(tmp_path):
    with BrokerProcess(tmp_path / "data") as broker:
        async with grpc.aio.insecure_channel(broker.address) as channel:
            calls = stubs_of(channel)
            await calls.topics.CreateTopic(CreateTopicRequest(topic="a", partition_count=1))
            await publish(calls, *(b"%d" % number for number in range(1, 11)))
            member = await member_of(calls)
            delivered = await member.delivery()
            for number in (1, 2, 3, 5, 7):
                await member.settle(delivered, first=number - 1, end=number)
            broker.kill()
        broker.start()
        async with grpc.aio.insecure_channel(broker.address) as channel:
            member = await member_of(stubs_of(channel))
            found = await member.take(5)
            values = [int(value) for each in found for value in each.values]
            assert values == [4, 6, 8, 9, 10]
            assert {number for each in found for number in each.numbers} == {2}


async def test_a_group_that_began_at_the_latest_gets_what_is_written_while_it_is_away(tmp_path):
    from logbroker.v1.group_pb2 import GroupStart

    with BrokerProcess(tmp_path / "data") as broker:
        async with grpc.aio.insecure_channel(broker.address) as channel:
            calls = stubs_of(channel)
            await calls.topics.CreateTopic(CreateTopicRequest(topic="a", partition_count=1))
            await publish(calls, *[b"old"] * 100)
            member = await member_of(calls, start=GroupStart(latest=True))
            await member.until(lambda: member.caught_up)
            member.vanish()
            await publish(calls, *[b"new"] * 5)
            member = await member_of(calls, start=GroupStart(latest=True))
            assert (await member.delivery()).records == [(at, b"new") for at in range(100, 105)]


async def test_a_start_after_a_hundred_thousand_commits_is_quick(tmp_path):
    with BrokerProcess(tmp_path / "data") as broker:
        async with grpc.aio.insecure_channel(broker.address) as channel:
            calls = stubs_of(channel)
            await calls.topics.CreateTopic(CreateTopicRequest(topic="a", partition_count=1))
            await publish(calls, *[b"v"] * 1_000)
            for _ in range(100):
                commits = [Commit(topic="a", offset=offset) for offset in range(1, 1_001)]
                request = CommitOffsetsRequest(group="g", commits=commits)
                await calls.groups.CommitOffsets(request)
        broker.kill()
        assert seconds_to_start(broker) - seconds_of_an_empty_one(tmp_path) < START_S
        async with grpc.aio.insecure_channel(broker.address) as channel:
            [found] = (
                await stubs_of(channel).groups.GetOffsets(GetOffsetsRequest(group="g"))
            ).progress
            assert found.committed_offset == 1_000
        files = [file for file in (tmp_path / "data").rglob("*") if file.is_file()]
        assert sum(file.stat().st_blocks for file in files) * 512 < 64 << 20


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
