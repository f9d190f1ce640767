"""How far a partition may be read, and who waits for it to move."""

import asyncio

import pytest

from logbroker.errors import UnavailableError
from logbroker.storage.high_watermark import HighWatermark
from logbroker.storage.refusals import closed


def test_those_it_has_passed_wake_and_the_others_wait():
    async def test():
        mark = HighWatermark(5)
        await mark.wait_beyond(4)
        waiting = [mark.wait_beyond(offset) for offset in (9, 5, 6)]
        mark.advance(7)
        await asyncio.gather(waiting[1], waiting[2])
        assert not waiting[0].done()
        mark.advance(10)
        await waiting[0]

    asyncio.run(test())


def test_it_never_falls():
    with pytest.raises(AssertionError):
        HighWatermark(5).advance(4)


def test_a_failure_wakes_all_now_and_later():
    async def test():
        mark = HighWatermark(5)
        waiting = mark.wait_beyond(5)
        mark.fail(closed())
        with pytest.raises(UnavailableError):
            await waiting
        for offset in (4, 5):
            with pytest.raises(UnavailableError):
                await mark.wait_beyond(offset)

    asyncio.run(test())


def test_waiters_that_gave_up_do_not_pile_up():
    async def test():
        mark = HighWatermark(0)
        for _ in range(500):
            waiting = mark.wait_beyond(0)
            waiting.cancel()
            await asyncio.wait([waiting])
        assert len(mark._waiters) < 100
        waiting = mark.wait_beyond(0)
        mark.advance(1)
        await waiting

    asyncio.run(test())
