"""Records that nobody waited for when the process ends: told on stderr, and by the exit code."""

import atexit
import gc
import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Protocol

EXIT_CODE = 70
"""EX_SOFTWARE of sysexits.h."""


class HoldsRecords(Protocol):
    """A producer, as long as it has records that are not answered."""

    def unsent_count(self) -> int:
        """Returns how many records are not known to be stored."""


_holders: set[HoldsRecords] = set()
_last_chances: list[Callable[[], None]] = []


def hold(holder: HoldsRecords) -> None:
    """Remembers a producer until `release`."""
    _register()
    _holders.add(holder)


def release(holder: HoldsRecords) -> None:
    """Forgets a producer: all its records are answered."""
    _holders.discard(holder)


def forget_all() -> None:
    """Forgets every producer: in a child process, they are the parent's."""
    _holders.clear()
    _last_chances.clear()


def before_exit(last_chance: Callable[[], None]) -> None:
    """Calls this when the process ends, before what is left is counted."""
    _register()
    _last_chances.append(last_chance)


def cancel(last_chance: Callable[[], None]) -> None:
    """Takes back `before_exit`."""
    with suppress(ValueError):
        _last_chances.remove(last_chance)


@cache
def _register() -> None:
    atexit.register(_finish)
    os.register_at_fork(after_in_child=forget_all)


def _finish() -> None:
    for last_chance in _last_chances:
        last_chance()
    count = sum(holder.unsent_count() for holder in _holders)
    if count:
        message = "logbroker: the program ended with {:,} records not sent, or not answered"
        print(message.format(count), file=sys.stderr)
        _exit_now(EXIT_CODE)


def _exit_now(code: int) -> None:
    """Ends the process with this code: an atexit handler has no other way to set it."""
    for file in gc.get_objects():
        if isinstance(file, io.IOBase):
            with suppress(OSError, ValueError):
                file.flush()
    os._exit(code)
