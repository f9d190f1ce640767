"""How far a partition may be read, and who waits for it to move: futures, and callbacks."""

import asyncio
import heapq
from collections.abc import Callable
from itertools import count

from logbroker.errors import LogbrokerError


class HighWatermark:
    """A number that never falls, and its waiters."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        self._callbacks: list[tuple[int, Callable[[], None]]] = []
        self._numbers = count()
        self._cancelled_count = 0
        self._failure: LogbrokerError | None = None

    def wait_beyond(self, offset: int) -> "asyncio.Future[None]":
        """Returns a future that is done once the mark is greater than `offset`.

        It fails with what `fail` is given, before or after.
        """
        future = asyncio.get_running_loop().create_future()
        if self._failure:
            future.set_exception(self._failure.again())
        elif offset < self.offset:
            future.set_result(None)
        else:
            heapq.heappush(self._waiters, (offset, next(self._numbers), future))
            future.add_done_callback(self._forget_cancelled)
        return future

    def call_beyond(self, offset: int, callback: Callable[[], None]) -> None:
        """Calls back once the mark is greater than `offset`, at once perhaps; or after `fail`.

        By whoever moves the mark, in the middle of that: it must do no more than take note.
        """
        if self._failure or offset < self.offset:
            callback()
        else:
            self._callbacks.append((offset, callback))

    def advance(self, offset: int) -> None:
        """Moves the mark to `offset` and wakes those it has passed."""
        assert offset >= self.offset, f"the mark falls from {self.offset} to {offset}"
        self.offset = offset
        if self._callbacks:
            callbacks, self._callbacks = self._callbacks, []
            for at, callback in callbacks:
                self.call_beyond(at, callback)
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
        callbacks, self._callbacks = self._callbacks, []
        for _, callback in callbacks:
            callback()

    def _forget_cancelled(self, future: "asyncio.Future[None]") -> None:
        """Keeps waiters that gave up, as each heartbeat makes one, from piling up."""
        if not future.cancelled():
            return
        self._cancelled_count += 1
        if self._cancelled_count > 32 + len(self._waiters) // 2:
            self._waiters = [waiter for waiter in self._waiters if not waiter[2].done()]
            heapq.heapify(self._waiters)
            self._cancelled_count = 0
