"""What a stream carries: the batches that are not answered, request by request. Pure.

size_bytes = the sizes of these batches, as encoded
request_count = how many requests have a batch among them
"""

from collections import deque
from collections.abc import Sequence

from logbroker.client.lane import Lane
from logbroker.client.outgoing_batch import OutgoingBatch


class UnderWay:
    """Batches in the order of their answers."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self.request_count = 0
        self._batches: deque[tuple[OutgoingBatch, Lane, bool]] = deque()
        """The flag says that it is the last one of its request."""

    def add_request(self, batches: Sequence[tuple[OutgoingBatch, Lane]]) -> None:
        """Takes on the batches of one request."""
        assert batches
        last = batches[-1][0]
        for batch, lane in batches:
            self._batches.append((batch, lane, batch is last))
            self.size_bytes += batch.size_bytes
        self.request_count += 1

    def pop(self) -> tuple[OutgoingBatch, Lane]:
        """Returns the batch that is answered next, which leaves."""
        batch, lane, is_last = self._batches.popleft()
        self.size_bytes -= batch.size_bytes
        self.request_count -= is_last
        return batch, lane

    def first(self) -> tuple[OutgoingBatch, Lane] | None:
        """Returns the batch that is answered next, if there is one."""
        return self._batches[0][:2] if self._batches else None

    def clear(self) -> None:
        """Forgets all: the stream is lost."""
        self._batches.clear()
        self.size_bytes = self.request_count = 0
