"""The segments of a partition, in order; at most the last one is active.

every segment ends where the next one begins; what is not there between, is lost
log_start_offset <= next_offset, and no segment lies wholly before log_start_offset
but for those that are about to be removed, and the active one
"""

from bisect import bisect_right
from collections.abc import Iterator

from logbroker.storage.file.segment import Segment


class Segments:
    """Grows at the end and shrinks at the beginning."""

    def __init__(
        self,
        segments: list[Segment],
        *,
        log_start_offset: int,
        next_offset: int,
        append_time_ms: int,
        is_appendable: bool,
    ) -> None:
        self.log_start_offset = log_start_offset
        self.next_offset = next_offset
        """What the next record gets."""
        self.durable_offset = next_offset
        """Batches up to it are on the disk."""
        self.append_time_ms = append_time_ms
        """Of the last batch."""
        self.active = segments[-1] if is_appendable else None
        self.sealing: list[Segment] = []
        """Sealed, and their index files not written yet."""
        self._segments = segments
        self._base_offsets = [segment.base_offset for segment in segments]

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    @property
    def size_bytes(self) -> int:
        """Of all of them."""
        return sum(segment.size_bytes for segment in self._segments)

    def first(self, count: int) -> list[Segment]:
        """Returns so many of the oldest."""
        return self._segments[:count]

    def begin(self, segment: Segment) -> None:
        """Adds the segment that is written to from now on."""
        assert self.active is None
        assert segment.base_offset == self.next_offset
        self._segments.append(segment)
        self._base_offsets.append(segment.base_offset)
        self.active = segment

    def seal(self) -> None:
        """Ends the active segment. The next flush cuts it; its indexes are saved after that."""
        segment = self.active
        assert segment
        assert segment.contents
        if segment.has_spare:
            segment.file.written += 1  # until it is cut there is something to flush
        segment.last_append_time_ms = segment.contents.last_append_time_ms
        segment.latest = None
        self.sealing.append(segment)
        self.active = None

    def take_before_start(self) -> list[Segment]:
        """Takes out the segments that lie before the log start offset, and returns them."""
        gone = [
            segment
            for segment in self._segments
            if segment.next_offset <= self.log_start_offset and segment is not self.active
        ]
        del self._segments[: len(gone)], self._base_offsets[: len(gone)]
        return gone

    def holding(self, offset: int) -> tuple[Segment | None, int]:
        """Returns the segment of `offset` and its end; where it is missing, None and the gap's."""
        at = bisect_right(self._base_offsets, offset) - 1
        if at >= 0 and offset < self._segments[at].next_offset:
            return self._segments[at], self._segments[at].next_offset
        is_last = at + 1 == len(self._segments)
        return None, self.next_offset if is_last else self._base_offsets[at + 1]
