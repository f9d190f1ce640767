"""Which partitions take no more writes, since the disk failed under them."""

import asyncio
from collections.abc import Iterator

from logbroker.record.partition_id import PartitionId


class Failures:
    """Of an engine. A partition is in here until it is opened anew, or deleted."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        """Set by the next change, after which there is another one to wait for."""
        self._partitions: set[PartitionId] = set()

    def add(self, partition: PartitionId) -> None:
        """Takes note that a partition has failed."""
        self._partitions.add(partition)
        self._tell()

    def remove(self, partition: PartitionId) -> None:
        """Takes note that it is gone; nothing if it had not failed."""
        if partition in self._partitions:
            self._partitions.remove(partition)
            self._tell()

    def _tell(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def __iter__(self) -> Iterator[PartitionId]:
        return iter(self._partitions)
