"""The threads of a file engine, without threads: calls that are made at some moment soon."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any, ParamSpec, TypeVar

from logbroker.storage.file.flusher import Threads

P = ParamSpec("P")
T = TypeVar("T")

QUICK_S = 0.0001, 0.003
SLOW_S = 0.05, 2.0


class SimulatedThreads(Threads):
    """A call begins, is made, and comes back at moments that the seed decides."""

    def __init__(self, random: Random) -> None:
        super().__init__(sync_count=4)
        self.slow_chance = 0.0
        """That a call waits for a disk that is busy with something else."""
        self._random = random

    async def sync(self, call: Callable[[T], None], argument: T) -> None:
        """As Threads."""
        await self._make(partial(call, argument))

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """As Threads."""
        return await self._make(partial(call, *args, **kwargs))

    async def _make(self, call: Callable[[], Any]) -> Any:
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def make() -> None:
            try:
                found = call()
            except Exception as error:  # noqa: BLE001  # it is for who waits
                loop.call_later(self._wait_s() / 2, fail, error)
            else:
                loop.call_later(self._wait_s() / 2, done.set_result, found)

        def fail(error: Exception) -> None:
            done.set_exception(error)
            done.exception()  # who waited may be gone

        loop.call_later(self._wait_s() / 2, make)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            while not done.done():  # the files are in use
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([done])
            raise

    def _wait_s(self) -> float:
        is_slow = self._random.random() < self.slow_chance
        return self._random.uniform(*(SLOW_S if is_slow else QUICK_S))
