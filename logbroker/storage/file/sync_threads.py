"""Threads for fdatasync alone: a queue, a call, and back to the event loop.

The executor of the standard library does the same with a lock, a semaphore and two futures
more for each call: measured on an fdatasync of 0.1 ms, it adds 0.065 ms and this 0.045 ms.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread

QUICK_NS = 1_000_000
QUICK_IN_ROW = 20
ALONE_IN_ROW = 20


class SyncPace:
    """Whether fdatasync is so quick that to wait for it beats to wake a thread for it.

    To wake a thread, and the event loop after it, takes some 0.1 ms on a machine that is
    otherwise idle: as long as an fdatasync of a few bytes on a fast disk. So after many
    quick ones in a row a lone small flush runs on the loop, as Redis does it under
    `appendfsync always`. The first slow one sends all of them back to the threads.

    Only where one log alone is written to: nobody else is kept waiting then. A stream of
    records with a group behind it writes to two, and some flushes of the group's take 7 ms.
    """

    def __init__(self) -> None:
        self._quick_in_row = 0
        self._writer: object = None
        self._alone_in_row = 0

    @property
    def is_quick(self) -> bool:
        """Whether the next one is likely to be quick."""
        return self._quick_in_row >= QUICK_IN_ROW

    def is_alone(self, writer: object) -> bool:
        """Whether nobody else has written lately."""
        return self._writer is writer and self._alone_in_row >= ALONE_IN_ROW

    def note_write(self, writer: object) -> None:
        """Takes note of who writes."""
        if self._writer is writer:
            self._alone_in_row += 1
        else:
            self._writer, self._alone_in_row = writer, 0

    def note(self, ns: int) -> None:
        """Takes note of how long one took."""
        self._quick_in_row = self._quick_in_row + 1 if ns <= QUICK_NS else 0


class SyncCall:
    """A call on its way."""

    __slots__ = ("_loop", "future", "is_over", "run", "waiter")

    def __init__(self, run: Callable[[], object]) -> None:
        self._loop = asyncio.get_running_loop()
        self.run = run
        self.future: asyncio.Future[None] = self._loop.create_future()
        self.is_over = False
        """Whether no thread uses its files any more, also if nobody waits for the future."""
        self.waiter: asyncio.Future[None] | None = None

    def make(self) -> None:
        """Makes the call, on a thread."""
        error = None
        try:
            self.run()
        except BaseException as raised:  # noqa: BLE001  # goes to who waits
            error = raised
        self._loop.call_soon_threadsafe(self._end, error)

    async def wait_over(self) -> None:
        """Returns once no thread uses its files, however often it is cancelled meanwhile."""
        while not self.is_over:
            self.waiter = self._loop.create_future()
            with suppress(asyncio.CancelledError):
                await self.waiter

    def _end(self, error: BaseException | None) -> None:
        self.is_over = True
        if self.waiter and not self.waiter.done():
            self.waiter.set_result(None)
        if self.future.cancelled():
            return
        if error is None:
            self.future.set_result(None)
        else:
            self.future.set_exception(error)


class SyncThreads:
    """A fixed number of threads, started when the first call comes."""

    def __init__(self, count: int) -> None:
        self._queue: SimpleQueue[SyncCall | None] = SimpleQueue()
        self._threads = [Thread(target=self._work, name=f"sync-{n}") for n in range(count)]
        self._is_started = False

    async def make(self, run: Callable[[], object]) -> None:
        """Makes the call on a thread. A cancelled caller waits too: the thread uses its files."""
        if not self._is_started:
            self._is_started = True
            for thread in self._threads:
                thread.start()
        call = SyncCall(run)
        self._queue.put(call)
        try:
            await call.future
        except asyncio.CancelledError:
            await call.wait_over()
            raise

    def shutdown(self) -> None:
        """Returns when the calls there are have ended, and the threads."""
        if self._is_started:
            for _ in self._threads:
                self._queue.put(None)
            for thread in self._threads:
                thread.join()

    def _work(self) -> None:
        while (call := self._queue.get()) is not None:
            call.make()
