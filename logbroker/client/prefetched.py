"""What a consumer was delivered and has not handed out, and the partitions that must wait."""

from collections import deque
from collections.abc import Iterable, Iterator

from logbroker.client.audience import TopicPartition
from logbroker.client.delivered import DeliveredBatch
from logbroker.client.handed_out import place_of


class Prefetched:
    """Batches in the order they came; of partitions that wait none is handed out."""

    def __init__(self) -> None:
        self.paused: set[TopicPartition] = set()
        """By their owner."""
        self._batches: deque[DeliveredBatch] = deque()
        self._stalled: dict[TopicPartition, int] = {}
        """Until so many answers are known."""

    def add(self, batch: DeliveredBatch) -> None:
        """Takes a batch from the broker."""
        self._batches.append(batch)

    def put_back(self, batches: Iterable[DeliveredBatch]) -> None:
        """Takes batches that go before all others, in their order."""
        self._batches.extendleft(reversed(list(batches)))

    def pop(self) -> DeliveredBatch | None:
        """Returns the next batch that may be handed out, which leaves."""
        if not (self.paused or self._stalled):
            return self._batches.popleft() if self._batches else None
        for at, batch in enumerate(self._batches):
            place = place_of(batch.lease)
            if place not in self.paused and place not in self._stalled:
                del self._batches[at]
                return batch
        return None

    def stall(self, place: TopicPartition) -> None:
        """Lets a partition wait until `go_on` was called as often."""
        self._stalled[place] = self._stalled.get(place, 0) + 1

    def go_on(self, place: TopicPartition) -> bool:
        """Takes back one `stall`; returns whether it was the last one."""
        self._stalled[place] -= 1
        if self._stalled[place]:
            return False
        del self._stalled[place]
        return True

    def drop_lost(self) -> None:
        """Leaves out what is not held any more."""
        self._batches = deque(part for batch in self._batches for part in batch.held())

    def clear(self) -> None:
        """Forgets all batches."""
        self._batches.clear()

    @property
    def record_count(self) -> int:
        """How many records wait."""
        return sum(batch.record_count for batch in self._batches)

    def __iter__(self) -> Iterator[DeliveredBatch]:
        return iter(self._batches)

    def __len__(self) -> int:
        return len(self._batches)
