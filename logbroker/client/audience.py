"""Who gets what is delivered to a member."""

from typing import NamedTuple, Protocol

from logbroker.client.delivered import DeliveredBatch
from logbroker.client.lease import Lease
from logbroker.record.offset_ranges import Range


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class Audience(Protocol):
    """Who gets what is delivered."""

    def take(self, batch: DeliveredBatch) -> None:
        """Takes a batch."""

    def drop(self) -> None:
        """Hears that leases are lost: what is not held any more must not be handed out."""

    def note_lost(self, lease: Lease, range_: Range) -> None:
        """Hears of records that were answered too late."""

    def wake(self) -> None:
        """Hears that something else changed: an assignment, the end of the log, a failure."""

    def may_extend(self, lease: Lease, now_ms: int) -> bool:
        """Tells whether the lease shall be extended. Asked at a third of its time."""
