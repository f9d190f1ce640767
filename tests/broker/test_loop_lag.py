"""How late the event loop is."""

import asyncio
import random
import time

import pytest
from cases.watching import becomes_true

from logbroker.broker.loop_lag import EVERY_MS, KEPT_MS, LoopLag
from logbroker.clock import SystemClock
from logbroker.testing.clock import ManualClock


async def test_a_loop_that_is_on_time_has_no_lag():
    clock = ManualClock()
    lag = LoopLag(clock)
    assert lag.worst_ms == 0
    task = asyncio.create_task(lag.run())
    await clock.advance(60_000)
    assert lag.worst_ms == 0
    task.cancel()


@pytest.mark.parametrize("seed", range(5))
async def test_the_greatest_of_the_last_ten_seconds_counts(seed):
    chance, clock, noted = random.Random(seed), ManualClock(), []
    lag = LoopLag(clock)
    for _ in range(400):
        late_ms = chance.choice([0, 0, 1, chance.randint(0, 300)])
        await clock.advance(EVERY_MS + late_ms)
        lag.note(clock.monotonic_ms(), clock.monotonic_ms() - late_ms)
        noted.append((clock.monotonic_ms(), late_ms))
        begin = clock.monotonic_ms() - KEPT_MS
        assert lag.worst_ms == max(late for at, late in noted if at >= begin)
    await clock.advance(KEPT_MS + 1)
    assert lag.worst_ms == 0


@pytest.mark.slow
async def test_a_step_that_blocks_the_loop_shows():
    lag = LoopLag(SystemClock())
    task = asyncio.create_task(lag.run())
    await asyncio.sleep(0)
    _block()
    await becomes_true(lambda: lag.worst_ms > 0, "it shows")
    assert lag.worst_ms >= 190
    task.cancel()


def _block() -> None:
    time.sleep(0.3)
