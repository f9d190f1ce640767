"""Whether all bytes of one sealed segment are still good: read in steps, from the disk.

    every batch below `position` is sound, but for damage that is known already
    `found` is what there is, once that is clear

A step reads little, so that whoever makes them can take the time it should take. Where
something new is wrong, the last one scans the whole file, which nobody may cut meanwhile.
"""

from typing import NamedTuple

from logbroker.storage.file.contents import Contents
from logbroker.storage.file.disk import Disk
from logbroker.storage.file.offset_index import INTERVAL_BYTES
from logbroker.storage.file.recovery import Damage, Scan
from logbroker.storage.file.segment import Segment
from logbroker.storage.file.walk import Walked, size_needed, walk

STEP_BYTES = 64 << 10


class Step(NamedTuple):
    """What a step has cost."""

    size: int
    batch_count: int


class SegmentCheck:
    """Trusts no index and changes nothing."""

    def __init__(self, segment: Segment, disk: Disk, step_bytes: int = STEP_BYTES) -> None:
        self.segment = segment
        self.contents = Contents(segment.base_offset)
        self.found: Scan | None = None
        self.is_last_a_scan = False
        """Whether the next step is the last one, over the whole file."""
        self._disk = disk
        self._known = segment.found
        self._damage: list[Damage] = []
        """Passed over: known from an earlier scan."""
        self._position, self._offset = 0, segment.base_offset
        self._step_bytes = self._wanted = step_bytes

    def step(self) -> Step:
        """Reads on. For a thread."""
        if self.is_last_a_scan:
            return Step(self._examine(), 0)
        segment, start, batch_count = self.segment, self._position, 0
        data = self._disk.read_aside(segment.file.path, self._wanted, start)
        is_at_end = len(data) < self._wanted
        for position, end, first, following, appended_ms, latest_ms in walk(
            data, segment.seed, 0, self._offset
        ):
            self.contents.note(
                Walked(start + position, start + end, first, following, appended_ms, latest_ms)
            )
            self._position, self._offset = start + end, following
            batch_count += 1
        if self._offset >= segment.next_offset:
            self._end()
        elif self._position > start:
            self._wanted = self._step_bytes
        elif not is_at_end and (needed := self._needed(data)):
            self._wanted = needed
        elif not self._pass_known():
            self.is_last_a_scan = True
        return Step(len(data), batch_count)

    def index_files_differ(self) -> bool:
        """Returns whether the index files are not what they should be. For a thread."""
        files = self.segment.index_files_of(self.contents, self._disk)
        return any(self._disk.read_file(path) != expected for path, expected in files.items())

    def _needed(self, data: bytes) -> int:
        """Returns how much to read for the next batch; 0 if that would not help."""
        needed = size_needed(data, self.segment.seed, 0, INTERVAL_BYTES)
        return needed if needed > len(data) else 0

    def _pass_known(self) -> bool:
        """Goes on behind damage that an earlier scan found here; returns whether there is any."""
        if self._known is None:
            return False
        for damage in self._known.damage:
            if (damage.position, damage.offset) == (self._position, self._offset):
                self._damage.append(damage)
                self._position, self._offset = damage.next_position, damage.next_offset
                return True
        tail = self._known.next_offset, self.segment.next_offset
        if tail in self.segment.lost and self._known.end == self._position:
            self._end()
            return True
        return False

    def _end(self) -> None:
        torn_bytes = self._known.torn_bytes if self._known else 0
        self.found = Scan(self._offset, self._position, torn_bytes, tuple(self._damage))

    def _examine(self) -> int:
        self.contents, self.found, file_bytes = self.segment.examine(self._disk)
        return file_bytes
