"""Runs of batches out of segments: from memory at once, from the disk in a thread.

Every byte that leaves here has been verified, and was copied once: from the page cache. A
run is a view of the buffer it was read into; the one buffer that all reads share is written
to again only when nobody has a view of it. A bounded number of sealed segments keep their
indexes in memory; the one that was loaded first forgets.
"""

from collections import OrderedDict

from logbroker.errors import LogbrokerError
from logbroker.limits import BATCH_BYTES_CEILING
from logbroker.storage.engine import Run
from logbroker.storage.file.disk import Disk
from logbroker.storage.file.flusher import Threads
from logbroker.storage.file.offset_index import INTERVAL_BYTES
from logbroker.storage.file.open_files import OpenFiles
from logbroker.storage.file.segment import Segment
from logbroker.storage.file.walk import find_run, size_needed

SCRATCH_BYTES = 2 << 20
"""Reads up to this size need no memory of their own, unless the last run is still held."""
LOADED_SEGMENTS = 64


class SegmentReader:
    """Of one engine."""

    def __init__(self, disk: Disk, files: OpenFiles, threads: Threads) -> None:
        self._disk = disk
        self._files = files
        self._threads = threads
        self._scratch = bytearray(SCRATCH_BYTES)
        self._loaded: OrderedDict[Segment, None] = OrderedDict()

    async def read(
        self, segment: Segment, offset: int, high_watermark: int, max_bytes: int, min_bytes: int
    ) -> Run | int:
        """Returns the run from the batch of `offset` on, at least one batch.

        If that batch needs it, returns how many bytes must be read at least; 0 if there is
        no sound batch with that offset, or the segment was removed meanwhile.
        """
        assert segment.contents
        entry = segment.contents.index.find(offset)
        if entry is None:
            return 0
        first_offset, position = entry
        available = segment.size_bytes - position
        most = min(max_bytes, BATCH_BYTES_CEILING) + INTERVAL_BYTES
        wanted = min(max(most, min_bytes), available)
        try:
            data = self._cached(segment, position, wanted)
            if data is None:
                data = await self._cold(segment, position, wanted)
        except LogbrokerError:
            if segment.file.is_removed:
                return 0
            raise
        found = find_run(data, segment.seed, first_offset, offset, high_watermark, max_bytes)
        if found.end > found.start:
            return Run(data[found.start : found.end], found.next_offset)
        needed = min(size_needed(data, segment.seed, found.end, INTERVAL_BYTES), available)
        return needed if needed > wanted else 0

    async def load(self, segment: Segment) -> None:
        """Loads the indexes of a sealed segment; makes them anew if need be."""
        try:
            segment.take(await self._threads.run(segment.load, self._disk))
        except LogbrokerError:
            if not segment.file.is_removed:
                raise
        else:
            self.keep(segment)

    def keep(self, segment: Segment) -> None:
        """Notes that a sealed segment has its indexes in memory."""
        self._loaded[segment] = None
        if len(self._loaded) > LOADED_SEGMENTS:
            oldest, _ = self._loaded.popitem(last=False)
            oldest.forget()

    def drop(self, segment: Segment) -> None:
        """Notes that a segment is gone."""
        self._loaded.pop(segment, None)

    def _cached(self, segment: Segment, position: int, size: int) -> memoryview | None:
        is_shared = size <= SCRATCH_BYTES and _has_no_views(self._scratch)
        buffer = memoryview(self._scratch if is_shared else bytearray(size))[:size]
        descriptor = self._files.descriptor(segment.file)
        return buffer if self._disk.read_cached(descriptor, buffer, position) else None

    async def _cold(self, segment: Segment, position: int, size: int) -> memoryview:
        async with self._threads.read_slot:
            with self._files.held(segment.file) as descriptor:
                read = self._threads.run(self._disk.read, descriptor, size, position)
                return memoryview(await read)


def _has_no_views(buffer: bytearray) -> bool:
    """Returns whether nobody can see it change: one that has views refuses another length."""
    try:
        buffer.append(0)
    except BufferError:
        return False
    buffer.pop()
    return True
