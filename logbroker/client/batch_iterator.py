"""Iterates over batches, of a reader or of a consumer."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

B = TypeVar("B")


class BatchIterator(AsyncIterator[B]):
    """Ends where there is no next one. A cancelled wait loses nothing."""

    def __init__(self, next_batch: Callable[[], Awaitable[B | None]]) -> None:
        self._next_batch = next_batch

    async def __anext__(self) -> B:
        batch = await self._next_batch()
        if batch is None:
            raise StopAsyncIteration
        return batch
