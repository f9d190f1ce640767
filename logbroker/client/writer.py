"""Writes to a stream, one message at a time, each in a task of its own.

`await call.write(...)` would tie a write to the task that asks: who waits for a record may be
cancelled, and gRPC cancels the stream with the write.
"""

import asyncio
from collections.abc import Callable
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
        self._task: asyncio.Task[None] | None = None

    def begin(self, message: bytes) -> None:
        """Writes a message. `on_written` is called once the next may be begun, or for a fault."""
        assert self.is_free
        self.is_free = False
        self._task = asyncio.create_task(self._write(message))

    async def _write(self, message: bytes) -> None:
        try:
            await self._call.write(message)
        except (AioRpcError, asyncio.InvalidStateError, asyncio.CancelledError):
            return
        except Exception as fault:  # noqa: BLE001  # goes to who sends
            self.fault = fault
        else:
            self.is_free = True
        self._on_written()
