"""C23: lag is what a group would get, of one moment, and never negative."""

import asyncio
import json
from pathlib import Path

import pytest
from server.calls import serving
from server.members import member_on, publish

from cases.commands import Ended, many
from cases.effort import effort
from cases.grouped import group_of
from logbroker.client import Client
from logbroker.testing.clock import ManualClock
from logbroker.testing.running_broker import BrokerProcess
from logbroker.v1 import group_service_pb2 as pb
from logbroker.v1.topic_service_pb2 import TrimTopicRequest

FIELDS = ("lag", "committed_offset", "log_start_offset", "high_watermark", "age_ms")
DESCRIBE = ["group", "describe", "g", "-o", "json"]
WATCH = ["group", "watch", "g", "--count", "1", "-o", "json"]
LIST = ["group", "list", "-o", "json"]


def check(lag: int, committed: int, start: int, end: int, age_ms: int) -> None:
    """AssertionError unless these are of one moment."""
    assert start <= end
    assert committed <= end
    assert 0 <= lag <= end - max(committed, start)
    assert age_ms >= 0
    assert lag or not age_ms


def row_of(ended: Ended) -> dict[str, str]:
    """Returns the progress that a command has told of: one partition's."""
    assert ended.code == 0, ended.stderr
    [row] = json.loads(ended.stdout)["progress"]
    return row


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
                        check(*(getattr(one, field) or 0 for field in FIELDS))
                commands = [DESCRIBE, WATCH] * effort(10, 100)
                shown = await asyncio.to_thread(many, commands, server=broker.address)
                stop.set()
                await producing
                consuming.cancel()
            lags = []
            for row in map(row_of, shown):
                check(*(int(row[field]) for field in FIELDS))
                lags.append(int(row["lag"]))
            print(f"lags that the command has seen: {min(lags)} to {max(lags)}")
            [told] = await client.admin.get_offsets("g", "a")
            described, watched, listed = many([DESCRIBE, WATCH, LIST], server=broker.address)
            for row in (row_of(described), row_of(watched)):
                for field in ("lag", "high_watermark", "committed_offset", "log_start_offset"):
                    assert int(row[field]) == getattr(told, field)
            assert int(json.loads(listed.stdout)["lag"]) == told.lag


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
        as_json, as_table = await asyncio.to_thread(
            many, [DESCRIBE, ["group", "describe", "g"]], server=calls.address
        )
        shown = json.loads(as_json.stdout)["progress"]
        assert [one["committed_offset"] for one in shown] == [None, None]
        assert [int(one["lag"]) for one in shown] == [50, 0]
        assert as_table.code == 0
        assert "none" in as_table.stdout, "said to people too"
