"""C23: lag is what a group would get, of one moment, and never negative."""

import asyncio
import json
from pathlib import Path

import pytest
from server.calls import serving
from server.members import member_on, publish

from cases.commands import output_of
from cases.grouped import group_of
from logbroker.client import Client
from logbroker.testing.clock import ManualClock
from logbroker.testing.running_broker import BrokerProcess
from logbroker.v1 import group_service_pb2 as pb
from logbroker.v1.topic_service_pb2 import TrimTopicRequest


@pytest.mark.slow
async def test_c23a_lag_is_right_at_every_moment_and_api_and_cli_agree(tmp_path):
    with BrokerProcess(Path(tmp_path) / "data") as broker:
        async with Client(broker.address) as client:
            await client.admin.create_topic("a")
            await client.admin.create_group("g")
            stop = asyncio.Event()

            async def produce() -> None:
                async with client.producer("a", linger_ms=0) as producer:
                    while not stop.is_set():
                        await producer.publish(b"v")

            async def consume() -> None:
                async with client.consumer("g", "a") as consumer:
                    async for _ in consumer:
                        await consumer.commit()
                        if stop.is_set():
                            return

            async with asyncio.TaskGroup() as tasks:
                consuming = tasks.create_task(consume())
                producing = tasks.create_task(produce())
                seen, has_committed = 0, False
                while seen < 200 or not has_committed:
                    for one in await client.admin.get_offsets("g", "a"):
                        seen += 1
                        has_committed = one.committed_offset is not None
                        reached = max(one.committed_offset or 0, one.log_start_offset)
                        assert 0 <= one.lag <= one.high_watermark - reached
                        assert one.age_ms >= 0
                        assert one.lag or not one.age_ms
                stop.set()
                await producing
                consuming.cancel()
            [told] = await client.admin.get_offsets("g", "a")
            shown = output_of("group", "describe", "g", "-o", "json", server=broker.address)
            [row] = json.loads(shown)["progress"]
            for field in ("lag", "high_watermark", "committed_offset"):
                assert int(row[field]) == getattr(told, field)


async def test_c23b_a_group_whose_records_all_expired_has_no_lag():
    async with serving(partition_count=1) as calls:
        for _ in range(10):
            await publish(calls, *[b"v"] * 100)
        one = pb.Commit(topic="a", partition=0, offset=100)
        await calls.groups.CommitOffsets(pb.CommitOffsetsRequest(group="g", commits=[one]))
        await calls.topics.TrimTopic(TrimTopicRequest(topic="a", partition=0, offset=1_000))
        [found] = (await group_of(calls)).progress
        assert (found.log_start_offset, found.high_watermark) == (1_000, 1_000)
        assert (found.lag, found.age_ms) == (0, 0)


async def test_c23cde_without_a_commit_lag_counts_from_the_start_and_nothing_is_left_out():
    clock = ManualClock()
    async with (
        serving(partition_count=2, clock=clock) as calls,
        member_on(calls, limits=0),
    ):
        await publish(calls, *[b"v"] * 50)
        await clock.advance(1_500)
        first, second = (await group_of(calls)).progress
        assert not first.HasField("committed_offset"), "none, not 0"
        assert (first.lag, first.age_ms) == (50, 1_500)
        assert not second.HasField("committed_offset")
        assert (second.high_watermark, second.lag, second.age_ms) == (0, 0, 0)
        assert first.member_id, "assigned, and nothing consumed"
        assert first.member_id == second.member_id
