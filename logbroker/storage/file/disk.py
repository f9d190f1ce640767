"""The system calls. No other part sees an OSError.

    ENOSPC, EDQUOT     ExhaustedError DISK_FULL: writing resumes when there is room
    everything else    UnavailableError STORAGE_FAILED, with the name of the errno

`logbroker.testing.faulty_disk` replaces this class.
"""

import errno
import fcntl
import mmap
import os
import resource
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from logbroker.errors import ExhaustedError, LogbrokerError, UnavailableError
from logbroker.storage.file.paths import TMP

FULL = {errno.ENOSPC, errno.EDQUOT}
NO_DESCRIPTOR = {errno.errorcode[errno.EMFILE], errno.errorcode[errno.ENFILE]}
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
COLD = {errno.EAGAIN, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}
NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)


class Disk:
    """What is asked of the operating system. Descriptors are those of `open`."""

    def open(self, path: Path, *, create: bool = False) -> int:
        """Returns a descriptor to read and write; to read alone where writing is forbidden."""
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        with _translated("open", path):
            try:
                return os.open(path, flags, 0o644)
            except OSError as error:
                if create or error.errno not in {errno.EROFS, errno.EACCES}:
                    raise
                return os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def most_open_files(self) -> int:
        """Returns how many files this process may have open, connections included."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return sys.maxsize if soft == resource.RLIM_INFINITY else soft

    def close(self, descriptor: int) -> None:
        """Closes it; what it says about it changes nothing, since all that counts was synced."""
        with _translated("close"):
            os.close(descriptor)

    def write(self, descriptor: int, buffers: Sequence[bytes | memoryview], position: int) -> None:
        """Writes all of it."""
        try:
            written = os.pwritev(descriptor, buffers, position)
            if written < sum(map(len, buffers)):
                _write_rest(descriptor, b"".join(buffers)[written:], position + written)
        except OSError as error:
            raise failure(error, "write") from error

    def read(self, descriptor: int, size: int, position: int) -> bytes:
        """Returns `size` bytes, fewer at the end of the file. May wait for the disk."""
        with _translated("read"):
            data = os.pread(descriptor, size, position)
            while len(data) < size and (
                more := os.pread(descriptor, size - len(data), position + len(data))
            ):
                data += more
            return data

    def read_cached(self, descriptor: int, buffer: memoryview, position: int) -> bool:
        """Fills the buffer and returns True, if that needs no waiting for the disk."""
        try:
            return os.preadv(descriptor, [buffer], position, NOWAIT) == len(buffer)
        except OSError as error:
            if error.errno in COLD:
                return False
            raise failure(error, "read") from error

    def read_aside(self, path: Path, size: int, position: int) -> bytes:
        """Returns `size` bytes, fewer at the end; what it brings into the page cache goes again.

        Nothing is read ahead. Bytes that all lay in the cache are taken from there, and stay.
        """
        with _translated("read", path):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
                size = max(min(size, os.fstat(descriptor).st_size - position), 0)
                data = bytearray(size)
                if self.read_cached(descriptor, memoryview(data), position):
                    return bytes(data)
                found = self.read(descriptor, size, position)
                first = position // PAGE_BYTES * PAGE_BYTES
                end = -(-(position + size) // PAGE_BYTES) * PAGE_BYTES
                os.posix_fadvise(descriptor, first, end - first, os.POSIX_FADV_DONTNEED)
                return found
            finally:
                os.close(descriptor)

    def sync(self, descriptor: int) -> None:
        """Returns once what was written is on the disk. A failure is final: never try again."""
        with _translated("fdatasync"):
            os.fdatasync(descriptor)

    def forget_cached(self, descriptor: int) -> None:
        """Makes the next read come from the disk, once the file is synced.

        A failed sync, of another process perhaps, leaves bytes in memory that no later one
        writes: they would seem to be there until the power goes.
        """
        with _translated("fadvise"):
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)

    def sync_directory(self, directory: Path) -> None:
        """Makes the names in a directory durable."""
        with _translated("fsync", directory):
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def truncate(self, descriptor: int, size: int) -> None:
        """Cuts the file off behind `size` bytes."""
        with _translated("truncate"):
            os.ftruncate(descriptor, size)

    def empty(self, path: Path) -> None:
        """Cuts the file down to nothing."""
        descriptor = self.open(path)
        try:
            self.truncate(descriptor, 0)
        finally:
            self.close(descriptor)

    def allocate(self, descriptor: int, position: int, size: int) -> None:
        """Gives the file room, and as many zeros, from `position` on."""
        with _translated("fallocate"):
            os.posix_fallocate(descriptor, position, size)

    def size(self, path: Path) -> int:
        """Returns how many bytes the file has."""
        with _translated("stat", path):
            return path.stat().st_size

    def free_bytes(self, directory: Path) -> int:
        """Returns how much room the file system has for us."""
        with _translated("statvfs", directory):
            found = os.statvfs(directory)
            return found.f_bavail * found.f_frsize

    def names(self, directory: Path) -> list[str]:
        """Returns what is in a directory, sorted; nothing if there is no directory."""
        with _translated("list", directory):
            try:
                return sorted(os.listdir(directory))
            except (FileNotFoundError, NotADirectoryError):
                return []

    def exists(self, path: Path) -> bool:
        """Returns whether there is a file or directory."""
        with _translated("stat", path):
            return path.exists()

    def make_directory(self, directory: Path) -> None:
        """Makes the directory and those above it, durably."""
        with _translated("mkdir", directory):
            missing = [path for path in (directory, *directory.parents) if not path.exists()]
            directory.mkdir(parents=True, exist_ok=True)
        for path in reversed(missing):
            self.sync_directory(path.parent)

    def rename(self, old: Path, new: Path) -> None:
        """Gives the file or directory another name; `sync_directory` makes that durable."""
        with _translated("rename", old):
            old.replace(new)

    def unlink(self, path: Path) -> None:
        """Removes the file, if it is there."""
        with _translated("unlink", path):
            path.unlink(missing_ok=True)

    def remove_empty(self, directory: Path) -> bool:
        """Removes the directory and returns True, if it is there and empty."""
        with _translated("rmdir", directory):
            try:
                directory.rmdir()
            except OSError as error:
                if error.errno in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT}:
                    return False
                raise
            return True

    def remove_tree(self, directory: Path) -> None:
        """Removes the directory with all that is in it."""
        with _translated("remove", directory):
            shutil.rmtree(directory)

    def read_file(self, path: Path) -> bytes | None:
        """Returns all of a small file; None if there is none."""
        with _translated("read", path):
            try:
                return path.read_bytes()
            except FileNotFoundError:
                return None

    def write_files(
        self, directory: Path, files: dict[Path, bytes], hints: dict[Path, bytes] | None = None
    ) -> None:
        """Makes or replaces small files whole: temporary name, sync, rename, sync of the name.

        `hints` are written without any sync: a loss of power may cost them, and whoever
        reads them notices.
        """
        for path, data in {**files, **(hints or {})}.items():
            temporary = path.with_name(path.name + TMP)
            try:
                self._write_all(temporary, data, is_synced=path in files)
                self.rename(temporary, path)
            except LogbrokerError:
                self.unlink(temporary)
                raise
        if files:
            self.sync_directory(directory)

    def _write_all(self, path: Path, data: bytes, *, is_synced: bool) -> None:
        descriptor = self.open(path, create=True)
        try:
            self.truncate(descriptor, 0)
            self.write(descriptor, [data], 0)
            if is_synced:
                self.sync(descriptor)
        finally:
            self.close(descriptor)

    @contextmanager
    def mapped(self, path: Path) -> Iterator[memoryview]:
        """Gives all bytes of a file, without holding them in memory."""
        with _translated("map", path):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                is_empty = os.fstat(descriptor).st_size == 0
                whole = None if is_empty else mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
            finally:
                os.close(descriptor)
        if whole is None:
            yield memoryview(b"")
            return
        with whole, memoryview(whole) as view:
            yield view

    def lock(self, path: Path) -> int | None:
        """Returns a descriptor that holds the lock; None if another process does."""
        with _translated("lock", path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return None
            return descriptor


def raise_open_files_limit(wanted: int) -> None:
    """Lets this process have so many files open, or as many as its hard limit allows.

    The soft limit is 1,024 by default for the sake of programs that use select(2) alone.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(ValueError, OSError):  # a system may have a lower limit than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def lacks_descriptor(error: LogbrokerError) -> bool:
    """Returns whether nothing was done, since the process has as many files open as it may."""
    return error.details.get("errno") in NO_DESCRIPTOR


def failure(error: OSError, call: str, path: Path | None = None) -> LogbrokerError:
    """Returns what an OSError means to our callers."""
    name = errno.errorcode.get(error.errno or 0, str(error.errno))
    where = f" of {path}" if path else ""
    details = {"call": call, "errno": name, **({"path": str(path)} if path else {})}
    if error.errno in FULL:
        return ExhaustedError("DISK_FULL", f"no room on the disk: {call}{where}", **details)
    message = f"the disk failed: {call}{where}: {name}"
    return UnavailableError("STORAGE_FAILED", message, **details)


@contextmanager
def _translated(call: str, path: Path | None = None) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise failure(error, call, path) from error


def _write_rest(descriptor: int, data: bytes, position: int) -> None:
    while data:
        written = os.pwrite(descriptor, data, position)
        data, position = data[written:], position + written
