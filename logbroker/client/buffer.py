"""The room of a producer: bytes held for records that are not answered, and who waits for some.

0 <= held_bytes, and held_bytes <= limit_bytes unless one batch alone is larger
"""

import asyncio


class Buffer:
    """Bytes, taken and given back."""

    def __init__(self, limit_bytes: int) -> None:
        self.held_bytes = 0
        self._limit_bytes = limit_bytes
        self._waiters: list[asyncio.Future[None]] = []

    def take(self, size: int) -> bool:
        """Takes room and returns true, if there is some. Empty, there is room for anything."""
        if self.held_bytes and self.held_bytes + size > self._limit_bytes:
            return False
        self.held_bytes += size
        return True

    def give(self, size: int) -> None:
        """Gives room back, and wakes who waits for it."""
        self.held_bytes -= size
        assert self.held_bytes >= 0
        if self._waiters:
            self.wake()

    def wake(self) -> None:
        """Lets all who wait look again, the first one first."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    async def wait_given(self) -> None:
        """Returns once room was given back, how much there may be."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter
