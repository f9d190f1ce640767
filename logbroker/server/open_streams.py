"""The streams that are open, so that a stop can end them with a word, and refuse what comes."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from logbroker.errors import UnavailableError

QUIET_S = 0.01
"""A stop waits until no call has come for so long..."""
QUIET_WITHIN_S = 0.2
"""... and at most this long, should somebody call again and again."""


class OpenStreams:
    """What to call for each open stream when the broker stops."""

    def __init__(self) -> None:
        self.is_stopping = False
        self._has_come = asyncio.Event()
        self._stops: dict[object, Callable[[], object]] = {}

    def __len__(self) -> int:
        return len(self._stops)

    @contextmanager
    def entered(self, stop: Callable[[], object] | None = None) -> Iterator[None]:
        """Counts a stream as open; `stop` is called when the broker stops.

        Without it the task of the stream is cancelled. UnavailableError (SHUTTING_DOWN) at
        the stop, whichever of the two it was, and at once when the broker is stopping.
        """
        if self.is_stopping:
            raise shutting_down()
        task = asyncio.current_task()
        assert task is not None
        key = object()
        self._stops[key] = stop or task.cancel
        try:
            yield
        except asyncio.CancelledError:
            if self.is_stopping:
                raise shutting_down() from None
            raise
        finally:
            del self._stops[key]

    def begin_call(self) -> None:
        """Takes note of a call; UnavailableError (SHUTTING_DOWN) when the broker is stopping."""
        self._has_come.set()
        if self.is_stopping:
            raise shutting_down()

    async def wait_quiet(self) -> None:
        """Returns once no more calls come: gRPC cancels those that it has not shown us yet."""
        with suppress(TimeoutError):
            async with asyncio.timeout(QUIET_WITHIN_S):
                while True:
                    self._has_come.clear()
                    await asyncio.wait_for(self._has_come.wait(), QUIET_S)

    def stop(self) -> None:
        """Ends all streams, and those to come."""
        self.is_stopping = True
        for stop in list(self._stops.values()):
            stop()


def shutting_down() -> UnavailableError:
    """Returns the error that calls end with when the broker stops."""
    return UnavailableError("SHUTTING_DOWN", "the broker is stopping")
