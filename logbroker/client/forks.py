"""What a child process must know: the clients it finds are its parent's. Imported before gRPC.

gRPC's own handlers crash such a child now and then while an aio channel is in use, and they
are installed as gRPC is imported, so they are turned off here unless the environment says
otherwise (GRPC_ENABLE_FORK_SUPPORT). Without them gRPC does not work at all in a child of a
process that has ever connected: calls would hang. So no client can be made there.
"""

import os
from functools import cache
from typing import Protocol
from weakref import WeakSet

from logbroker.errors import PreconditionError

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")


class Forkable(Protocol):
    """What must not be used in a child process."""

    def forked(self) -> None:
        """Hears, in a child process, that it is one."""


_watching: WeakSet[Forkable] = WeakSet()
_state = {"connected": False, "spoilt": False}
SPOILT = (
    "this process was forked from one in which a client had connected, and gRPC does not work in "
    "it: fork before that, or use multiprocessing's spawn or forkserver"
)


def tell_of_forks(listener: Forkable) -> None:
    """Calls `listener.forked()` in each child process that is forked while the listener lives."""
    _watch()
    _watching.add(listener)


def note_connected() -> None:
    """Takes note that gRPC is in use in this process from now on."""
    _state["connected"] = True


def check_unspoilt() -> None:
    """Raises PreconditionError CLIENT_CLOSED in a process in which no client can work."""
    if _state["spoilt"]:
        raise PreconditionError("CLIENT_CLOSED", SPOILT)


@cache
def _watch() -> None:
    os.register_at_fork(after_in_child=_tell)


def _tell() -> None:
    _state["spoilt"] = _state["connected"]
    for listener in list(_watching):
        listener.forked()
