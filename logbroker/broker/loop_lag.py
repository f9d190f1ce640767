"""How late the event loop is: all that the broker does waits for it.

A timer rings ten times a second. How much later it rang than it should have is how long
something else, some long step or a busy machine, has kept the loop from its work.
"""

from collections import deque

from logbroker.clock import Clock

EVERY_MS = 100
KEPT_MS = 10_000


class LoopLag:
    """The greatest of the last 10 s, in `worst_ms`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._greatest: deque[tuple[int, int]] = deque()
        """When it rang and how late: descending lags, of which the first one still counts."""

    @property
    def worst_ms(self) -> int:
        """The greatest lag that began in the last 10 s."""
        self._forget(self._clock.monotonic_ms())
        return self._greatest[0][1] if self._greatest else 0

    async def run(self) -> None:
        """Looks, until it is cancelled."""
        while True:
            due_ms = self._clock.monotonic_ms() + EVERY_MS
            await self._clock.wait_until(due_ms)
            self.note(self._clock.monotonic_ms(), due_ms)

    def note(self, now_ms: int, due_ms: int) -> None:
        """Takes note of a timer that rang now."""
        lag_ms = now_ms - due_ms
        while self._greatest and self._greatest[-1][1] <= lag_ms:
            self._greatest.pop()
        self._greatest.append((now_ms, lag_ms))
        self._forget(now_ms)

    def _forget(self, now_ms: int) -> None:
        while self._greatest and now_ms - self._greatest[0][0] > KEPT_MS:
            self._greatest.popleft()
