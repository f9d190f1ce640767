"""Lets acknowledgements gather: each costs the broker a message, a flush, and an answer."""

import asyncio
from collections.abc import Callable

from logbroker.clock import Clock

GATHER_MS = 20
"""How long the acknowledgement of what is done may wait for others, where nobody waits for it."""


class SettlementPause:
    """The time in which acknowledgements gather."""

    def __init__(self, clock: Clock, hurry: Callable[[], None]) -> None:
        """`hurry` is called when it is over."""
        self._clock = clock
        self._hurry = hurry
        self._task: asyncio.Task[None] | None = None

    def begin(self, tasks: asyncio.TaskGroup) -> None:
        """Begins, unless it has begun."""
        if self._task is None:
            self._task = tasks.create_task(self._wait())

    def stop(self) -> None:
        """Ends it, and hurries nobody any more."""
        if self._task is not None:
            self._task.cancel()

    async def _wait(self) -> None:
        try:
            await self._clock.wait_until(self._clock.monotonic_ms() + GATHER_MS)
        finally:
            self._task = None
        self._hurry()
