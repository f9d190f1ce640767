"""How far a partition may be read, and who waits for it to move."""

import asyncio
import heapq
from itertools import count

from logbroker.errors import LogbrokerError


class HighWatermark:
    """A number that never falls, and its waiters."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = count()
        self._cancelled_count = 0
        self._failure: LogbrokerError | None = None

    async def wait_beyond(self, offset: int) -> None:
        """Returns once the mark is greater than `offset`; raises what `fail` was given."""
        if offset < self.offset:
            return
        if self._failure:
            raise self._failure.again()
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiters, (offset, next(self._numbers), future))
        try:
            await future
        except asyncio.CancelledError:
            self._forget_cancelled()
            raise

    def advance(self, offset: int) -> None:
        """Moves the mark to `offset` and wakes those it has passed."""
        assert offset >= self.offset, f"the mark falls from {self.offset} to {offset}"
        self.offset = offset
        while self._waiters and self._waiters[0][0] < offset:
            future = heapq.heappop(self._waiters)[2]
            if not future.done():
                future.set_result(None)

    def fail(self, error: LogbrokerError) -> None:
        """Wakes all that wait, now and later, with this error. The mark stays where it is."""
        self._failure = error
        waiters, self._waiters = self._waiters, []
        for _, _, future in waiters:
            if not future.done():
                future.set_exception(error.again())

    def _forget_cancelled(self) -> None:
        """Keeps waiters that gave up, as each heartbeat makes one, from piling up."""
        self._cancelled_count += 1
        if self._cancelled_count > 32 + len(self._waiters) // 2:
            self._waiters = [waiter for waiter in self._waiters if not waiter[2].done()]
            heapq.heapify(self._waiters)
            self._cancelled_count = 0
