"""Groups on a real disk that is full: nothing confirmed is lost, and they go on by themselves."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace

import grpc
import pytest
from cases.grouped import calls_to, letters_of
from cases.small_disk import SmallDisk
from server.members import ACK, REJECT

from crash.scene import GROUP, Records, comes_true, lease, leased, make_group
from logbroker.testing.running_broker import BrokerProcess
from logbroker.v1 import consume_service_pb2 as pb
from logbroker.wire.status import error_of

COUNT = 2_000
REFUSED_IN_ROW = 5
"""A small one may still find room where a larger one did not."""
REASON = "r" * 1_000
"""Fills the journal, which has room made in advance, with fewer settlements."""


@asynccontextmanager
async def broker_on(disk: SmallDisk) -> AsyncIterator[tuple[SimpleNamespace, BrokerProcess]]:
    """Yields stubs for a broker on the disk and its process, which gets SIGKILL at the end."""
    broker = BrokerProcess(disk.mount_point / "data", run_under=disk.run_under)
    await asyncio.to_thread(broker.start)
    try:
        async with calls_to(broker.address) as calls:
            yield calls, broker
    finally:
        broker.kill()


async def refusal_of(calls, token: int, offset: int, outcome: int) -> str:
    """Settles one record; returns why that is refused, nothing if it is not."""
    one = pb.Settlement(
        token=token, first_offset=offset, end_offset=offset + 1, outcome=outcome, reason=REASON,
        delay_ms=0 if outcome == pb.OUTCOME_RETRY else None,
    )  # fmt: skip
    request = pb.SettleRequest(group=GROUP, settlements=[one])
    try:
        [result] = (await calls.consume.Settle(request, timeout=30)).results
    except grpc.aio.AioRpcError as failure:
        return error_of(failure).reason
    return result.error.reason


async def settled_until_full(calls, token: int, offset: int) -> set[int]:
    """Acknowledges one record after another until none is taken; returns those that were."""
    done: set[int] = set()
    refused = 0
    while refused < REFUSED_IN_ROW:
        reason = await refusal_of(calls, token, offset, ACK)
        assert reason in {"", "DISK_FULL"}, f"{reason} at {offset}"
        refused = refused + 1 if reason else 0
        if not reason:
            done.add(offset)
        offset += 1
        assert offset < COUNT, "the disk is not full"
    return done


def left_of(records: Records, done: set[int]) -> set[bytes]:
    """Returns the values of the records that are not settled."""
    return {value for offset, value in records.acked.items() if offset not in done}


@pytest.mark.slow
async def test_settlements_on_a_full_disk_are_refused_or_kept_and_go_on_by_themselves(tmp_path):
    records = Records()
    with SmallDisk(tmp_path / "disk") as disk:
        async with broker_on(disk) as (calls, _):
            await records.make(calls, 0, segment_bytes=1 << 20)
            await records.publish_many(calls, COUNT)
            await make_group(calls)
            token = (await lease(calls, COUNT)).delivery.token
            assert not await refusal_of(calls, token, 0, REJECT)
            await comes_true(lambda: _is_written(calls), "the dead letter is written")
            disk.fill()
            done = {0} | await settled_until_full(calls, token, 1)
            await records.check(calls)

            # with room it goes on by itself, under the same lease
            disk.free()
            next_offset = max(done) + 1
            await comes_true(
                lambda: _is_taken(calls, token, next_offset), "settlements are taken again"
            )
            done.add(next_offset)
            disk.fill()
            done |= await settled_until_full(calls, token, next_offset + 1)

        async with broker_on(disk) as (calls, _):  # killed, and started on the full disk
            await records.check(calls)
            assert set(await leased(calls)) == left_of(records, done)
            disk.free()
        async with broker_on(disk) as (calls, _):
            assert set(await leased(calls)) == left_of(records, done)
            assert await _is_written(calls)


async def _is_written(calls) -> bool:
    return [one.source_offset for one in await letters_of(calls)] == [0]


async def _is_taken(calls, token: int, offset: int) -> bool:
    return not await refusal_of(calls, token, offset, ACK)
