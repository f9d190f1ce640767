"""A broker on a forgetful disk and a clock that stands still, driven turn by turn.

Nothing happens by itself: `drive` lets the broker run while the disk does its part, in a
random order, and `crash` ends both in the middle of whatever is under way.
"""

import asyncio
from collections.abc import Awaitable
from random import Random
from typing import Any

from logbroker.errors import LogbrokerError
from logbroker.testing.clock import ManualClock

from .brokers import broker_on
from .forgetful_engine import ForgetfulEngine

TURNS = 2_000
"""More than anything takes."""
LAST_TURNS = 200
"""More than a broker without a disk takes to end."""


class DrivenBroker:
    """One broker after another, each on what the one before left."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.clock = ManualClock()
        self.engine = ForgetfulEngine(self.clock)
        self.broker: Any = None
        self.is_crashing = False
        self._living: asyncio.Future[None] | None = None
        self._stopped = asyncio.Event()

    async def start(self) -> None:
        """Starts the next one."""
        self._stopped = asyncio.Event()
        ready = asyncio.get_running_loop().create_future()
        self._living = asyncio.ensure_future(self._live(ready))
        self.broker = await self.drive(ready)
        self.broker._groups.random = self.random

    async def _live(self, ready: asyncio.Future[Any]) -> None:
        async with broker_on(self.engine, self.clock) as broker:
            ready.set_result(broker)
            await self._stopped.wait()

    async def drive(self, work: Awaitable[Any]) -> Any:
        """Returns what `work` does; time stands still meanwhile."""
        task = asyncio.ensure_future(work)
        try:
            for _ in range(TURNS):
                await self.clock.advance(0)
                if task.done():
                    return task.result()
                self.engine.flush(self.random)
        finally:
            task.cancel()
        raise AssertionError(f"it never ends: {work}")

    async def settle_down(self) -> None:
        """Lets the broker do what it is about, as far as that needs no time."""
        quiet = 0
        while quiet < 2:
            await self.clock.advance(0)
            quiet = 0 if self.engine.pending_count else quiet + 1
            self.engine.flush()

    async def stop(self) -> None:
        """Stops it in order; nothing is lost."""
        self._stopped.set()
        assert self._living
        await self.drive(self._living)
        self.engine = self.engine.reopened()

    async def crash(self, under_way: Awaitable[None]) -> int:
        """Ends it soon after `under_way` has begun; returns how much was cut off."""
        doing = asyncio.ensure_future(under_way)
        for _ in range(self.random.randint(0, 3)):
            await self.clock.advance(0)
            self.engine.flush(self.random)
        self.is_crashing = True
        self.engine = self.engine.crash(self.random)
        self._stopped.set()
        for _ in range(LAST_TURNS):
            await self.clock.advance(0)
        assert self._living
        assert self._living.done(), "a broker without a disk does not end"
        doing.cancel()  # what waits for a job waits for ever
        outcomes = await asyncio.gather(doing, self._living, return_exceptions=True)
        self.is_crashing = False
        cut_off = LogbrokerError, ExceptionGroup, asyncio.CancelledError
        for outcome in outcomes:
            if outcome is not None and not isinstance(outcome, cut_off):
                raise outcome
        return sum(outcome is not None for outcome in outcomes)

    def abandon(self) -> None:
        """Gives up: whatever is left has an end."""
        self.engine.crash(self.random)
        self._stopped.set()
