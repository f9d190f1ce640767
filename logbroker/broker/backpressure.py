"""Bytes in flight, per connection and in all: who is over waits, or is refused."""

import asyncio
from collections import deque

from logbroker.errors import ExhaustedError

RETRY_AFTER_MS = 100


class ByteBudget:
    """So many bytes at once. Where nothing is taken one request is let in, however large."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()

    def has_room(self, size: int) -> bool:
        """Tells whether so much can be taken at once."""
        return not self._waiters and self._fits(size)

    async def wait_room(self, size: int) -> None:
        """Takes, once there is room; first come, first served."""
        if self.has_room(size):
            self.taken += size
            return
        future = asyncio.get_running_loop().create_future()
        self._waiters.append((size, future))
        try:
            await future
        except asyncio.CancelledError:
            if not future.cancelled():  # let in at the same moment
                self.give(size)
            elif (size, future) in self._waiters:  # those behind may fit
                self._waiters.remove((size, future))
                self._let_in()
            raise

    def take_or_refuse(self, size: int) -> None:
        """Takes, or raises ExhaustedError (OVERLOADED) with a delay to retry after."""
        if not self.has_room(size):
            message = f"the broker holds {self.taken} of {self.limit} bytes; try again later"
            details = {"in_flight_bytes": self.taken, "limit": self.limit}
            raise ExhaustedError("OVERLOADED", message, retry_after_ms=RETRY_AFTER_MS, **details)
        self.taken += size

    def give(self, size: int) -> None:
        """Gives back what was taken, and lets in who waits."""
        self.taken -= size
        assert self.taken >= 0, "more given back than taken"
        self._let_in()

    def _let_in(self) -> None:
        while self._waiters:
            size, future = self._waiters[0]
            if not future.done():
                if not self._fits(size):
                    return
                self.taken += size
                future.set_result(None)
            self._waiters.popleft()

    def _fits(self, size: int) -> bool:
        return not self.taken or self.taken + size <= self.limit
