"""What lies where in a segment: its two indexes, and what can be said without them. Pure.

offsets below next_offset, bytes below end: of the batches noted, in their order
index and times have entries for the same batches
"""

from typing import Self

from logbroker.storage.file import index_file, offset_index, time_index
from logbroker.storage.file.index_file import IndexFile, Summary
from logbroker.storage.file.offset_index import OffsetIndex
from logbroker.storage.file.time_index import NO_TIMESTAMP, TimeIndex
from logbroker.storage.file.walk import Walked


class Contents:
    """Grows by `note`: from appends, or from a scan of the log file."""

    __slots__ = (
        "base_offset",
        "end",
        "first_append_time_ms",
        "index",
        "last_append_time_ms",
        "max_timestamp_ms",
        "next_offset",
        "times",
    )

    def __init__(self, base_offset: int) -> None:
        self.base_offset = self.next_offset = base_offset
        self.end = 0
        self.first_append_time_ms = self.last_append_time_ms = 0
        self.max_timestamp_ms = NO_TIMESTAMP
        self.index = OffsetIndex()
        self.times = TimeIndex()

    @property
    def is_empty(self) -> bool:
        """Whether there is no batch."""
        return not self.index.offsets

    def note(self, batch: Walked) -> None:
        """Takes in the batch behind the last one. If something lies between, it gets an entry."""
        position, end, base_offset, next_offset, append_time_ms, max_timestamp_ms = batch
        is_behind = position == self.end and base_offset == self.next_offset
        if not is_behind or self.index.is_due(position):
            if not self.index.offsets:
                self.first_append_time_ms = append_time_ms
            self.index.add(base_offset, position)
            self.times.add(self.max_timestamp_ms, base_offset)
        else:
            self.index.recall(base_offset, position)
        self.end, self.next_offset = end, next_offset
        self.last_append_time_ms = append_time_ms
        if max_timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = max_timestamp_ms

    def go_on(self, newer: "Contents", position: int) -> None:
        """Takes over what `newer` has noted from `position` on."""
        if newer.end <= position:
            return
        entries = zip(
            newer.index.offsets, newer.index.positions, newer.times.maxima_ms, strict=True
        )
        for offset, at, max_before_ms in entries:
            if at >= position:
                self.index.add(offset, at)
                self.times.add(max(max_before_ms, self.max_timestamp_ms), offset)
        self.end, self.next_offset = newer.end, newer.next_offset
        self.last_append_time_ms = newer.last_append_time_ms
        self.max_timestamp_ms = max(self.max_timestamp_ms, newer.max_timestamp_ms)

    def encode(self, file_bytes: int, seed: int) -> tuple[bytes, bytes]:
        """Returns the `.index` and the `.timeindex` file beside a `.log` of so many bytes."""
        summary = Summary(
            self.base_offset,
            self.next_offset,
            self.end,
            file_bytes,
            self.first_append_time_ms,
            self.last_append_time_ms,
            self.max_timestamp_ms,
        )
        offsets = IndexFile(summary, self.index.offsets, self.index.positions)
        times = IndexFile(summary, self.times.maxima_ms, self.times.offsets)
        return (
            index_file.encode(offset_index.MAGIC, offsets, seed),
            index_file.encode(time_index.MAGIC, times, seed),
        )

    @classmethod
    def decode(
        cls, index: bytes, times: bytes, *, base_offset: int, file_bytes: int, seed: int
    ) -> Self | None:
        """Returns what the files say; None if they do not fit the log, or each other."""
        by_offset = index_file.decode(offset_index.MAGIC, index, seed)
        by_time = index_file.decode(time_index.MAGIC, times, seed)
        if by_offset is None or by_time is None or by_offset.summary != by_time.summary:
            return None
        summary = by_offset.summary
        if (summary.base_offset, summary.file_bytes) != (base_offset, file_bytes):
            return None
        found = cls(base_offset)
        found.next_offset, found.end = summary.next_offset, summary.size_bytes
        found.first_append_time_ms = summary.first_append_time_ms
        found.last_append_time_ms = summary.last_append_time_ms
        found.max_timestamp_ms = summary.max_timestamp_ms
        found.index = OffsetIndex(by_offset.keys, by_offset.values)
        found.times = TimeIndex(by_time.keys, by_time.values)
        return found
