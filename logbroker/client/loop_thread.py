"""An event loop on a thread of its own, for code without one."""

import asyncio
import threading
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class LoopThread:
    """An event loop on a daemon thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="logbroker client", daemon=True)
        self._thread.start()

    def wait(self, work: Awaitable[T], timeout_ms: int | None = None) -> T:
        """Returns what `work` gives on the loop. TimeoutError after the time, and it is cancelled.

        Time runs on the loop, so that what is done just in time is never lost on the way.
        """
        future = asyncio.run_coroutine_threadsafe(_within(work, timeout_ms), self.loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def stop(self) -> None:
        """Ends the loop and the thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

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
