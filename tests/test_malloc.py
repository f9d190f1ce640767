"""What a burst has left behind goes back to the system, once and at rest."""

import asyncio
import platform
import resource

import pytest

from logbroker.malloc import LOOK_MS, give_back, give_back_at_rest
from logbroker.testing.clock import ManualClock


async def test_it_gives_back_once_each_time_it_comes_to_rest():
    clock, used, given = ManualClock(), [0.0], []

    async def give():
        given.append(used[0])

    async def pass_time(*, busy_s):
        used[0] += busy_s
        await clock.advance(LOOK_MS)

    giving = asyncio.create_task(give_back_at_rest(clock, used_s=lambda: used[0], give=give))
    await clock.advance(0)
    for busy_s in (1.5, 2.0):
        await pass_time(busy_s=busy_s)
    assert given == [], "it is busy"
    await pass_time(busy_s=0.01)
    assert given == [3.51]
    for _ in range(3):
        await pass_time(busy_s=0.01)
    assert given == [3.51], "it has given already"
    await pass_time(busy_s=0.5)
    await pass_time(busy_s=0)
    assert given == [3.51, pytest.approx(4.04)]
    giving.cancel()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is glibc's memory")
def test_freed_memory_goes_back():
    kept = [bytes(3_000) for _ in range(20_000)]
    last = [kept[-1]]
    before = resident_bytes()
    del kept
    give_back()
    assert resident_bytes() < before - 40_000_000
    assert last


def resident_bytes():
    """Returns the memory of this process that is in use."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()
