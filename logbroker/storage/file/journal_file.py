"""A journal of the broker's own, read from its files while no engine needs to run."""

from pathlib import Path

from logbroker.record.batch import Batch
from logbroker.record.partition_id import PartitionId
from logbroker.storage.file import inspection, paths
from logbroker.storage.file.disk import Disk
from logbroker.storage.file.walk import Buffer, Walked
from logbroker.storage.journal import take_in


def read_events(data_dir: Path, name: str, disk: Disk) -> list[bytes]:
    """Returns the events of a journal, as far as they are sound; none where it is not there."""
    journal = PartitionId(name, name, 0)
    directory = paths.partition_directory(data_dir, journal)
    events: list[bytes] = []

    def take(walked: Walked, data: Buffer) -> None:
        take_in(Batch.decode(bytes(data[walked.position : walked.end]), journal.seed), events)

    for found in disk.names(directory):
        if paths.base_offset_of(found) is not None:
            inspection.walk_log(directory / found, journal.seed, disk, take)
    return events
