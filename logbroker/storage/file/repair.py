"""What an operator may do to a segment that is damaged. Never done unasked.

A plan says what a choice would do and cost; carrying it out is the second step. The log file
is copied to `NAME.bak`, durably, before it is changed. Its index files are made anew.
"""

import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from logbroker.errors import InvalidError
from logbroker.storage.file import paths
from logbroker.storage.file.checkpoint import Checkpoint
from logbroker.storage.file.contents import Contents
from logbroker.storage.file.disk import Disk
from logbroker.storage.file.inspection import base_offset_of, next_base_offset
from logbroker.storage.file.offline import no_broker_on
from logbroker.storage.file.recovery import Scan, scan

LEVELS_BELOW_DATA_DIR = 4
"""topics/<topic>/<partition>/<file>"""


class Choice(StrEnum):
    """What may be done."""

    CUT_TAIL = "cut-tail"
    """Cut off what lies behind the last valid batch."""
    DROP_DAMAGE = "drop-damage"
    """Take out bad bytes that have a valid batch behind them."""
    REBUILD_INDEX = "rebuild-index"
    """Make both index files anew."""


class Plan(NamedTuple):
    """What the choices would do to one segment, and what that costs."""

    path: Path
    found: Scan
    file_bytes: int
    cut_bytes: int
    dropped_bytes: int
    index_entries: int | None
    """What the index files will have; None if they stay as they are."""
    lost: list[tuple[int, int]]
    """Offsets that are gone for good then, as half-open ranges: readers get DATA_LOSS there."""
    next_offset: int | None
    """What the next record will get, where a tail is cut off that had no offsets to lose."""

    @property
    def is_changing_log(self) -> bool:
        """Whether the log file becomes another."""
        return bool(self.cut_bytes or self.dropped_bytes)


@contextmanager
def nobody_holding(path: Path, disk: Disk) -> Iterator[None]:
    """Keeps brokers out of the data directory that a segment lies in, if it lies in one.

    PreconditionError (BROKER_RUNNING) if one holds it.
    """
    above = path.resolve().parents
    data_dir = above[LEVELS_BELOW_DATA_DIR - 1] if len(above) >= LEVELS_BELOW_DATA_DIR else None
    if data_dir is None or not disk.exists(data_dir / paths.LOCK):
        yield
        return
    with no_broker_on(data_dir, disk):
        yield


def plan(path: Path, seed: int, disk: Disk, choices: Collection[Choice]) -> Plan:
    """Returns what would become of a segment. Changes nothing."""
    contents = Contents(base_offset_of(path))
    with disk.mapped(path) as data:
        found, size = scan(data, contents.base_offset, seed, contents.note), len(data)
    cut_bytes = size - found.end if Choice.CUT_TAIL in choices else 0
    dropped = [each for each in found.damage if each.next_position > each.position]
    dropped = dropped if Choice.DROP_DAMAGE in choices else []
    lost, next_offset = [(each.offset, each.next_offset) for each in dropped], None
    if cut_bytes and found.torn_bytes:
        end = _end_offset(path, disk)
        if end is not None and end > found.next_offset:
            lost.append((found.next_offset, end))
        elif end is not None:
            next_offset = found.next_offset
    is_index_new = bool(Choice.REBUILD_INDEX in choices or cut_bytes or dropped)
    return Plan(
        path=path,
        found=found,
        file_bytes=size,
        cut_bytes=cut_bytes,
        dropped_bytes=sum(each.next_position - each.position for each in dropped),
        index_entries=len(contents.index.offsets) if is_index_new else None,
        lost=lost,
        next_offset=next_offset,
    )


def carry_out(plan: Plan, seed: int, disk: Disk) -> None:
    """Does it. InvalidError, and nothing is changed, if there is a `NAME.bak` already."""
    path, found = plan.path, plan.found
    if plan.is_changing_log:
        _keep(path, disk)
    if plan.dropped_bytes:
        end = found.end if plan.cut_bytes else plan.file_bytes
        edges = [(each.position, each.next_position) for each in found.damage] + [(end, end)]
        kept, at = [], 0
        with disk.mapped(path) as data:
            for start, following in edges:
                kept.append(bytes(data[at:start]))
                at = following
        disk.write_files(path.parent, {path: b"".join(kept)})
    elif plan.cut_bytes:
        descriptor = disk.open(path)
        try:
            disk.truncate(descriptor, found.end)
            disk.sync(descriptor)
        finally:
            disk.close(descriptor)
    if plan.index_entries is not None:
        _rebuild_index(path, seed, disk)


def _end_offset(path: Path, disk: Disk) -> int | None:
    """Returns where a segment's offsets end for those who read; None if nobody knows."""
    following = next_base_offset(path)
    if following is not None:
        return following
    data = disk.read_file(path.with_name(paths.CHECKPOINT))
    checkpoint = Checkpoint.decode(data) if data is not None else None
    return checkpoint.next_offset if checkpoint else None


def _rebuild_index(path: Path, seed: int, disk: Disk) -> None:
    contents = Contents(base_offset_of(path))
    with disk.mapped(path) as data:
        scan(data, contents.base_offset, seed, contents.note)
        index, times = contents.encode(len(data), seed)
    names = (path.with_suffix(paths.INDEX), path.with_suffix(paths.TIME_INDEX))
    disk.write_files(path.parent, dict(zip(names, (index, times), strict=True)))


def _keep(path: Path, disk: Disk) -> None:
    kept = path.with_name(path.name + ".bak")
    if kept.exists():
        message = f"{kept} is there already; move it away first"
        raise InvalidError("INVALID_ARGUMENT", message, path=str(kept))
    shutil.copy2(path, kept)
    descriptor = disk.open(kept)
    try:
        disk.sync(descriptor)
    finally:
        disk.close(descriptor)
    disk.sync_directory(path.parent)
