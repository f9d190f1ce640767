"""A disk that fills, tears, fails to sync, and forgets what was not synced.

    disk = FaultyDisk(data_dir)
    disk.fail("write", errno.ENOSPC, after=3)     the fourth write from now on, once
    disk.fail("write", errno.EIO, torn_bytes=9)   9 bytes get there
    disk.fail("sync", errno.EIO)
    disk.is_full = True                           until it is False again
    disk.kill()                                   the process is dead: nothing happens any more
    disk.lose_power()                             and what was not synced is gone

After `kill` and `lose_power` every call fails; an engine that is closed then leaves the
directory as it is, and another one can be started there on another disk.
"""

import errno
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from logbroker.storage.file.disk import Disk, failure
from logbroker.storage.file.paths import LOCK


class _Fault(NamedTuple):
    call: str
    errno: int
    after: int
    torn_bytes: int


class _File:
    """A file, as it would be after a loss of power."""

    def __init__(self, content: bytes) -> None:
        self.content = content


class _Directory:
    """A directory, as it would be after a loss of power."""

    def __init__(self) -> None:
        self.names: dict[str, _File | _Directory] = {}


class FaultyDisk(Disk):
    """Below one directory; it knows what of it would survive a loss of power."""

    def __init__(self, root: Path) -> None:
        self.is_full = False
        self.sync_count = 0
        """Of calls to `sync` that succeeded."""
        self._root = root
        self._is_dead = False
        self._faults: list[_Fault] = []
        self._nodes: dict[int, _File | _Directory] = {}
        """By inode: what is there now. What is removed lives on in names that are not synced."""
        self._lock = Lock()
        """Held while names and nodes are looked at: threads sync at the same time."""
        if root.exists():
            self._keep(root)

    def fail(self, call: str, code: int, *, after: int = 0, torn_bytes: int = 0) -> None:
        """Makes one call of this name fail, `after` others of it have succeeded."""
        self._faults.append(_Fault(call, code, after, torn_bytes))

    def kill(self) -> None:
        """Makes every call fail from now on, as if the process were dead."""
        self._is_dead = True

    def lose_power(self) -> None:
        """Kills, and takes back what was not synced."""
        self._is_dead = True
        with self._lock:
            for path in self._root.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            root = self._nodes.get(self._root.stat().st_ino)
            if isinstance(root, _Directory):
                self._restore(self._root, root)

    def _restore(self, directory: Path, node: _Directory) -> None:
        for name, child in node.names.items():
            path = directory / name
            if isinstance(child, _File):
                path.write_bytes(child.content)
            else:
                path.mkdir()
                self._restore(path, child)

    def _keep(self, directory: Path) -> None:
        """Notes that a directory is on the disk with all that is in it."""
        node = self._node_of(directory)
        assert isinstance(node, _Directory)
        for child in directory.iterdir():
            if child.name != LOCK:
                node.names[child.name] = self._node_of(child)
                if child.is_dir():
                    self._keep(child)

    def _node_of(self, path: Path) -> _File | _Directory:
        inode = path.stat().st_ino
        if inode not in self._nodes:
            self._nodes[inode] = _Directory() if path.is_dir() else _File(path.read_bytes())
        return self._nodes[inode]

    def _forget(self, path: Path) -> None:
        """Notes that a file or directory goes: its inode may soon be another's."""
        for gone in (path, *path.rglob("*")):
            with suppress(FileNotFoundError):
                self._nodes.pop(gone.lstat().st_ino, None)

    def open(self, path: Path, *, create: bool = False) -> int:
        """As Disk."""
        is_new = create and not path.exists()
        self._enter("open", grows=is_new)
        with self._lock:
            descriptor = super().open(path, create=create)
            if is_new:
                self._nodes[os.fstat(descriptor).st_ino] = _File(b"")
            else:
                self._node_of(path)
        return descriptor

    def write(self, descriptor: int, buffers: Sequence[bytes | memoryview], position: int) -> None:
        """As Disk."""
        torn_bytes = self._torn_bytes("write")
        if torn_bytes:
            os.pwrite(descriptor, b"".join(buffers)[:torn_bytes], position)
        self._enter("write", grows=True)
        super().write(descriptor, buffers, position)

    def allocate(self, descriptor: int, position: int, size: int) -> None:
        """As Disk."""
        self._enter("allocate", grows=True)
        super().allocate(descriptor, position, size)

    def truncate(self, descriptor: int, size: int) -> None:
        """As Disk."""
        self._enter("truncate")
        super().truncate(descriptor, size)

    def sync(self, descriptor: int) -> None:
        """As Disk; what the file holds now survives."""
        self._enter("sync")
        super().sync(descriptor)
        with self._lock:
            found = os.fstat(descriptor)
            node = self._nodes.get(found.st_ino)
            if isinstance(node, _File) and not self._is_dead:
                node.content = os.pread(descriptor, found.st_size, 0)
            self.sync_count += 1

    def sync_directory(self, directory: Path) -> None:
        """As Disk; the names in the directory survive."""
        self._enter("sync_directory")
        super().sync_directory(directory)
        with self._lock:
            if self._is_dead:
                return
            node = self._node_of(directory)
            assert isinstance(node, _Directory)
            children = (child for child in directory.iterdir() if child.name != LOCK)
            node.names = {child.name: self._node_of(child) for child in children}

    def rename(self, old: Path, new: Path) -> None:
        """As Disk."""
        self._enter("rename")
        with self._lock:
            self._forget(new)
            super().rename(old, new)

    def unlink(self, path: Path) -> None:
        """As Disk."""
        self._enter("unlink")
        with self._lock:
            self._forget(path)
            super().unlink(path)

    def remove_tree(self, directory: Path) -> None:
        """As Disk."""
        self._enter("remove_tree")
        with self._lock:
            self._forget(directory)
            super().remove_tree(directory)

    def remove_empty(self, directory: Path) -> bool:
        """As Disk."""
        self._enter("remove_empty")
        with self._lock:
            if directory.exists() and not any(directory.iterdir()):
                self._forget(directory)
            return super().remove_empty(directory)

    def make_directory(self, directory: Path) -> None:
        """As Disk."""
        missing = [path for path in (directory, *directory.parents) if not path.exists()]
        self._enter("make_directory", grows=bool(missing))
        super().make_directory(directory)

    def free_bytes(self, directory: Path) -> int:
        """As Disk; 0 if it is full."""
        return 0 if self.is_full else super().free_bytes(directory)

    def _torn_bytes(self, call: str) -> int:
        due = (fault.torn_bytes for fault in self._faults if fault[0] == call and not fault.after)
        return next(due, 0)

    def _enter(self, call: str, *, grows: bool = False) -> None:
        if self._is_dead:
            raise failure(OSError(errno.EIO, "the process is dead"), call)
        if self.is_full and grows:
            raise failure(OSError(errno.ENOSPC, "full"), call)
        for index, fault in enumerate(self._faults):
            if fault.call == call:
                if not fault.after:
                    del self._faults[index]
                    raise failure(OSError(fault.errno, "as ordered"), call)
                self._faults[index] = fault._replace(after=fault.after - 1)
                return
