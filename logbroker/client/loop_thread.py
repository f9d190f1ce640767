"""An event loop on a thread of its own, for code without one."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from logbroker.client.forks import tell_of_forks
from logbroker.errors import PreconditionError

T = TypeVar("T")


class LoopThread:
    """An event loop on a daemon thread.

    Once it is stopped, and in a child process, which has no such thread, every use raises
    PreconditionError CLIENT_CLOSED at once.
    """

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._closed_because = ""
        tell_of_forks(self)
        self._thread = threading.Thread(target=self._run, name="logbroker client", daemon=True)
        self._thread.start()

    def wait(self, work: Awaitable[T], timeout_ms: int | None = None) -> T:
        """Returns what `work` gives on the loop. TimeoutError after the time, and it is cancelled.

        Time runs on the loop, so that what is done just in time is never lost on the way.
        """
        future = self.start(_within(work, timeout_ms), work)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def start(self, work: Coroutine[Any, Any, T], *inside: Awaitable[Any]) -> Future[T]:
        """Begins `work` on the loop. If it cannot, closes it and what is awaited `inside`."""
        try:
            self.check()
        except PreconditionError:
            for each in (work, *inside):
                if isinstance(each, Coroutine):
                    each.close()
            raise
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def call_soon(self, callback: Callable[[], object]) -> None:
        """Calls back on the loop."""
        self.check()
        self.loop.call_soon_threadsafe(callback)

    def check(self) -> None:
        """Raises PreconditionError CLIENT_CLOSED unless the loop runs here."""
        if self._closed_because:
            raise PreconditionError("CLIENT_CLOSED", self._closed_because)

    def stop(self) -> None:
        """Ends the loop and the thread."""
        self.call_soon(self.loop.stop)
        self._closed_because = "this client has been closed"
        self._thread.join()

    def forked(self) -> None:
        """Refuses everything from now on: this is a child process."""
        self._closed_because = "this client was made in another process; make one in this"

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        if tasks := asyncio.all_tasks(self.loop):  # gRPC's own, of calls that have just ended
            for task in tasks:
                task.cancel()
            self.loop.run_until_complete(asyncio.wait(tasks))
        self.loop.close()


async def _within(work: Awaitable[T], timeout_ms: int | None) -> T:
    async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1_000):
        return await work
