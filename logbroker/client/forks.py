"""What a child process must know: the clients it finds are its parent's. Imported before gRPC.

gRPC's own handlers crash such a child now and then while an aio channel is in use, and they
are installed as gRPC is imported, so they are turned off here unless the environment says
otherwise (GRPC_ENABLE_FORK_SUPPORT).
"""

import os
from functools import cache
from typing import Protocol
from weakref import WeakSet

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")


class Forkable(Protocol):
    """What must not be used in a child process."""

    def forked(self) -> None:
        """Hears, in a child process, that it is one."""


_watching: WeakSet[Forkable] = WeakSet()


def tell_of_forks(listener: Forkable) -> None:
    """Calls `listener.forked()` in each child process that is forked while the listener lives."""
    _watch()
    _watching.add(listener)


@cache
def _watch() -> None:
    os.register_at_fork(after_in_child=_tell)


def _tell() -> None:
    for listener in list(_watching):
        listener.forked()
