"""File names to offsets and back, and where everything lies in a data directory. Pure.

    lock  clean                                  who holds it, and how it was left
    scrub                                        how far the scrub has come
    topics/<topic>/<partition>/checkpoint
    topics/<topic>/<partition>/<base offset, 20 digits>.log .index .timeindex
    topics/<topic>/<partition>/<log start offset, 20 digits>.start
    lost/<topic>/                                topics an operator has put aside
    trash/<random name>/                         deleted partitions, until they are unlinked

A name with `.tmp` at its end is a file that was not finished.
"""

import re
from pathlib import Path

from logbroker.errors import InvalidError
from logbroker.limits import NAME_CHARS
from logbroker.record.partition_id import PartitionId

LOCK, CLEAN, TOPICS, TRASH, CHECKPOINT = "lock", "clean", "topics", "trash", "checkpoint"
SCRUB, LOST = "scrub", "lost"
LOG, INDEX, TIME_INDEX, TMP, START = ".log", ".index", ".timeindex", ".tmp", ".start"

SEGMENT = re.compile(r"([0-9]{20})\.log")
START_MARK = re.compile(r"([0-9]{20})\.start")
TOPIC = re.compile(rf"(?!-|\.\.?\Z)[A-Za-z0-9._-]{{1,{NAME_CHARS}}}")
PARTITION = re.compile(r"0|[1-9][0-9]{0,8}")


def segment_path(directory: Path, base_offset: int, suffix: str = LOG) -> Path:
    """Returns the path of a segment's file, or of a mark of the log start."""
    assert base_offset >= 0
    return directory / f"{base_offset:020}{suffix}"


def base_offset_of(name: str) -> int | None:
    """Returns the base offset that the name of a `.log` file states; None for other names."""
    match = SEGMENT.fullmatch(name)
    return int(match[1]) if match else None


def start_of(name: str) -> int | None:
    """Returns the log start offset that the name of a `.start` file states; None for others."""
    match = START_MARK.fullmatch(name)
    return int(match[1]) if match else None


def partition_directory(data_dir: Path, partition: PartitionId) -> Path:
    """Returns where a partition lives. InvalidError for a name that is no directory of ours."""
    if not TOPIC.fullmatch(partition.topic):
        message = f"{partition.topic!r} cannot be the name of a directory"
        raise InvalidError("INVALID_NAME", message, name=partition.topic)
    return data_dir / TOPICS / partition.topic / str(partition.partition)


def partition_number_of(name: str) -> int | None:
    """Returns the partition that a directory's name states; None for other names."""
    return int(name) if PARTITION.fullmatch(name) else None


def is_ours(name: str) -> bool:
    """Returns whether a file of this name in a partition's directory is worth keeping."""
    offsets = base_offset_of(name), start_of(name)
    return name == CHECKPOINT or offsets != (None, None)
