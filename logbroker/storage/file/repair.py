"""What an operator may do to a segment that is damaged. Never done unasked.

The log file is copied to `NAME.bak` before it is changed. Its index files are made anew.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from logbroker.errors import InvalidError, PreconditionError
from logbroker.storage.file import paths
from logbroker.storage.file.contents import Contents
from logbroker.storage.file.disk import Disk
from logbroker.storage.file.inspection import base_offset_of
from logbroker.storage.file.recovery import Scan, scan

LEVELS_BELOW_DATA_DIR = 4
"""topics/<topic>/<partition>/<file>"""


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
    lock = disk.lock(data_dir / paths.LOCK)
    if lock is None:
        message = f"a broker holds the data directory {data_dir}; stop it first"
        raise PreconditionError("BROKER_RUNNING", message, path=str(data_dir))
    try:
        yield
    finally:
        disk.close(lock)


def cut_tail(path: Path, seed: int, disk: Disk) -> int:
    """Cuts off what lies behind the last valid batch; returns how many bytes that were."""
    found, size = _scan(path, seed, disk)
    cut = size - found.end
    if cut:
        _keep(path)
        descriptor = disk.open(path)
        try:
            disk.truncate(descriptor, found.end)
            disk.sync(descriptor)
        finally:
            disk.close(descriptor)
        rebuild_index(path, seed, disk)
    return cut


def drop_damage(path: Path, seed: int, disk: Disk) -> int:
    """Writes the file again without its damaged bytes; returns how many those were.

    The offsets that were damaged are lost for good; reading goes on saying so.
    """
    found, _ = _scan(path, seed, disk)
    spans = [(each.position, each.next_position) for each in found.damage]
    dropped = sum(end - start for start, end in spans)
    if dropped:
        _keep(path)
        kept, at = [], 0
        with disk.mapped(path) as data:
            for start, end in [*spans, (len(data), len(data))]:
                kept.append(bytes(data[at:start]))
                at = end
        disk.write_files(path.parent, {path: b"".join(kept)})
        rebuild_index(path, seed, disk)
    return dropped


def rebuild_index(path: Path, seed: int, disk: Disk) -> int:
    """Makes both index files anew from the log; returns how many entries they have."""
    contents = Contents(base_offset_of(path))
    with disk.mapped(path) as data:
        scan(data, contents.base_offset, seed, contents.note)
        index, times = contents.encode(len(data), seed)
    names = (path.with_suffix(paths.INDEX), path.with_suffix(paths.TIME_INDEX))
    disk.write_files(path.parent, dict(zip(names, (index, times), strict=True)))
    return len(contents.index.offsets)


def _scan(path: Path, seed: int, disk: Disk) -> tuple[Scan, int]:
    with disk.mapped(path) as data:
        return scan(data, base_offset_of(path), seed), len(data)


def _keep(path: Path) -> None:
    kept = path.with_name(path.name + ".bak")
    if kept.exists():
        message = f"{kept} is there already; move it away first"
        raise InvalidError("INVALID_ARGUMENT", message, path=str(kept))
    shutil.copy2(path, kept)
