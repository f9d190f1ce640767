"""No more than so many bytes a second, however fast the disk is."""

from math import ceil

from logbroker.clock import Clock

BATCH_BYTES = 1 << 10


class ScrubPace:
    """What was read pushes back when more may be; time that went unused is not made up for.

    bytes read <= elapsed time * bytes_per_second + the last reading

    To look at a batch takes a microsecond or two, whatever its size: a log of tiny ones is
    read more slowly, by counting each as so many bytes at least.
    """

    def __init__(self, clock: Clock, bytes_per_second: int) -> None:
        self.total_bytes = 0
        self._clock = clock
        self._bytes_per_second = bytes_per_second
        self._turn_ms = 0.0

    async def wait_turn(self) -> None:
        """Returns when more may be read."""
        await self._clock.wait_until(ceil(self._turn_ms))

    def note(self, size: int, batch_count: int = 0) -> None:
        """Takes note of what was read."""
        self.total_bytes += size
        now_ms, counted = self._clock.monotonic_ms(), max(size, batch_count * BATCH_BYTES)
        self._turn_ms = max(self._turn_ms, now_ms) + counted * 1_000 / self._bytes_per_second
