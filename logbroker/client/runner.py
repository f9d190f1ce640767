"""What a worker knows of each handler that runs."""

import asyncio

from logbroker.client.delivered import Delivered
from logbroker.client.handler import Attempt


class Runner:
    """Runs one handler at a time."""

    __slots__ = ("attempt", "begun_ms", "is_answered", "is_late", "record", "task")

    def __init__(self) -> None:
        self.attempt = Attempt()
        self.task: asyncio.Task[None] | None = None
        self.record: Delivered | None = None
        self.begun_ms = 0
        self.is_late = False
        self.is_answered = False
        """Its record was, while its handler runs on."""


class NoMoreThreads(BaseException):
    """The program ends, and nothing can be begun any more. Not a failure of the handler."""
