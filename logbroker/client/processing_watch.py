"""Whether anybody still handles what a consumer got: if not, others shall have it.

As Kafka's `max.poll.interval.ms`, except that the member stays one: it wants nothing more until
somebody asks again.
"""

from logbroker.client.consumer_settings import ConsumerSettings
from logbroker.client.membership import Membership
from logbroker.client.prefetched import Prefetched


class ProcessingWatch:
    """Looks for signs of life, and gives back what nobody has asked for in a long time."""

    def __init__(
        self, settings: ConsumerSettings, member: Membership, prefetched: Prefetched, now_ms: int
    ) -> None:
        self._settings = settings
        self._member = member
        self._prefetched = prefetched
        self._signs: tuple[int, ...] = ()
        self._alive_ms = now_ms
        self._is_suspended = False

    def is_alive(self, signs: tuple[int, ...], now_ms: int, *, is_waiting: bool) -> bool:
        """Returns whether leases shall go on. If not, what is not handed out is given back.

        They do where the signs have changed, or somebody waited, within `max_processing_ms`.
        """
        if signs != self._signs or is_waiting:
            self._signs, self._alive_ms = signs, now_ms
        if now_ms - self._alive_ms <= self._settings.max_processing_ms:
            return True
        self._suspend()
        return False

    def go_on(self) -> None:
        """Hears that somebody asks: wants as much as before."""
        if self._is_suspended:
            self._is_suspended = False
            settings = self._settings
            self._member.set_limits(
                settings.max_outstanding_records, settings.max_outstanding_bytes
            )

    def _suspend(self) -> None:
        if not self._is_suspended:
            self._is_suspended = True
            self._member.set_limits(0, 0)
            for batch in self._prefetched:
                self._member.release(batch.lease, [(batch.first_offset, batch.end_offset)])
            self._prefetched.clear()
