"""Writes to a stream, one message at a time, each begun in the very turn that asks for it.

`await call.write(...)` would tie a write to the task that asks: who waits for a record may be
cancelled, and gRPC cancels the stream with the write. A task of its own begins a turn later.
So a writer takes the coroutine through its waits itself, as a task does.
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
        self._write: Coroutine[Any, Any, None] | None = None

    def begin(self, message: bytes) -> None:
        """Writes a message. `on_written` is called once the next may be begun, or for a fault."""
        assert self.is_free
        self.is_free = False
        self._write = self._call.write(message)
        self._go_on()

    def _go_on(self, _: "asyncio.Future[Any] | None" = None) -> None:
        assert self._write
        try:
            waits_for = self._write.send(None)
        except StopIteration:
            self._write = None
            self.is_free = True
            self._on_written()
        except (AioRpcError, asyncio.InvalidStateError, asyncio.CancelledError):
            self._write = None
        except Exception as fault:  # noqa: BLE001  # goes to who sends
            self._write = None
            self.fault = fault
            self._on_written()
        else:
            if waits_for is None:  # a turn
                asyncio.get_running_loop().call_soon(self._go_on)
            else:
                waits_for._asyncio_future_blocking = False  # as a task says that it has seen it
                waits_for.add_done_callback(self._go_on)
