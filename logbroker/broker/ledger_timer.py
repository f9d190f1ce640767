"""When each ledger has something to do next: leases that expire, back-offs that end."""

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush

from logbroker.clock import Clock
from logbroker.group.group_events import LedgerId

FAR_MS = 24 * 3_600_000
"""How long to sleep where nothing is due."""


class LedgerTimer:
    """One task for all ledgers; it sleeps until the earliest is due."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[int, LedgerId]] = []
        self._armed: dict[LedgerId, int] = {}
        self._is_earlier = asyncio.Event()

    def arm(self, ledger_id: LedgerId, at_ms: int | None) -> None:
        """Rings for the ledger at this monotonic time, or earlier if it was armed for that.

        Rung too early, whoever listens finds nothing to do and arms again.
        """
        if at_ms is None:
            return
        armed = self._armed.get(ledger_id)
        if armed is not None and armed <= at_ms:
            return
        self._armed[ledger_id] = at_ms
        heappush(self._heap, (at_ms, ledger_id))
        if self._heap[0][0] == at_ms:
            self._is_earlier.set()

    async def run(self, ring: Callable[[LedgerId], None]) -> None:
        """Calls `ring` for each ledger when it is due, until it is cancelled."""
        while True:
            now_ms = self._clock.monotonic_ms()
            while self._heap and self._heap[0][0] <= now_ms:
                at_ms, ledger_id = heappop(self._heap)
                if self._armed.get(ledger_id) == at_ms:
                    del self._armed[ledger_id]
                    ring(ledger_id)
            self._is_earlier.clear()
            left_ms = self._heap[0][0] - now_ms if self._heap else FAR_MS
            try:
                await self._clock.wait_for(self._is_earlier.wait(), left_ms)
            except TimeoutError:
                continue
