"""The streams that are open, so that a stop can end them with a word."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from logbroker.errors import UnavailableError


class OpenStreams:
    """What to call for each open stream when the broker stops."""

    def __init__(self) -> None:
        self.is_stopping = False
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

    def stop(self) -> None:
        """Ends all streams, and those to come."""
        self.is_stopping = True
        for stop in list(self._stops.values()):
            stop()


def shutting_down() -> UnavailableError:
    """Returns the error that calls end with when the broker stops."""
    return UnavailableError("SHUTTING_DOWN", "the broker is stopping")
