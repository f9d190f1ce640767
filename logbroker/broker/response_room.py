"""Room for the responses under way to one connection.

However many partitions a client reads at once, and however much it asks for, the broker
holds little for it as long as it reads.
"""

from logbroker.broker.backpressure import ByteBudget
from logbroker.clock import Clock

CONNECTION_RESPONSE_BYTES = 8 << 20
"""Bytes of batches under way to one connection; its streams wait for one another beyond it."""

STILL_MS = 1_000
"""A connection on which no response has gone out for so long has a client that does not read."""


class ResponseRoom:
    """Streams wait for room as long as responses go out.

    When none has for STILL_MS, what is under way is written off: a client may leave some of
    its streams unread for as long as it likes, and must get on with the others.
    """

    def __init__(self, clock: Clock, limit: int = CONNECTION_RESPONSE_BYTES) -> None:
        self._clock = clock
        self._budget = ByteBudget(limit)
        self._moved_ms = clock.monotonic_ms()

    async def wait_room(self, size: int) -> "Taken":
        """Takes so many bytes once there is room: first come, first served."""
        while True:
            budget = self._budget
            if budget.has_room(size):
                budget.take_or_refuse(size)
                return Taken(budget, size)
            try:
                await self._clock.wait_for(budget.wait_room(size), STILL_MS)
                return Taken(budget, size)
            except TimeoutError:
                still_ms = self._clock.monotonic_ms() - self._moved_ms
                if budget is self._budget and still_ms >= STILL_MS:
                    self._budget = ByteBudget(budget.limit)

    def response_went_out(self) -> None:
        """Takes note that the client reads."""
        self._moved_ms = self._clock.monotonic_ms()


class Taken:
    """Bytes taken from a room until they are given back."""

    def __init__(self, budget: ByteBudget, size: int) -> None:
        self._budget = budget
        self._size = size

    def resize(self, size: int) -> bool:
        """Holds so many instead; returns False, unchanged, where there is no room for more."""
        if size > self._size:
            if not self._budget.has_room(size - self._size):
                return False
            self._budget.take_or_refuse(size - self._size)
        else:
            self._budget.give(self._size - size)
        self._size = size
        return True

    def give_back(self) -> None:
        """Gives back all."""
        self.resize(0)
