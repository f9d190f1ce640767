"""One file of batches and its two indexes.

    base_offset <= every offset in the file < next_offset
    bytes 0 to size_bytes are batches, perhaps with damage between them; behind them are
    zeros up to file_bytes: room made in advance, while the segment is active
    the indexes lie in memory; their files are written at a roll and at a clean stop

What the indexes say is `contents`. A sealed segment has none until it is first needed.
"""

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import structlog

from logbroker.config import LogConfig
from logbroker.errors import LogbrokerError
from logbroker.record.batch import HEADER, Batch
from logbroker.storage.file import paths
from logbroker.storage.file.contents import Contents
from logbroker.storage.file.disk import Disk
from logbroker.storage.file.open_files import OpenFile, OpenFiles
from logbroker.storage.file.recovery import Scan, scan
from logbroker.storage.file.walk import Walked

log = structlog.get_logger(__name__)

FIRST_STEP_BYTES = 64 << 10
LAST_STEP_BYTES = 16 << 20
LATEST_BYTES = 4 << 10
"""A batch up to this size is kept in memory until the next one comes."""
SPARE_STEPS = 16
"""Room is made in advance only where the disk has this many times as much left."""


class Scanned(NamedTuple):
    """What is in a log file."""

    contents: Contents
    scan: Scan
    file_bytes: int


class Latest(NamedTuple):
    """The batch that was appended last, as it lies in the file."""

    base_offset: int
    next_offset: int
    data: bytes


class Segment:
    """A run of batches in one file."""

    def __init__(self, directory: Path, base_offset: int, seed: int) -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.next_offset = base_offset
        """In a sealed segment: where the next one begins, whatever this one has lost."""
        self.seed = seed
        self.size_bytes = 0
        self.file_bytes = 0
        self.contents: Contents | None = None
        self.last_append_time_ms: int | None = None
        """Of a sealed segment, once it was loaded; None also if there is no batch in it."""
        self.lost: list[tuple[int, int]] = []
        """Offsets lost to damage, as half-open ranges, as far as anyone has noticed."""
        self.gaps: set[tuple[int, int]] = set()
        """Those of them where no bytes are left: somebody dropped the damage."""
        self.found: Scan | None = None
        """By the last scan of all of it, if that found something wrong."""
        self.latest: Latest | None = None
        """For those who wait for it; None where it is large, or the segment is sealed."""
        self.file = OpenFile(paths.segment_path(directory, base_offset))
        self._is_torn = False

    def has_room(self, size: int, now_ms: int, config: LogConfig) -> bool:
        """Returns whether a batch of this size belongs here, and not into a new segment."""
        if not self.size_bytes:
            return True
        fits = self.size_bytes + size <= config.segment_bytes
        return fits and not self.is_old(now_ms, config)

    def is_old(self, now_ms: int, config: LogConfig) -> bool:
        """Returns whether the first batch is so old that the segment should be sealed."""
        assert self.contents
        is_empty = self.contents.is_empty
        return not is_empty and now_ms - self.contents.first_append_time_ms >= config.segment_ms

    def append(self, batch: Batch, files: OpenFiles, disk: Disk, config: LogConfig) -> None:
        """Writes the batch behind the last one. On an error nothing of it remains."""
        header, records = batch
        assert header.base_offset == self.next_offset
        assert header.records_bytes == len(records)
        assert self.contents
        position = self.size_bytes
        end = position + HEADER.size + len(records)
        descriptor = files.descriptor(self.file)
        if self._is_torn:
            self._cut(descriptor, disk)
        if end > self.file_bytes:
            self._make_room(descriptor, end, disk, config)
        self.file.written += 1
        encoded = header.encode(self.seed)
        try:
            disk.write(descriptor, (encoded, records), position)
        except LogbrokerError:
            self._is_torn = True
            with suppress(LogbrokerError):  # or before the next write
                self._cut(descriptor, disk)
            raise
        next_offset = header.base_offset + header.offset_span
        self.contents.note(
            Walked(
                position,
                end,
                header.base_offset,
                next_offset,
                header.append_time_ms,
                header.max_timestamp_ms,
            )
        )
        self.size_bytes, self.next_offset = end, next_offset
        self.latest = None
        if end - position <= LATEST_BYTES:
            self.latest = Latest(header.base_offset, next_offset, encoded + records)

    @property
    def has_spare(self) -> bool:
        """Whether something lies behind the last batch: zeros, or what a failed write left."""
        return self.file_bytes > self.size_bytes or self._is_torn

    def cut_spare(self, files: OpenFiles, disk: Disk) -> None:
        """Cuts off what lies behind the last batch."""
        if self.has_spare:
            self._cut(files.descriptor(self.file), disk)

    def note_cut(self) -> None:
        """Takes note that it was cut off."""
        self.file_bytes, self._is_torn = self.size_bytes, False

    def _cut(self, descriptor: int, disk: Disk) -> None:
        self.file.written += 1
        disk.truncate(descriptor, self.size_bytes)
        self.note_cut()

    def _make_room(self, descriptor: int, end: int, disk: Disk, config: LogConfig) -> None:
        step = min(max(self.file_bytes, FIRST_STEP_BYTES), LAST_STEP_BYTES)
        target = max(end, min(self.file_bytes + step, config.segment_bytes))
        with suppress(LogbrokerError):
            if disk.free_bytes(self.directory) >= SPARE_STEPS * step:
                disk.allocate(descriptor, self.file_bytes, target - self.file_bytes)
                end = target
        self.file_bytes = end

    def index_files(self) -> dict[Path, bytes]:
        """Returns both index files, by their paths."""
        assert self.contents
        return self._index_files(self.contents, self.file_bytes)

    def _index_files(self, contents: Contents, file_bytes: int) -> dict[Path, bytes]:
        index, times = contents.encode(file_bytes, self.seed)
        return {self._index: index, self._time_index: times}

    def read_indexes(self, disk: Disk) -> Contents | None:
        """Returns what the index files say; None if they do not fit. For a thread."""
        index, times = disk.read_file(self._index), disk.read_file(self._time_index)
        if index is None or times is None:
            return None
        file_bytes = disk.size(self.file.path)
        base_offset, seed = self.base_offset, self.seed
        return Contents.decode(
            index, times, base_offset=base_offset, file_bytes=file_bytes, seed=seed
        )

    def load(self, disk: Disk) -> Contents:
        """Returns what is in a sealed segment; makes its index files anew if need be.

        For a thread. The log file is never changed.
        """
        if contents := self.read_indexes(disk):
            return contents
        contents, _, _ = self.examine(disk)
        self.write_index_files(contents, disk)
        return contents

    def write_index_files(self, contents: Contents, disk: Disk) -> None:
        """Makes the index files of a sealed segment anew, if that can be done. For a thread."""
        log.info("index rebuilt", path=str(self.file.path), entries=len(contents.index.offsets))
        try:
            disk.write_files(self.directory, {}, hints=self.index_files_of(contents, disk))
        except LogbrokerError as error:
            log.warning("index not kept", path=str(self.file.path), reason=error.reason)

    def index_files_of(self, contents: Contents, disk: Disk) -> dict[Path, bytes]:
        """Returns what the index files of a sealed segment should be, by their paths."""
        return self._index_files(contents, disk.size(self.file.path))

    def examine(self, disk: Disk, size: int | None = None) -> Scanned:
        """Returns what a scan of the log file, or of its first `size` bytes, finds.

        For a thread. Trusts no index and changes nothing.
        """
        contents = Contents(self.base_offset)
        with disk.mapped(self.file.path) as data, data[:size] as part:
            found = scan(part, self.base_offset, self.seed, contents.note)
            return Scanned(contents, found, len(data))

    def take(self, contents: Contents) -> None:
        """Takes over what `load` or a scan has found in a segment that is not written to."""
        self.contents, self.size_bytes = contents, contents.end
        self.last_append_time_ms = None if contents.is_empty else contents.last_append_time_ms
        if contents.next_offset < self.next_offset:
            self.add_lost(contents.next_offset, self.next_offset)

    def take_examined(self, scanned: Scanned, size: int, next_offset: int) -> None:
        """Takes over a scan of the first `size` bytes, up to `next_offset`.

        Batches may have been appended meanwhile.
        """
        assert self.contents
        scanned.contents.go_on(self.contents, size)
        self.contents = scanned.contents
        self.note_scan(scanned.scan, next_offset)

    def note_scan(self, found: Scan, next_offset: int) -> None:
        """Notes what a scan found, up to `next_offset`, instead of what was known of it."""
        self.lost = [(each.offset, each.next_offset) for each in found.damage]
        if found.next_offset < next_offset:
            self.lost.append((found.next_offset, next_offset))
        self.gaps = {
            (each.offset, each.next_offset)
            for each in found.damage
            if each.position == each.next_position and each.next_offset < next_offset
        }
        self.found = found if self.lost else None

    def add_lost(self, offset: int, next_offset: int) -> None:
        """Notes that these offsets are lost."""
        if (offset, next_offset) not in self.lost:
            self.lost.append((offset, next_offset))

    def lost_at(self, offset: int) -> tuple[int, int] | None:
        """Returns the lost range that holds `offset`; None if there is none."""
        return next((each for each in self.lost if each[0] <= offset < each[1]), None)

    def next_known(self, offset: int) -> int:
        """Returns the first offset behind `offset` that the index knows, or the segment's end."""
        assert self.contents
        return self.contents.index.after(offset) or self.next_offset

    def forget(self) -> None:
        """Lets go of the indexes; `load` brings them back."""
        self.contents = None

    def remove(self, disk: Disk) -> None:
        """Unlinks the files. For a thread."""
        self._remove_indexes(disk)
        disk.unlink(self.file.path)

    def rename(self, path: Path, disk: Disk) -> None:
        """Gives the log file another name, and unlinks what goes with it. For a thread."""
        self._remove_indexes(disk)
        disk.rename(self.file.path, path)

    def _remove_indexes(self, disk: Disk) -> None:
        for path in (self._index, self._time_index):
            disk.unlink(path)

    @property
    def _index(self) -> Path:
        return paths.segment_path(self.directory, self.base_offset, paths.INDEX)

    @property
    def _time_index(self) -> Path:
        return paths.segment_path(self.directory, self.base_offset, paths.TIME_INDEX)
