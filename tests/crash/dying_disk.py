"""A disk at whose n-th call the process dies by SIGKILL, and in one mode the power goes too.

What counts are the calls that change something. The process dies before the call is made;
so n and n + 1 are what is left before it and after it.
"""

import os
import signal
import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from threading import Lock

from logbroker.testing.faulty_disk import FaultyDisk

LINGERS_S = 0.05
"""A sync takes its time: who answers before it is over has answered when the process dies."""


class Death(StrEnum):
    """What becomes of what was done before."""

    KILLED = "killed"
    """All of it is there."""
    TORN = "torn"
    """All of it, and half of a write under way."""
    POWERLESS = "powerless"
    """What was synced is there, and nothing else."""


class DyingDisk(FaultyDisk):
    """It counts from `arm` on."""

    def __init__(self, root: Path, death: Death) -> None:
        super().__init__(root)
        self.calls: list[str] = []
        """The names of those that were counted."""
        self._death = death
        self._left: int | None = None
        self._is_dying = False
        self._counting = Lock()
        """Held also by who dies: nobody else begins a call, or hears that one succeeded."""

    def arm(self, call: int) -> None:
        """Makes the process die at this call from now on, the first one is 1; 0: at none."""
        with self._counting:
            self.calls.clear()
            self._left = call

    def write(self, descriptor: int, buffers: Sequence[bytes | memoryview], position: int) -> None:
        """As Disk; where it is torn, half of it gets there."""
        if self._death is Death.TORN and self._left == 1:
            data = b"".join(buffers)
            os.pwrite(descriptor, data[: len(data) // 2], position)
        super().write(descriptor, buffers, position)

    def sync(self, descriptor: int) -> None:
        """As Disk."""
        super().sync(descriptor)
        self._stay()

    def sync_directory(self, directory: Path) -> None:
        """As Disk."""
        super().sync_directory(directory)
        self._stay()

    def remove_tree(self, directory: Path) -> None:
        """As Disk, which removes one file after another."""
        for path in sorted(path for path in directory.rglob("*") if path.is_file()):
            self.unlink(path)
        super().remove_tree(directory)

    def _enter(self, call: str, *, grows: bool = False) -> None:
        with self._counting:
            if self._left is not None:
                self.calls.append(call)
                self._left -= 1
                if self._left == 0:
                    if call == "sync":
                        time.sleep(LINGERS_S)
                    self._die()
        super()._enter(call, grows=grows)

    def _stay(self) -> None:
        if self._is_dying:
            self._counting.acquire()

    def _die(self) -> None:
        self._is_dying = True
        if self._death is Death.POWERLESS:
            self.lose_power()
        os.kill(os.getpid(), signal.SIGKILL)
