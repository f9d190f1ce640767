"""Clients whose calls block: polled in a thread of their own."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


@asynccontextmanager
async def polled(poll: Callable[[], None]) -> AsyncIterator[None]:
    """Polls in a thread until the block is left; raises what it raised."""
    ended = threading.Event()
    errors: list[BaseException] = []

    def run() -> None:
        try:
            while not ended.is_set():
                poll()
        except BaseException as error:  # noqa: BLE001  # it is raised in the block's thread
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        await asyncio.to_thread(thread.join)
    if errors:
        raise errors[0]


def done_within(seconds: float, action: Callable[[], object]) -> bool:
    """Does something in a thread, and leaves it alone if that takes longer; tells whether not."""
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()
