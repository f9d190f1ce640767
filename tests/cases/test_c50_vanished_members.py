"""C50: members and waiting calls whose processes die or freeze; streams that come and go."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from signal import SIGSTOP

import grpc
import pytest
from server.calls import stubs_of
from server.members import TestMember, member_on, publish

from cases.effort import IS_FULL, effort
from cases.grouped import calls_to, check_nothing_left, group_of, make_topic, settle_each
from cases.member_process import end, start_members, wait_said
from cases.watching import becomes_true, open_file_count, rss_bytes
from logbroker.testing.running_broker import BrokerProcess
from logbroker.v1 import consume_service_pb2 as pb
from logbroker.v1 import group_pb2
from logbroker.v1.broker_service_pb2 import GetStatsRequest
from logbroker.v1.group_service_pb2 import CreateGroupRequest

STREAMS = effort(5, 25)
"""Of each process of members."""
PROCESSES = 4
KEEPALIVE_MS = effort(1_000, 10_000)
"""Of the broker; in full the defaults."""
TIMEOUT_MS = effort(1_000, 5_000)
KILLED_WITHIN_S = 2
SLACK = 3
"""This machine has other work too."""
LEASE_MS = 1_500
"""Shorter than it takes to notice that a peer is frozen."""
CYCLED_COUNT = effort(1_000, 5_000)
WARM_UP_COUNT = effort(500, 2_000)
AT_ONCE = 50

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300 if IS_FULL else 120)]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    settings = ["--set", f"listen.keepalive_ms={KEEPALIVE_MS}"]
    settings += ["--set", f"listen.keepalive_timeout_ms={TIMEOUT_MS}"]
    with BrokerProcess(tmp_path / "data", *settings) as started:
        yield started


@asynccontextmanager
async def group_on(broker: BrokerProcess, **settings) -> AsyncIterator:
    """Yields stubs; there is a topic `a`, and a group `g` without an order."""
    async with calls_to(broker.address) as calls:
        await make_topic(calls)
        given = {"order": group_pb2.ORDER_NONE, "retry_initial_ms": 1, "retry_max_ms": 1}
        made = group_pb2.GroupSettings(**{**given, **settings})
        await calls.groups.CreateGroup(CreateGroupRequest(group="g", settings=made))
        yield calls


async def has_members(calls, count: int) -> bool:
    return len((await group_of(calls)).members) == count


async def has_leased(calls, count: int) -> bool:
    [one] = (await group_of(calls)).progress
    return one.leased_count == count


async def settle_all(member: TestMember, count: int) -> dict[int, float]:
    """Settles so many records; returns when each came, by its offset."""
    came: dict[int, float] = {}
    while len(came) < count:
        held = await member.delivery()
        came |= dict.fromkeys(held.offsets, time.monotonic())
        await settle_each(member, held)
    return came


async def test_what_killed_and_frozen_members_held_comes_again_and_others_keep_theirs(broker):
    async with group_on(broker, lease_ms=3_600_000) as calls:
        count = PROCESSES * STREAMS
        await publish(calls, *(b"%d" % number for number in range(count)))
        with ExitStack() as cleanup:
            processes = []
            for at in range(PROCESSES):  # one after another: each holds a run of offsets
                process = start_members(broker.address, "g", "a", stream_count=STREAMS)
                cleanup.callback(end, process)
                await asyncio.to_thread(wait_said, process, "ready")
                held = (at + 1) * STREAMS
                await becomes_true(
                    lambda held=held: has_leased(calls, held), "each member has its record"
                )
                processes.append(process)
            assert await has_members(calls, count)

            async with member_on(calls) as member:
                for process in processes[:2]:
                    process.kill()
                killed = time.monotonic()
                left = count - 2 * STREAMS + 1
                took_s = await becomes_true(
                    lambda: has_members(calls, left),
                    "killed members are noticed",
                    within_s=KILLED_WITHIN_S * SLACK,
                )
                came = await settle_all(member, 2 * STREAMS)
                assert sorted(came) == list(range(2 * STREAMS))
                again_s = max(came.values()) - killed
                print(f"killed: noticed after {took_s:.2f} s, all came again after {again_s:.2f} s")
                assert again_s < KILLED_WITHIN_S * SLACK

                processes[2].send_signal(SIGSTOP)
                stopped = time.monotonic()
                await becomes_true(
                    lambda: has_members(calls, STREAMS + 1),
                    "frozen members are noticed, and no others",
                    within_s=(KEEPALIVE_MS + TIMEOUT_MS) / 1_000 + SLACK,
                )
                came = await settle_all(member, STREAMS)
                assert sorted(came) == list(range(2 * STREAMS, 3 * STREAMS))
                again_s = max(came.values()) - stopped
                print(f"frozen: all came again after {again_s:.2f} s")
                assert again_s < (KEEPALIVE_MS + TIMEOUT_MS) / 1_000 + 2 * SLACK
                [one] = (await group_of(calls)).progress
                assert (one.leased_count, one.lag) == (STREAMS, STREAMS)


@pytest.mark.parametrize("kind", ["stream", "poll"])
@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "frozen"])
async def test_a_record_sent_into_a_dead_stream_or_poll_comes_again_no_later_than_its_lease(
    tmp_path, kind, is_killed
):
    """The broker may not notice in this time: what counts is the lease."""
    patient = ("--set", "listen.keepalive_ms=60000")
    with BrokerProcess(tmp_path / "data", *patient) as broker, ExitStack() as cleanup:
        async with group_on(broker, lease_ms=LEASE_MS) as calls:
            process = start_members(broker.address, "g", "a", **{f"{kind}_count": 1})
            cleanup.callback(end, process)
            await asyncio.to_thread(wait_said, process, "ready")
            if kind == "poll":
                await becomes_true(lambda: open_streams(calls, 1), "the call waits")
            if is_killed:
                process.kill()
            else:
                process.send_signal(SIGSTOP)
            sent = time.monotonic()
            await publish(calls, b"0")
            async with member_on(calls) as member:
                [(offset, came)] = (await settle_all(member, 1)).items()
                took_s = came - sent
                print(f"came to another one after {took_s:.2f} s, its lease being {LEASE_MS} ms")
                assert offset == 0
                assert took_s < LEASE_MS / 1_000 + SLACK
            await check_nothing_left(calls)


async def open_streams(calls, count: int) -> bool:
    return (await calls.about.GetStats(GetStatsRequest())).open_stream_count == count


@pytest.mark.parametrize(
    "order", [group_pb2.ORDER_PARTITION, group_pb2.ORDER_NONE], ids=["partition", "none"]
)
async def test_members_that_come_and_go_leave_nothing_behind(broker, order):
    async with group_on(broker, order=order) as calls:
        await publish(calls, *[b"v"] * 100)
        await open_and_cancel(broker.address, WARM_UP_COUNT)
        await becomes_true(lambda: has_members(calls, 0), "the first ones are gone")
        rss, files = rss_bytes(broker.pid), open_file_count(broker.pid)
        await open_and_cancel(broker.address, CYCLED_COUNT)
        await becomes_true(lambda: has_members(calls, 0), "all are gone")
        await becomes_true(
            lambda: open_file_count(broker.pid) <= files * 1.1, "their connections are closed"
        )
        growth = rss_bytes(broker.pid) / rss - 1
        print(f"memory grew by {growth:.1%} with {CYCLED_COUNT} members")
        assert growth < 0.1
        await becomes_true(lambda: has_leased(calls, 0), "none is leased")
        assert await open_streams(calls, 0)
        await publish(calls, b"last")
        async with member_on(calls) as member:
            while b"last" not in (held := await member.delivery()).values:
                await settle_each(member, held)
            await settle_each(member, held)
        await check_nothing_left(calls)


async def open_and_cancel(address: str, count: int) -> None:
    """Opens so many members, some at once, each with its first response; cancels all."""
    opening = pb.OpenConsume(group="g", topics=["a"])
    for _ in range(0, count, 5 * AT_ONCE):
        async with grpc.aio.insecure_channel(
            address, options=[("grpc.use_local_subchannel_pool", 1)]
        ) as channel:
            consume = stubs_of(channel).consume
            for _ in range(5):
                calls = [consume.Consume() for _ in range(AT_ONCE)]
                await asyncio.gather(
                    *(call.write(pb.ConsumeRequest(open=opening)) for call in calls)
                )
                await asyncio.gather(*(call.read() for call in calls))
                for call in calls:
                    call.cancel()
