"""Who waits for something to come or to change."""

import asyncio


class Waiters:
    """Futures of those who wait; false where nobody does."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    async def wait(self) -> None:
        """Returns after the next `wake`."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.add(waiter)
        try:
            await waiter
        finally:
            self._waiting.discard(waiter)

    def wake(self) -> None:
        """Wakes all who wait."""
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    def __bool__(self) -> bool:
        return bool(self._waiting)
