"""Time. Nothing else in logbroker reads it.

Wall time stamps and retains; monotonic time runs deadlines, back-offs and timers.
"""

import asyncio
import time
from collections.abc import Awaitable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    """Wall time, monotonic time, waiting."""

    def now_ms(self) -> int:
        """Returns the wall time, in ms since 1970. May jump."""

    def monotonic_ms(self) -> int:
        """Returns the ms since some moment. Never goes back."""

    def monotonic_ns(self) -> int:
        """Returns the ns since the same moment, for what takes less than a ms."""

    async def wait_until(self, monotonic_ms: int) -> None:
        """Returns once `monotonic_ms()` has reached this."""

    async def wait_for(self, awaitable: Awaitable[T], timeout_ms: int) -> T:
        """Returns what `awaitable` does; raises TimeoutError, and cancels it, after the time."""


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        """Returns the wall time, in ms since 1970."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Returns the ms since some moment."""
        return time.monotonic_ns() // 1_000_000

    def monotonic_ns(self) -> int:
        """Returns the ns since some moment."""
        return time.monotonic_ns()

    async def wait_until(self, monotonic_ms: int) -> None:
        """Returns once `monotonic_ms()` has reached this."""
        while (left := monotonic_ms - self.monotonic_ms()) > 0:
            await asyncio.sleep(left / 1_000)

    async def wait_for(self, awaitable: Awaitable[T], timeout_ms: int) -> T:
        """Returns what `awaitable` does; raises TimeoutError after the time."""
        async with asyncio.timeout(timeout_ms / 1_000):
            return await awaitable
