"""What a worker runs for each record, and what it may say about one."""

import inspect
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any

from logbroker.client.delivered import Delivered

Handler = Callable[[Delivered], Awaitable[Any]] | Callable[[Delivered], Any]
"""Takes a record. A coroutine function runs on the loop, any other in a thread."""
REASON_CHARS = 1_024


class Retry(Exception):
    """Raised by a handler: it failed, try again after `delay_ms`, or the group's back-off."""

    def __init__(self, delay_ms: int | None = None, reason: str = "") -> None:
        super().__init__(delay_ms, reason)
        self.delay_ms = delay_ms
        self.reason = reason


class Reject(Exception):
    """Raised by a handler: the record is hopeless, and becomes a dead letter now."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class Attempt:
    """A context in which a handler runs: what it raises is kept, as an answer.

    Cancellation and what ends a program go through.
    """

    __slots__ = ("error",)

    def __init__(self) -> None:
        self.error: Exception | None = None

    def __enter__(self) -> None:
        self.error = None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if isinstance(error, Exception):
            self.error = error
            return True
        return False


def is_async(handler: Handler) -> bool:
    """Tells whether calling it gives something to await."""
    call = getattr(handler, "__call__", handler)  # noqa: B004  # of an object with `async __call__`
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(call)


def reason_of(error: Exception) -> str:
    """Returns an exception's text, as the reason of a failure."""
    name, text = type(error).__name__, str(error)
    return (f"{name}: {text}" if text else name)[:REASON_CHARS]
