"""What a partition's directory holds, made good: the first thing that happens to a log.

The next offset is the largest that any file vouches for: what the last segment holds, what
the checkpoint says, what the name of the last segment says. What is missing below it is
lost, and reported as such by whoever reads there. The log start is the largest that the
checkpoint or a mark beside it says.
"""

from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import structlog

from logbroker.errors import LogbrokerError, UnavailableError
from logbroker.record.partition_id import PartitionId
from logbroker.storage.file import paths
from logbroker.storage.file.checkpoint import Checkpoint
from logbroker.storage.file.disk import Disk
from logbroker.storage.file.segment import Scanned, Segment

log = structlog.get_logger(__name__)


class Opened(NamedTuple):
    """What there is."""

    segments: list[Segment]
    """In order; the last one is loaded."""
    checkpoint: Checkpoint
    """As it should be now."""
    is_appendable: bool
    """Whether the last segment goes on; if not, the next batch begins another."""
    torn_bytes: int
    is_index_saved: bool
    is_checkpoint_saved: bool
    is_start_saved: bool
    """Whether the log start is in the checkpoint alone, and not in marks beside it."""


def damaged(topic: str, partition: int, directory: Path) -> UnavailableError:
    """Returns the error of a partition whose checkpoint cannot be read."""
    message = f"the checkpoint in {directory} cannot be read; its segments are left alone"
    return UnavailableError(
        "TOPIC_DAMAGED", message, topic=topic, partition=partition, path=str(directory)
    )


def open_partition(
    disk: Disk, directory: Path, partition: PartitionId, *, was_clean: bool
) -> Opened:
    """Reads the directory, repairs what may be repaired. For a thread."""
    for name in disk.names(directory):
        if name.endswith(paths.TMP):
            disk.unlink(directory / name)
    saved = _read_checkpoint(disk, directory, partition)
    marks = _marks(disk, directory)
    checkpoint = _with_start(saved, max(marks, default=0))
    segments = _segments(disk, directory, partition.seed, checkpoint.log_start_offset)
    if not segments:
        return Opened([], checkpoint, False, 0, True, checkpoint == saved, not marks)
    if not was_clean:
        _read_anew(disk, segments, checkpoint.next_offset)
    contents = segments[-1].read_indexes(disk) if was_clean else None
    is_index_saved, torn_bytes = contents is not None, 0
    if contents is None:
        contents, found, _ = _examine_last(disk, segments, checkpoint.next_offset)
        for damage in found.damage:
            segments[-1].add_lost(damage.offset, damage.next_offset)
        torn_bytes = found.torn_bytes
    last = segments[-1]
    last.next_offset = contents.next_offset
    last.take(contents)
    if torn_bytes:
        _cut(disk, last, torn_bytes)
    if not was_clean:
        _sync(disk, segments)
    next_offset = max(checkpoint.next_offset, last.next_offset)
    is_appendable = next_offset == last.next_offset
    if not is_appendable:
        last.next_offset = next_offset
        last.take(contents)
    append_time_ms = max(checkpoint.append_time_ms, _append_time_ms(disk, segments))
    found_now = Checkpoint(
        topic=partition.topic,
        topic_id=partition.topic_id,
        partition=partition.partition,
        log_start_offset=checkpoint.log_start_offset,
        next_offset=next_offset,
        append_time_ms=append_time_ms,
    )
    return Opened(
        segments,
        found_now,
        is_appendable,
        torn_bytes,
        is_index_saved,
        is_checkpoint_saved=found_now == saved,
        is_start_saved=not marks,
    )


def _marks(disk: Disk, directory: Path) -> list[int]:
    """Returns what marks say of the log start. Who made one may have died before it was empty."""
    marks = {name: at for name in disk.names(directory) if (at := paths.start_of(name)) is not None}
    full = [path for path in map(directory.joinpath, marks) if disk.size(path)]
    with suppress(LogbrokerError):  # then they take room until a checkpoint is written
        if full:
            disk.sync_directory(directory)
        for path in full:
            disk.empty(path)
    return list(marks.values())


def _with_start(checkpoint: Checkpoint, log_start_offset: int) -> Checkpoint:
    """Returns it with a log start offset, if that is a later one."""
    start = max(checkpoint.log_start_offset, log_start_offset)
    next_offset = max(checkpoint.next_offset, start)
    return replace(checkpoint, log_start_offset=start, next_offset=next_offset)


def _read_checkpoint(disk: Disk, directory: Path, partition: PartitionId) -> Checkpoint:
    data = disk.read_file(directory / paths.CHECKPOINT)
    checkpoint = Checkpoint.decode(data) if data is not None else None
    if checkpoint and checkpoint.id == partition:
        return checkpoint
    if partition.is_internal:
        return _made_anew(disk, directory, partition)
    if data is not None or any(map(paths.is_ours, disk.names(directory))):
        raise damaged(partition.topic, partition.partition, directory)
    checkpoint = Checkpoint(
        topic=partition.topic, topic_id=partition.topic_id, partition=partition.partition
    )
    _write_first(disk, directory, checkpoint)
    return checkpoint


def _write_first(disk: Disk, directory: Path, checkpoint: Checkpoint) -> None:
    """Writes a partition's first checkpoint, behind which all names above it are durable.

    Who made the directories may have failed, or died, before they were.
    """
    for above in (directory.parent, directory.parent.parent):
        disk.sync_directory(above)
    disk.write_files(directory, {directory / paths.CHECKPOINT: checkpoint.encode()})


def _made_anew(disk: Disk, directory: Path, partition: PartitionId) -> Checkpoint:
    """Returns the checkpoint of an internal partition as its segments have it."""
    names = disk.names(directory)
    offsets = [offset for name in names if (offset := paths.base_offset_of(name)) is not None]
    checkpoint = Checkpoint(
        topic=partition.topic,
        topic_id=partition.topic_id,
        partition=partition.partition,
        log_start_offset=min(offsets, default=0),
        next_offset=max(offsets, default=0),
    )
    if any(map(paths.is_ours, names)):
        log.error("checkpoint lost, made anew", path=str(directory / paths.CHECKPOINT))
    _write_first(disk, directory, checkpoint)
    return checkpoint


def _segments(disk: Disk, directory: Path, seed: int, log_start_offset: int) -> list[Segment]:
    names = disk.names(directory)
    offsets = [offset for name in names if (offset := paths.base_offset_of(name)) is not None]
    segments = [Segment(directory, offset, seed) for offset in offsets]
    for segment, following in pairwise(segments):
        segment.next_offset = following.base_offset
    for segment in segments:
        segment.size_bytes = segment.file_bytes = disk.size(segment.file.path)
    gone = [segment for segment in segments[:-1] if segment.next_offset <= log_start_offset]
    for segment in gone:
        segment.remove(disk)
    return segments[len(gone) :]


def _read_anew(disk: Disk, segments: list[Segment], durable_offset: int) -> None:
    """Sees to it that what is found in segments is what the disk has, not memory alone."""
    for segment in segments:
        if segment is segments[-1] or segment.next_offset > durable_offset:
            descriptor = disk.open(segment.file.path)
            try:
                disk.sync(descriptor)
                disk.forget_cached(descriptor)
            finally:
                disk.close(descriptor)


def _examine_last(disk: Disk, segments: list[Segment], durable_offset: int) -> Scanned:
    """Returns what the last segment holds, once those that only have a name are removed.

    When the power goes, the name of a new segment may be on the disk, and batches before it
    not. If none of those was surely durable, the tail of the segment before is torn.
    """
    scanned = segments[-1].examine(disk)
    while scanned.contents.is_empty and len(segments) > 1:
        last, before = segments[-1], segments[-2]
        if durable_offset >= last.base_offset:
            break
        found = before.examine(disk)
        if found.contents.next_offset >= last.base_offset:
            break
        log.warning("empty segment removed", path=str(last.file.path), size_bytes=last.file_bytes)
        segments.pop().remove(disk)
        scanned = found
    return scanned


def _cut(disk: Disk, segment: Segment, torn_bytes: int) -> None:
    """Cuts the torn tail off, and the zeros behind it."""
    log.warning(
        "torn tail cut",
        path=str(segment.file.path),
        torn_bytes=torn_bytes,
        next_offset=segment.next_offset,
    )
    descriptor = disk.open(segment.file.path)
    try:
        disk.truncate(descriptor, segment.size_bytes)
        disk.sync(descriptor)
    finally:
        disk.close(descriptor)
    segment.file_bytes = segment.size_bytes


def _sync(disk: Disk, segments: list[Segment]) -> None:
    """Makes durable what a killed process had written: readers will see it now."""
    for segment in segments:
        descriptor = disk.open(segment.file.path)
        try:
            disk.sync(descriptor)
        finally:
            disk.close(descriptor)
    disk.sync_directory(segments[-1].directory)


def _append_time_ms(disk: Disk, segments: list[Segment]) -> int:
    for segment in reversed(segments[-2:]):
        with suppress(LogbrokerError):
            contents = segment.contents or segment.load(disk)
            if not contents.is_empty:
                return contents.last_append_time_ms
    return 0
