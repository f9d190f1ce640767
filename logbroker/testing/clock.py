"""A clock that stands still until a test moves it."""

import asyncio
import heapq
from collections.abc import Awaitable
from itertools import count
from typing import TypeVar

T = TypeVar("T")


class ManualClock:
    """Starts at `now_ms`; `advance` moves both times and wakes those whose time has come."""

    def __init__(self, now_ms: int = 1_800_000_000_000) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = 0
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = count()

    def now_ms(self) -> int:
        """Returns the wall time, in ms since 1970."""
        return self._now_ms

    def monotonic_ms(self) -> int:
        """Returns the ms since the clock was made."""
        return self._monotonic_ms

    def monotonic_ns(self) -> int:
        """Returns the ns since the clock was made."""
        return self._monotonic_ms * 1_000_000

    async def wait_until(self, monotonic_ms: int) -> None:
        """Returns once `advance` has reached this."""
        if monotonic_ms > self._monotonic_ms:
            future = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiters, (monotonic_ms, next(self._numbers), future))
            await future

    async def wait_for(self, awaitable: Awaitable[T], timeout_ms: int) -> T:
        """Returns what `awaitable` does; raises TimeoutError, and cancels it, after the time."""
        work = asyncio.ensure_future(awaitable)
        timer = asyncio.ensure_future(self.wait_until(self._monotonic_ms + timeout_ms))
        try:
            await asyncio.wait({work, timer}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise TimeoutError
            return await work
        finally:
            work.cancel()
            timer.cancel()

    def step_wall(self, ms: int) -> None:
        """Moves the wall time alone, back or forth, as an operator or NTP does."""
        self._now_ms += ms

    async def advance(self, ms: int) -> None:
        """Moves both times on, stopping where somebody waits, and lets those run."""
        end = self._monotonic_ms + ms
        while True:
            await _settle()
            while self._waiters and self._waiters[0][2].done():
                heapq.heappop(self._waiters)
            if not self._waiters or self._waiters[0][0] > end:
                break
            at, _, future = heapq.heappop(self._waiters)
            self._now_ms += at - self._monotonic_ms
            self._monotonic_ms = at
            future.set_result(None)
        self._now_ms += end - self._monotonic_ms
        self._monotonic_ms = end
        await _settle()


async def _settle() -> None:
    """Lets the tasks that can run do so; what waits for a thread is not waited for."""
    for _ in range(20):
        await asyncio.sleep(0)
