"""Whoever runs the broker: asks it things until it answers, whatever the network does."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from logbroker.client import Client
from logbroker.errors import ConflictError, LogbrokerError, PreconditionError

from .machine import ADDRESS
from .world import World

T = TypeVar("T")

AGAIN_S = 0.5
PATIENCE_S = 300.0


class Operator:
    """A client that does not give up soon."""

    def __init__(self, world: World) -> None:
        self.client = Client(ADDRESS, timeout_ms=5_000)
        self._world = world

    async def ask(self, call: Callable[[], Awaitable[T]]) -> T:
        """Returns what the call does, once it does; raises what does not pass by itself."""
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE_S
        while True:
            try:
                return await call()
            except LogbrokerError as error:
                passes = error.may_retry or error.reason in ("OUTCOME_UNKNOWN", "GROUP_IN_USE")
                if not passes or loop.time() > until:
                    raise
                self._world.trace("asks again", error.reason)
                await asyncio.sleep(AGAIN_S)

    async def ask_once(
        self, call: Callable[[], Awaitable[T]], *, foreseen: Collection[str] = ()
    ) -> T | None:
        """Returns what the call does, or None if it could not be done now.

        `foreseen`: reasons for which this call may be refused, besides those that pass.
        """
        try:
            return await call()
        except LogbrokerError as error:
            is_foreseen = error.may_retry or isinstance(error, ConflictError | PreconditionError)
            if not is_foreseen and error.reason not in ("OUTCOME_UNKNOWN", *foreseen):
                raise
            return None
