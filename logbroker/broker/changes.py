"""Changes of topics that take several steps, such as a journal and then files.

Each is finished whatever becomes of its caller: one who gives up half-way leaves nothing
half done. Those of one name go one after another, so that none meets another's half.
"""

import asyncio
from asyncio import Task
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Changes:
    """The changes under way."""

    def __init__(self) -> None:
        self._last: dict[str, Task[Any]] = {}
        """By name; each waits for the one before it."""

    async def run(self, name: str, change: Coroutine[Any, Any, T]) -> T:
        """Returns what `change` does, when those of the same name before it are done."""
        task = asyncio.create_task(_after(self._last.get(name), change))
        self._last[name] = task
        task.add_done_callback(lambda done: self._forget(name, done))
        return await asyncio.shield(task)

    async def wait_done(self) -> None:
        """Returns when none is under way."""
        while self._last:
            await asyncio.wait(self._last.values())

    def _forget(self, name: str, done: Task[Any]) -> None:
        if not done.cancelled():
            done.exception()  # the caller may be gone
        if self._last.get(name) is done:
            del self._last[name]


async def _after(before: Task[Any] | None, change: Coroutine[Any, Any, T]) -> T:
    if before:
        await asyncio.wait({before})
    return await change
