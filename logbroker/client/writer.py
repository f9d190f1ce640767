"""Writes to a stream, one message at a time, each begun at once and by no task.

`await call.write(...)` would tie a write to the task that asks: who waits for a record may be
cancelled, and gRPC cancels the stream with the write. A task for each write would begin it in
the loop's next turn, when it could be on its way. So a write is taken from one future that it
waits for to the next, as a task does it (PEP 3156; `_asyncio_future_blocking` is how a future
tells a task that it is awaited).
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from grpc.aio import AioRpcError, StreamStreamCall


class Writer:
    """The writing end of one stream."""

    def __init__(self, call: StreamStreamCall[bytes, Any], on_written: Callable[[], None]) -> None:
        self.is_free = True
        """Whether a message may be begun. Never again after a write that failed."""
        self.fault: Exception | None = None
        """What a write raised, other than that the stream is lost: who reads from it knows that."""
        self._call = call
        self._on_written = on_written
        self._writing: Coroutine[Any, None, None]

    def begin(self, message: bytes) -> None:
        """Writes a message. `on_written` is called once the next may be begun, or for a fault."""
        assert self.is_free
        self.is_free = False
        self._writing = self._call.write(message)
        self._go_on()

    def _go_on(self, _awaited: object = None) -> None:
        """Runs the write up to where it waits next."""
        try:
            awaited = self._writing.send(None)
        except StopIteration:
            self.is_free = True
        except (AioRpcError, asyncio.InvalidStateError, asyncio.CancelledError):
            return
        except Exception as fault:  # noqa: BLE001  # goes to who sends
            self.fault = fault
        else:
            self._wait(awaited)
            return
        self._on_written()

    def _wait(self, awaited: asyncio.Future[Any] | None) -> None:
        if awaited is None:  # only for a turn
            asyncio.get_running_loop().call_soon(self._go_on)
        else:
            awaited._asyncio_future_blocking = False
            awaited.add_done_callback(self._go_on)
