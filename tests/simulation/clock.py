"""The broker's and the clients' clock, over the time of the loop."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")

BEGIN_MS = 1_800_000_000_000


class SimulatedClock:
    """Both times move with the loop; the wall clock alone can be stepped, too."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._stepped_ms = 0

    def now_ms(self) -> int:
        """As Clock."""
        return BEGIN_MS + self._stepped_ms + self.monotonic_ms()

    def monotonic_ms(self) -> int:
        """As Clock."""
        return self.monotonic_ns() // 1_000_000

    def monotonic_ns(self) -> int:
        """As Clock."""
        return int(self._loop.time() * 1e9)

    async def wait_until(self, monotonic_ms: int) -> None:
        """As Clock."""
        while (left := monotonic_ms - self.monotonic_ms()) > 0:  # noqa: ASYNC110  # the clock is where sleeping is at home
            await asyncio.sleep(left / 1_000)

    async def wait_for(self, awaitable: Awaitable[T], timeout_ms: int) -> T:
        """As Clock."""
        async with asyncio.timeout(timeout_ms / 1_000):
            return await awaitable

    def step_wall(self, ms: int) -> None:
        """Moves the wall time alone, as NTP or an operator does."""
        self._stepped_ms += ms
