"""One fdatasync for all appends that wait; and the threads it runs in.

    appends that arrive while a flush runs share the next one
    at most `sync_threads` flushes run at once, over all partitions

A failed fdatasync is final: who waited is told, and it is never tried again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, ParamSpec, TypeVar

from logbroker.errors import LogbrokerError
from logbroker.record.batch import Batch
from logbroker.storage.file.sync_threads import SyncPace, SyncThreads

BRIEF_BYTES = 64 << 10
"""A flush of more than this always runs in a thread."""

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    """Threads for calls that wait for the disk, and the tasks that wait for the threads.

    Flushes have their own: a slow fdatasync does not hold up reads.
    """

    def __init__(self, sync_count: int, read_count: int = 4) -> None:
        self.pace = SyncPace()
        self.flush_count = 0
        """How many partitions flush, or are about to."""
        self._syncs = SyncThreads(sync_count)
        self._reads = ThreadPoolExecutor(read_count, "disk")
        self.sync_slot = asyncio.Semaphore(sync_count)
        """Held around `sync`, so that descriptors are held only while a thread runs."""
        self.read_slot = asyncio.Semaphore(read_count)
        """Held around `run` by those who hold descriptors."""
        self._tasks: set[asyncio.Task[Any]] = set()

    async def sync(self, call: Callable[[T], None], argument: T) -> None:
        """Makes the call on a thread of the flushes."""
        await self._syncs.make(partial(call, argument))

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Returns what the call returns, on any other thread."""
        return await _finished(self._reads.submit(call, *args, **kwargs))

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Runs the work as a task that `close` waits for or cancels."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Cancels what is left of the tasks and ends the threads."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._syncs.shutdown()
        self._reads.shutdown()


class Flusher:
    """Of one partition: who waits for its next flush."""

    __slots__ = ("_flush", "_is_small", "_is_wanted", "_task", "_threads", "_waiting")

    def __init__(self, threads: Threads, flush: Callable[[], Awaitable[None]]) -> None:
        """`flush` makes durable what has been written; raises LogbrokerError if it cannot."""
        self._threads = threads
        self._flush = flush
        self._waiting: list[tuple[asyncio.Future[Batch], Batch]] = []
        self._is_wanted = False
        self._is_small = False
        self._task: asyncio.Task[None] | None = None

    def wait_flushed(self, batch: Batch) -> asyncio.Future[Batch]:
        """Returns a future that gives the batch once it is durable."""
        flushed = asyncio.get_running_loop().create_future()
        self._waiting.append((flushed, batch))
        self._start()
        return flushed

    def want(self) -> asyncio.Task[None]:
        """Starts a flush, or one more behind that which runs; returns the task of both."""
        self._is_wanted = True
        return self._start()

    def fail(self, error: LogbrokerError) -> None:
        """Answers all that wait with the error."""
        waiting, self._waiting = self._waiting, []
        _fail(waiting, error)

    def _start(self) -> asyncio.Task[None]:
        if self._task is None:
            self._threads.flush_count += 1
            self._task = self._threads.start(self._run())
        return self._task

    @property
    def is_brief(self) -> bool:
        """Whether the flush that runs is small, alone and likely quick: it runs on the loop."""
        pace = self._threads.pace
        is_alone = self._threads.flush_count == 1 and pace.is_alone(self)
        return self._is_small and is_alone and pace.is_quick

    def note_write(self) -> None:
        """Takes note that there is more to flush."""
        self._threads.pace.note_write(self)

    async def _run(self) -> None:
        try:
            while self._waiting or self._is_wanted:
                async with self._threads.sync_slot:
                    waiting, self._waiting = self._waiting, []
                    size = sum(batch.header.size_bytes for _, batch in waiting)
                    self._is_small = 0 < size <= BRIEF_BYTES and not self._is_wanted
                    self._is_wanted = False
                    try:
                        await self._flush()
                    except LogbrokerError as error:
                        _fail(waiting, error)
                        self.fail(error)
                    except asyncio.CancelledError:
                        self._waiting = waiting + self._waiting
                        raise
                for flushed, batch in waiting:
                    if not flushed.done():
                        flushed.set_result(batch)
        finally:
            self._task = None
            self._threads.flush_count -= 1


def _fail(waiting: list[tuple[asyncio.Future[Batch], Batch]], error: LogbrokerError) -> None:
    for flushed, _ in waiting:
        if not flushed.done():
            flushed.set_exception(error.again())
            flushed.exception()  # nobody need ask


async def _finished(call: "Future[T]") -> T:
    """Returns what a thread returns. A cancelled caller waits too: the thread uses its files."""
    finished = asyncio.wrap_future(call)
    try:
        return await asyncio.shield(finished)
    except asyncio.CancelledError:
        while not finished.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([finished])
        raise
