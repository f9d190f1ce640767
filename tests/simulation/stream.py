"""One half of a call: messages that have come, how it has ended, and room for more."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import grpc

from .network import End, Link

WINDOW_BYTES = 64 << 10
"""So much may be under way and unread: then who writes waits."""


class Status(NamedTuple):
    """How a call has ended."""

    code: grpc.StatusCode
    details: str = ""
    trailing: tuple[tuple[str, Any], ...] = ()


class Half:
    """What both halves have."""

    def __init__(self) -> None:
        self.link: Link | None = None
        self.far: End | None = None
        self.other: Half | None = None
        self.end: Status | None = None
        self.is_read_out = False
        """The other half sends nothing more."""
        self._messages: deque[bytes] = deque()
        self._unread_bytes = 0
        """Of what this half has sent."""
        self._waiters: list[asyncio.Future[None]] = []

    def send(self, deliver: Callable[..., None], *args: Any) -> None:
        """Calls this at the other half."""
        if self.link and self.far:
            self.link.send(self.far, deliver, *args)

    def wake(self) -> None:
        """Lets those who wait look again."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait_news(self) -> None:
        """Returns when something has changed."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    async def write_bytes(self, message: bytes) -> bool:
        """Sends a message and waits for room; returns whether the call still goes on."""
        if self.end or not self.other:
            return False
        self._unread_bytes += len(message)
        self.send(self.other.take_message, message)
        while self._unread_bytes > WINDOW_BYTES and not self.end:
            await self.wait_news()
        return not self.end

    async def read_bytes(self) -> bytes | None:
        """Returns the next message; None at the end of them."""
        while not self._messages:
            if self.end or self.is_read_out:
                return None
            await self.wait_news()
        message = self._messages.popleft()
        if self.other and not self.end:
            self.send(self.other.take_credit, len(message))
        return message

    # What the other half sends

    def take_message(self, message: bytes) -> None:
        """A message has come."""
        self._messages.append(message)
        self.wake()

    def take_credit(self, size: int) -> None:
        """So much has been read."""
        self._unread_bytes -= size
        self.wake()

    def take_read_out(self) -> None:
        """There are no more messages."""
        self.is_read_out = True
        self.wake()

    def take_end(self, status: Status) -> None:
        """The call is over."""
        if self.end is None:
            self.end = status
            self.wake()
