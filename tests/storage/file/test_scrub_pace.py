"""How much the scrub may read in a time."""

import asyncio
import random

import pytest

from logbroker.storage.file.scrub_pace import ScrubPace
from logbroker.testing.clock import ManualClock


@pytest.mark.parametrize("rate", [1, 1_000, 8 << 20])
async def test_never_more_than_the_rate_allows_and_one_reading(rate):
    clock, chance = ManualClock(), random.Random(rate)
    pace = ScrubPace(clock, rate)
    noted = []

    async def read():
        while True:
            await pace.wait_turn()
            size = chance.randint(1, 2 * rate)
            noted.append(size)
            pace.note(size)

    task = asyncio.create_task(read())
    while clock.monotonic_ms() < 60_000:
        await clock.advance(chance.choice([1, 40, 900]))
        before_last = sum(noted[:-1])
        assert before_last <= rate * clock.monotonic_ms() / 1_000
    task.cancel()
    assert pace.total_bytes == sum(noted)
    assert sum(noted) >= rate * 57  # nor much less


async def test_tiny_batches_count_for_more_than_their_bytes():
    clock = ManualClock()
    pace = ScrubPace(clock, 1 << 20)
    pace.note(64 << 10, batch_count=1 << 10)
    turn = asyncio.create_task(pace.wait_turn())
    await clock.advance(999)
    assert not turn.done()
    await clock.advance(1)
    assert turn.done()
    assert pace.total_bytes == 64 << 10


async def test_time_that_went_unused_is_not_made_up_for():
    clock = ManualClock()
    pace = ScrubPace(clock, 1_000)
    pace.note(1_000)
    await clock.advance(3_600_000)
    await pace.wait_turn()
    pace.note(1_000)
    turn = asyncio.create_task(pace.wait_turn())
    await clock.advance(999)
    assert not turn.done()
    await clock.advance(1)
    assert turn.done()
