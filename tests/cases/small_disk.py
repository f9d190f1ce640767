"""A file system of a few MiB, real and mounted where this process alone can get at it."""

import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from cases.processes import require

MOUNT = 'mount -t tmpfs -o "size=$2" tmpfs "$1" && echo mounted && exec cat'
CHUNK_BYTES = 4 << 10


class SmallDisk:
    """A tmpfs in a mount namespace of its own. Use it as a context manager."""

    def __init__(self, mount_point: Path, size: str = "16m") -> None:
        self.mount_point = mount_point
        """What it is called by those who run under `run_under`."""
        self.run_under: Sequence[str] = ()
        """Comes before a command that shall see the disk."""
        self.outside = mount_point
        """The same place, as this process gets there."""
        self._size = size
        self._holder: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.mount_point.mkdir()
        command = ["unshare", "-rm", "sh", "-c", MOUNT, "sh", str(self.mount_point), self._size]
        with suppress(FileNotFoundError):
            self._holder = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True,
            )  # fmt: skip
        is_mounted = bool(self._holder and self._holder.stdout.readline())
        require(is_mounted, "no tmpfs can be mounted here: unshare -rm and mount are needed")
        assert self._holder
        pid = self._holder.pid
        self.outside = Path(f"/proc/{pid}/root{self.mount_point}")
        self.run_under = [
            "nsenter", f"--target={pid}", "--user", "--mount", "--preserve-credentials",
        ]  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        if self._holder:
            self._holder.kill()
            self._holder.communicate()

    def run(self, *command: str) -> None:
        """Runs a command that sees the disk, such as mount."""
        subprocess.run([*self.run_under, *command], check=True, capture_output=True)

    def fill(self, name: str = "filler", size: int = 1 << 40) -> None:
        """Writes a file of this size, or until there is no room for a byte."""
        with suppress(OSError), (self.outside / name).open("wb", buffering=0) as file:
            while size > 0:
                size -= file.write(b"f" * min(size, CHUNK_BYTES))

    def free(self, name: str = "filler") -> None:
        """Removes the file that `fill` made."""
        (self.outside / name).unlink()
