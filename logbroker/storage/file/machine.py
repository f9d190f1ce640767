"""What all partitions of an engine share."""

from typing import NamedTuple

from logbroker.clock import Clock
from logbroker.storage.file.disk import Disk
from logbroker.storage.file.flusher import Threads
from logbroker.storage.file.open_files import OpenFiles
from logbroker.storage.file.reader import SegmentReader


class Machine(NamedTuple):
    """The disk and the clock, and what is there once for all files on it."""

    disk: Disk
    clock: Clock
    files: OpenFiles
    threads: Threads
    reader: SegmentReader
