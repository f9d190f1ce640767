"""A member leaves: in order, and soon where there is nobody to tell."""

import asyncio
from collections.abc import Callable
from typing import Any

import grpc.aio
import pytest
import structlog

from client.fake_group import fake_group
from logbroker.testing.clock import ManualClock


async def turns_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110  # of a network, too
            await asyncio.sleep(0)


async def unanswered(request: object) -> None:
    """What a broker does that hangs."""


async def test_a_member_that_has_lost_the_broker_leaves_at_once():
    clock = ManualClock()
    with structlog.testing.capture_logs() as logs:
        async with fake_group(clock=clock) as (group, client):
            consumer = await client.consumer("g", "t").open()
            (await group.member()).end()
            lost = "member lost the broker, joins again when it is back"
            await turns_until(lambda: lost in [one["event"] for one in logs])
            closing = asyncio.create_task(consumer.close())
            await turns_until(closing.done)  # without the clock
            await closing


async def test_a_broker_that_does_not_answer_is_waited_for_as_long_as_is_said():
    clock = ManualClock()
    async with fake_group(clock=clock) as (group, client):
        consumer = await client.consumer("g", "t").open()
        (await group.member()).take = unanswered  # type: ignore[method-assign]
        closing = asyncio.create_task(consumer.close(timeout_ms=1_000))
        await clock.advance(999)
        assert not closing.done()
        await clock.advance(1)
        await turns_until(closing.done)
        await closing


async def test_a_stream_that_breaks_as_a_member_leaves_is_no_fault_of_ours(
    monkeypatch: pytest.MonkeyPatch,
):
    with structlog.testing.capture_logs() as logs:
        async with fake_group() as (group, client):
            consumer = await client.consumer("g", "t").open()
            member = await group.member()
            member.take = unanswered  # type: ignore[method-assign]

            async def done_writing(_: Any) -> None:
                member.end()
                raise grpc.aio.InternalError('Failed "execute_batch": (SendCloseFromClient,)')

            monkeypatch.setattr(grpc.aio._call.StreamStreamCall, "done_writing", done_writing)
            await consumer.close()
    assert [one for one in logs if one["log_level"] == "error"] == []
