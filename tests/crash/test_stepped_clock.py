"""A wall clock that jumps by hours, back and forth, under load."""

import asyncio
import time
from types import SimpleNamespace

import pytest
from server.members import ACK

from crash.child import Plan
from crash.doomed_broker import DoomedBroker, restarted
from crash.scene import GROUP, TOPIC, Records, lease, make_group, partition_of, settle
from logbroker.v1 import consume_service_pb2 as pb
from logbroker.v1.fetch_service_pb2 import FetchRequest
from logbroker.v1.topic_pb2 import TopicSettings
from logbroker.v1.topic_service_pb2 import UpdateTopicRequest

HOUR_MS = 3_600_000
STEPS_H = (-3, 5, -2, 12, -24, 1, 11, -6, 20, -20)
RETENTION_MS = 24 * HOUR_MS
BACKOFF_MS = 1_500
CHECK_INTERVAL_MS = 20
AHEAD_H = max(sum(STEPS_H[: count + 1]) for count in range(len(STEPS_H)))
assert AHEAD_H * HOUR_MS < RETENTION_MS, "what is appended stays, whatever the clock says"


async def append_times(calls) -> list[int]:
    """Returns those of all batches, in their order."""
    return [
        batch.append_time_ms
        async for response in calls.fetch.Fetch(FetchRequest(topic=TOPIC))
        for batch in response.batches
    ]


async def write_for(records: Records, calls, ms: int) -> None:
    """Publishes one record after another for so long, one at least."""
    until_s = time.monotonic() + ms / 1_000
    while True:
        await records.publish(calls, 1)
        if time.monotonic() > until_s:
            return


@pytest.mark.slow
async def test_append_times_never_fall_and_retention_takes_nothing_early(tmp_path):
    records = Records()
    plan = Plan(data_dir=tmp_path / "data", check_interval_ms=CHECK_INTERVAL_MS)
    async with DoomedBroker(plan) as broker:
        calls = broker.calls
        await records.make(calls, 10)
        settings = TopicSettings(retention_ms=RETENTION_MS)
        await calls.topics.UpdateTopic(UpdateTopicRequest(topic=TOPIC, settings=settings))
        for hours in STEPS_H:
            writing = asyncio.create_task(write_for(records, calls, 5 * CHECK_INTERVAL_MS))
            await broker.step_wall(hours * HOUR_MS)
            await writing
        times = await append_times(calls)
        assert times == sorted(times)
        assert times[-1] - times[0] >= (AHEAD_H - 1) * HOUR_MS, "the clock was ahead"
        assert (await partition_of(calls, TOPIC)).log_start_offset == 0
        await records.check(calls)
        await broker.kill()
    async with restarted(tmp_path / "data") as calls:  # its clock is hours behind the last batch
        await records.publish(calls, 3)
        times = await append_times(calls)
        assert times == sorted(times)
        assert (await partition_of(calls, TOPIC)).log_start_offset == 0
        await records.check(calls)


@pytest.mark.slow
async def test_leases_and_back_offs_run_on_the_other_clock(tmp_path):
    records = Records()
    async with DoomedBroker(Plan(data_dir=tmp_path / "data")) as broker:
        calls = broker.calls
        await records.make(calls, 3)
        await make_group(calls)
        held = (await lease(calls, 1)).delivery
        failed = (await lease(calls, 1)).delivery
        await broker.step_wall(10 * HOUR_MS)
        began_s = time.monotonic()
        await retry(calls, failed.token, failed.ranges[0].first_offset)
        for hours in (10, -40, 25):
            await broker.step_wall(hours * HOUR_MS)
            found = await lease(calls)
            is_early = time.monotonic() - began_s < BACKOFF_MS / 1_000
            offsets = [run.first_offset for run in found.delivery.ranges]
            assert not is_early or failed.ranges[0].first_offset not in offsets
            assert held.ranges[0].first_offset not in offsets
            if not is_early:
                break
        await until_delivered(calls, failed.ranges[0].first_offset)
        assert time.monotonic() - began_s >= BACKOFF_MS / 1_000
        # hours have passed and have not, and the first lease is as good as it was
        await settle(calls, held.token, held.ranges[0].first_offset, 1, ACK)


async def retry(calls, token: int, offset: int) -> None:
    one = pb.Settlement(
        token=token, first_offset=offset, end_offset=offset + 1, outcome=pb.OUTCOME_RETRY,
        delay_ms=BACKOFF_MS,
    )  # fmt: skip
    [result] = (
        await calls.consume.Settle(pb.SettleRequest(group=GROUP, settlements=[one]))
    ).results
    assert not result.HasField("error"), result


async def until_delivered(calls: SimpleNamespace, offset: int) -> None:
    """Returns once the record is delivered again."""
    request = pb.LeaseRequest(group=GROUP, topics=[TOPIC], max_records=9, wait_ms=50_000)
    while True:
        runs = (await calls.consume.Lease(request, timeout=60)).delivery.ranges
        assert runs, "the back-off is over, and nothing comes"
        if any(run.first_offset <= offset < run.end_offset for run in runs):
            return
