"""Files of a data directory, looked at while no engine needs to run. Changes nothing.

A file is known by its name. Whose it is says the checkpoint beside it; without one, the
caller must say, since the checksums are seeded with topic id and partition.
"""

from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from logbroker.errors import InvalidError
from logbroker.record.partition_id import PartitionId
from logbroker.storage.file import index_file, offset_index, paths, time_index
from logbroker.storage.file.checkpoint import Checkpoint
from logbroker.storage.file.contents import Contents
from logbroker.storage.file.disk import Disk
from logbroker.storage.file.index_file import IndexFile
from logbroker.storage.file.recovery import scan
from logbroker.storage.file.walk import Buffer, Walked


class Kind(StrEnum):
    """What a file is, by its name."""

    LOG = "log"
    INDEX = "index"
    TIME_INDEX = "timeindex"
    CHECKPOINT = "checkpoint"


class Finding(NamedTuple):
    """One thing that is wrong with a file."""

    kind: str
    """damage, missing offsets, torn tail, misfit, unreadable"""
    message: str
    details: dict[str, int]
    is_harm: bool = True
    """Missing offsets alone are not: the bytes are sound."""


class Report(NamedTuple):
    """What a file holds."""

    summary: str
    findings: list[Finding]


def kind_of(path: Path) -> Kind | None:
    """Returns what a file of this name is; None if it is none of ours."""
    if path.name == paths.CHECKPOINT:
        return Kind.CHECKPOINT
    if paths.base_offset_of(path.with_suffix(paths.LOG).name) is None:
        return None
    suffixes = {paths.LOG: Kind.LOG, paths.INDEX: Kind.INDEX, paths.TIME_INDEX: Kind.TIME_INDEX}
    return suffixes.get(path.suffix)


def files_at(path: Path) -> list[Path]:
    """Returns the path, or all files of ours below it; InvalidError if there is none."""
    if path.is_dir():
        found = sorted(each for each in path.rglob("*") if kind_of(each) and each.is_file())
        if found:
            return found
    elif path.exists() and kind_of(path):
        return [path]
    rule = "is no file or directory of segments, indexes or a checkpoint"
    raise InvalidError("INVALID_ARGUMENT", f"{path}: {rule}", path=str(path))


def owner_of(path: Path, disk: Disk) -> PartitionId | None:
    """Returns the partition that the checkpoint beside a file names."""
    data = disk.read_file(path.with_name(paths.CHECKPOINT))
    checkpoint = Checkpoint.decode(data) if data is not None else None
    return checkpoint.id if checkpoint else None


def base_offset_of(path: Path) -> int:
    """Returns the base offset in the name of a segment's file."""
    base_offset = paths.base_offset_of(path.with_suffix(paths.LOG).name)
    assert base_offset is not None
    return base_offset


def verify(path: Path, seed: int, disk: Disk) -> Report:
    """Returns what the file holds, and what is wrong with it."""
    match kind_of(path):
        case Kind.LOG:
            return _verify_log(path, seed, disk)
        case Kind.CHECKPOINT:
            return _verify_checkpoint(path, disk)
        case _:
            return _verify_index(path, seed, disk)


def walk_log(
    path: Path, seed: int, disk: Disk, show: Callable[[Walked, Buffer], None]
) -> list[Finding]:
    """Shows each sound batch of a segment, with all the file's bytes; returns what is wrong."""
    base_offset = base_offset_of(path)
    with disk.mapped(path) as data:
        found = scan(data, base_offset, seed, lambda batch: show(batch, data))
    findings = []
    for offset, next_offset, position, next_position in found.damage:
        details = {
            "offset": offset,
            "next_offset": next_offset,
            "position": position,
            "next_position": next_position,
        }
        if position == next_position:
            message = f"offsets {offset} to {next_offset} are not there"
            findings.append(Finding("missing offsets", message, details, is_harm=False))
            continue
        where = f"bytes {position} to {next_position}"
        message = f"offsets {offset} to {next_offset} are damaged: {where}"
        findings.append(Finding("damage", message, details))
    if found.torn_bytes:
        message = f"torn tail: {found.torn_bytes} bytes from position {found.end} on"
        details = {"position": found.end, "torn_bytes": found.torn_bytes}
        findings.append(Finding("torn tail", message, details))
    following = next_base_offset(path)
    if following is not None and following > found.next_offset:
        message = f"offsets {found.next_offset} to {following} are not there"
        details = {"offset": found.next_offset, "next_offset": following}
        findings.append(Finding("missing offsets", message, details, is_harm=False))
    return findings


def read_index(path: Path, seed: int, disk: Disk) -> IndexFile | None:
    """Returns the content of an `.index` or `.timeindex` file; None if it is not sound."""
    magic = offset_index.MAGIC if kind_of(path) is Kind.INDEX else time_index.MAGIC
    return index_file.decode(magic, disk.read_file(path) or b"", seed)


def index_entries(content: IndexFile) -> Iterator[tuple[int, int]]:
    """Yields key and value of each entry."""
    return zip(content.keys, content.values, strict=True)


def _verify_log(path: Path, seed: int, disk: Disk) -> Report:
    contents, count = Contents(base_offset_of(path)), 0

    def note(batch: Walked, _: Buffer) -> None:
        nonlocal count
        contents.note(batch)
        count += 1

    findings = walk_log(path, seed, disk, note)
    summary = f"offsets {contents.base_offset} to {contents.next_offset}, batches: {count}"
    return Report(summary, findings)


def _verify_index(path: Path, seed: int, disk: Disk) -> Report:
    content = read_index(path, seed, disk)
    if content is None:
        message = "not sound; it is made anew from the log at the next start"
        return Report("", [Finding("unreadable", message, {})])
    summary = f"entries: {len(content.keys)}"
    log = path.with_suffix(paths.LOG)
    base_offset = base_offset_of(path)
    is_there = disk.exists(log)
    made = Contents(base_offset)
    if is_there:
        with disk.mapped(log) as data:
            scan(data, base_offset, seed, made.note)
    index, times = made.encode(content.summary.file_bytes, seed)
    expected = index if kind_of(path) is Kind.INDEX else times
    if (
        not is_there
        or disk.read_file(path) != expected
        or disk.size(log) != content.summary.file_bytes
    ):
        message = "does not fit its log; it is made anew from the log when it is needed"
        return Report(summary, [Finding("misfit", message, {})])
    return Report(summary, [])


def _verify_checkpoint(path: Path, disk: Disk) -> Report:
    checkpoint = Checkpoint.decode(disk.read_file(path) or b"")
    if checkpoint is None:
        message = "not sound: nobody knows which topic this partition belongs to"
        return Report("", [Finding("unreadable", message, {})])
    start, following = checkpoint.log_start_offset, checkpoint.next_offset
    return Report(f"{checkpoint.id}, offsets {start} to {following}", [])


def next_base_offset(path: Path) -> int | None:
    """Returns where the segment behind this one begins; None if it is the last."""
    base_offset = base_offset_of(path)
    offsets = map(paths.base_offset_of, (each.name for each in path.parent.glob(f"*{paths.LOG}")))
    return min((at for at in offsets if at is not None and at > base_offset), default=None)
