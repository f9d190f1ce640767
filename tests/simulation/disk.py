"""The system calls of one process, on a disk in memory that can fail in every way we know.

disk = SimulatedDisk(platter, random, counts)
disk.chances["sync"] = Fault(errno.EIO, 0.01)    from now on one call in a hundred fails
disk.is_full = True                              until it is False again
"""

import errno
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

from logbroker.errors import LogbrokerError
from logbroker.storage.file.disk import Disk, failure

from .platter import Directory, File, Naming, Node, Platter, Resize, Write

FREE_BYTES = 1 << 40
COLD_CHANCE = 0.1
"""That a read has to wait for the disk."""


class Fault(NamedTuple):
    """How often a call fails, and how."""

    errno: int
    chance: float


class SimulatedDisk(Disk):
    """As one process sees it: its descriptors and its locks end with it."""

    def __init__(
        self,
        platter: Platter,
        random: Random,
        counts: Counter[str],
        trace: Callable[..., None] = lambda *_: None,
    ) -> None:
        """`counts` takes how often what failed, `trace` every call that changes something."""
        self.platter = platter
        self.is_full = False
        self.chances: dict[str, Fault] = {}
        self._random = random
        self._counts = counts
        self._trace = trace
        self.on_write: Callable[[], None] = lambda: None
        """Called after every write, which is not synced then."""
        self._is_dead = False
        self._files: dict[int, File] = {}
        self._paths: dict[int, str] = {}
        self._locks: dict[int, str] = {}
        self._next = 3

    def kill(self) -> None:
        """Makes every call fail from now on."""
        self._is_dead = True

    # Files

    def open(self, path: Path, *, create: bool = False) -> int:
        """As Disk."""
        node = self._find(path)
        self._enter("open", grows=create and node is None)
        if node is None:
            if not create:
                raise failure(OSError(errno.ENOENT, "no such file"), "open", path)
            node = File()
            self.platter.change(Naming(None, (self._parent(path), path.name, node)))
        if isinstance(node, Directory):
            raise failure(OSError(errno.EISDIR, "a directory"), "open", path)
        return self._descriptor(node, path)

    def most_open_files(self) -> int:
        """As Disk."""
        return 1 << 20

    def close(self, descriptor: int) -> None:
        """As Disk."""
        self._files.pop(descriptor, None)
        self._locks.pop(descriptor, None)

    def write(self, descriptor: int, buffers: Sequence[bytes | memoryview], position: int) -> None:
        """As Disk; a write that fails may have written some of it."""
        data = b"".join(buffers)
        file = self._files[descriptor]
        self._trace("write", self._paths[descriptor], position, len(data))
        try:
            self._enter("write", grows=True)
        except LogbrokerError:
            torn = self._random.randint(0, len(data))
            if torn and not self._is_dead:
                file.change(Write(position, data[:torn]))
                self._counts["writes torn"] += 1
            raise
        file.change(Write(position, data))
        self.on_write()

    def read(self, descriptor: int, size: int, position: int) -> bytes:
        """As Disk."""
        self._enter("read")
        return bytes(self._files[descriptor].content[position : position + size])

    def read_cached(self, descriptor: int, buffer: memoryview, position: int) -> bool:
        """As Disk."""
        self._enter("read_cached")
        content = self._files[descriptor].content
        size = len(buffer)
        if len(content) < position + size or self._random.random() < COLD_CHANCE:
            return False
        with memoryview(content) as view:
            buffer[:] = view[position : position + size]
        return True

    def read_aside(self, path: Path, size: int, position: int) -> bytes:
        """As Disk."""
        self._enter("read")
        return bytes(self._file(path, "read").content[position : position + size])

    def sync(self, descriptor: int) -> None:
        """As Disk; a sync that fails makes the disk forget what it was to keep."""
        file = self._files[descriptor]
        self._trace("sync", self._paths[descriptor], len(file.changes))
        try:
            self._enter("sync")
        except LogbrokerError:
            if not self._is_dead:
                file.forget_changes(is_evicted=self._random.random() < 0.5)
            raise
        file.sync()

    def forget_cached(self, descriptor: int) -> None:
        """As Disk."""
        self._enter("forget_cached")
        self._files[descriptor].forget_cached()

    def truncate(self, descriptor: int, size: int) -> None:
        """As Disk."""
        self._trace("truncate", self._paths[descriptor], size)
        self._enter("truncate")
        self._files[descriptor].change(Resize(size))

    def allocate(self, descriptor: int, position: int, size: int) -> None:
        """As Disk."""
        self._enter("allocate", grows=True)
        file = self._files[descriptor]
        if len(file.content) < position + size:
            file.change(Resize(position + size))

    @contextmanager
    def mapped(self, path: Path) -> Iterator[memoryview]:
        """As Disk."""
        self._enter("map")
        with memoryview(bytes(self._file(path, "map").content)) as view:
            yield view

    def read_file(self, path: Path) -> bytes | None:
        """As Disk."""
        self._enter("read_file")
        node = self._find(path)
        return bytes(node.content) if isinstance(node, File) else None

    def size(self, path: Path) -> int:
        """As Disk."""
        self._enter("size")
        return len(self._file(path, "stat").content)

    def free_bytes(self, directory: Path) -> int:
        """As Disk."""
        return 0 if self.is_full else FREE_BYTES

    def lock(self, path: Path) -> int | None:
        """As Disk."""
        self._enter("lock")
        if str(path) in self._locks.values():
            return None
        node = self._find(path)
        if not isinstance(node, File):
            node = File()
            self.platter.change(Naming(None, (self._parent(path), path.name, node)))
        descriptor = self._descriptor(node, path)
        self._locks[descriptor] = str(path)
        return descriptor

    # Names

    def names(self, directory: Path) -> list[str]:
        """As Disk."""
        self._enter("names")
        node = self._find(directory)
        return sorted(node.names) if isinstance(node, Directory) else []

    def exists(self, path: Path) -> bool:
        """As Disk."""
        self._enter("exists")
        return self._find(path) is not None

    def make_directory(self, directory: Path) -> None:
        """As Disk."""
        missing = [one for one in (directory, *directory.parents) if self._find(one) is None]
        self._enter("make_directory", grows=bool(missing))
        for path in reversed(missing):
            self.platter.change(Naming(None, (self._parent(path), path.name, Directory())))
        for path in reversed(missing):
            self.sync_directory(path.parent)

    def sync_directory(self, directory: Path) -> None:
        """As Disk."""
        self._trace("sync_directory", str(directory))
        self._enter("sync_directory")
        node = self._find(directory)
        if not isinstance(node, Directory):
            raise failure(OSError(errno.ENOENT, "no directory"), "fsync", directory)
        self.platter.sync(node)

    def rename(self, old: Path, new: Path) -> None:
        """As Disk."""
        self._trace("rename", str(old), str(new))
        self._enter("rename")
        node = self._find(old)
        if node is None:
            raise failure(OSError(errno.ENOENT, "no such file"), "rename", old)
        gone = self._parent(old), old.name
        self.platter.change(Naming(gone, (self._parent(new), new.name, node)))

    def unlink(self, path: Path) -> None:
        """As Disk."""
        self._trace("unlink", str(path))
        self._enter("unlink")
        if self._find(path) is not None:
            self.platter.change(Naming((self._parent(path), path.name), None))

    def remove_empty(self, directory: Path) -> bool:
        """As Disk."""
        self._enter("remove_empty")
        node = self._find(directory)
        if not isinstance(node, Directory) or node.names:
            return False
        self.platter.change(Naming((self._parent(directory), directory.name), None))
        return True

    def remove_tree(self, directory: Path) -> None:
        """As Disk."""
        self._enter("remove_tree")
        if self._find(directory) is None:
            raise failure(OSError(errno.ENOENT, "no directory"), "remove", directory)
        self.platter.change(Naming((self._parent(directory), directory.name), None))

    # Inside

    def _enter(self, call: str, *, grows: bool = False) -> None:
        if self._is_dead:
            raise failure(OSError(errno.EIO, "the process is dead"), call)
        if self.is_full and grows:
            self._counts["ENOSPC"] += 1
            raise failure(OSError(errno.ENOSPC, "full"), call)
        fault = self.chances.get(call)
        if fault and self._random.random() < fault.chance:
            self._counts[f"{errno.errorcode[fault.errno]} of {call}"] += 1
            self._trace("fails", call, fault.errno)
            raise failure(OSError(fault.errno, "as drawn"), call)

    def _descriptor(self, file: File, path: Path) -> int:
        self._next += 1
        self._files[self._next], self._paths[self._next] = file, str(path)
        return self._next

    def _find(self, path: Path) -> Node | None:
        node: Node = self.platter.root
        for name in path.parts[1:]:
            found = node.names.get(name) if isinstance(node, Directory) else None
            if found is None:
                return None
            node = found
        return node

    def _file(self, path: Path, call: str) -> File:
        node = self._find(path)
        if not isinstance(node, File):
            raise failure(OSError(errno.ENOENT, "no such file"), call, path)
        return node

    def _parent(self, path: Path) -> Directory:
        node = self._find(path.parent)
        if not isinstance(node, Directory):
            raise failure(OSError(errno.ENOENT, "no directory"), "open", path)
        return node
