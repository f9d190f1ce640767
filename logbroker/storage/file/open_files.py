"""A bounded number of descriptors over all segment files; the least recently used closes.

    open_count <= max_count, as long as fewer than max_count files are held
    a file that is held, by a thread that reads or syncs it, is not closed
    a file with bytes that are not synced is synced before it is closed

A failed fdatasync is kept in `failure`: it is final, whoever asked for it. Connections take
descriptors too: where there is none left, files here make way.
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from logbroker.errors import LogbrokerError
from logbroker.storage.file.disk import Disk, lacks_descriptor

CLOSED = -1
LOOKED_AT = 32
"""Of those that were longest not used: where none of them is synced, hardly any will be."""


class OpenFile:
    """One segment file, open or not at the moment."""

    __slots__ = ("descriptor", "failure", "holds", "is_removed", "path", "synced", "written")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.descriptor = CLOSED
        self.holds = 0
        self.written = 0
        """Counts the changes made..."""
        self.synced = 0
        """... and how many of them are surely on the disk."""
        self.failure: LogbrokerError | None = None
        self.is_removed = False

    @property
    def is_dirty(self) -> bool:
        """Whether something is written that is not synced."""
        return self.written != self.synced


class OpenFiles:
    """The files that are open, the least recently used first."""

    def __init__(self, disk: Disk, max_count: int) -> None:
        self._disk = disk
        self._max_count = max_count
        self._files: OrderedDict[OpenFile, None] = OrderedDict()

    @property
    def open_count(self) -> int:
        """How many descriptors are open now."""
        return len(self._files)

    def descriptor(self, file: OpenFile, *, create: bool = False) -> int:
        """Returns the file's descriptor, good until the next call here; opens it if need be."""
        if file.descriptor != CLOSED:
            self._files.move_to_end(file)
            return file.descriptor
        if len(self._files) >= self._max_count:
            self.close_one()
        while file.descriptor == CLOSED:
            try:
                file.descriptor = self._disk.open(file.path, create=create)
            except LogbrokerError as error:
                if not (lacks_descriptor(error) and self.close_one()):
                    raise
        self._files[file] = None
        return file.descriptor

    @contextmanager
    def held(self, file: OpenFile) -> Iterator[int]:
        """Gives the file's descriptor, which stays open meanwhile."""
        descriptor = self.descriptor(file)
        file.holds += 1
        try:
            yield descriptor
        finally:
            file.holds -= 1
            if file.is_removed and not file.holds:
                self._close(file)

    def remove(self, file: OpenFile) -> None:
        """Closes the file for good, whether it is synced or not, once nobody holds it."""
        file.is_removed = True
        if file.descriptor != CLOSED and not file.holds:
            self._close(file)

    def close_one(self) -> bool:
        """Closes the file that was longest not used; returns whether there was one to close."""
        idle = list(islice((file for file in self._files if not file.holds), LOOKED_AT))
        if not idle:
            return False
        file = next((file for file in idle if not file.is_dirty), idle[0])
        if file.is_dirty:
            try:
                self._disk.sync(file.descriptor)
                file.synced = file.written
            except LogbrokerError as error:
                file.failure = error
        self._close(file)
        return True

    def _close(self, file: OpenFile) -> None:
        del self._files[file]
        descriptor, file.descriptor = file.descriptor, CLOSED
        self._disk.close(descriptor)
