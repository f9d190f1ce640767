"""Everything a simulation is made of, and all that its parts would else take from outside.

    time, tasks, threads     the loop
    randomness, names        one `Random`, the seed's
    disk, network            in memory
    logs                     lines of the story

While a world is entered, logbroker's own modules get these instead: what a program takes from
its machine without being given it.
"""

import gc
import hashlib
from collections import Counter, deque
from collections.abc import Iterator, MutableMapping
from contextlib import ExitStack, contextmanager
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch
from weakref import WeakSet

import grpc
import structlog

from logbroker.broker import coordinator, groups, producer_ids, redrive
from logbroker.client import client, connection, leftovers
from logbroker.storage import journal
from logbroker.storage.file import engine

from .channel import SimulatedChannel
from .clock import SimulatedClock
from .loop import SimulatedLoop
from .network import Network
from .platter import Platter
from .server import SimulatedServer

STORY_LINES = 4000
"""How many lines are kept: the last ones."""


class World:
    """What a seed makes."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.loop = SimulatedLoop(self.random)
        self.clock = SimulatedClock(self.loop)
        self.counts: Counter[str] = Counter()
        self.network = Network(self.random, self.counts)
        self.platter = Platter()
        self.broker_faults: list[str] = []
        """Errors that nobody foresaw, as the broker logs them."""
        self.story: deque[str] = deque(maxlen=STORY_LINES)
        self._digest = hashlib.blake2b(digest_size=16)

    @property
    def digest(self) -> str:
        """Of all that was traced: the same for the same seed."""
        return self._digest.hexdigest()

    def trace(self, *what: object) -> None:
        """Takes something into the digest."""
        self._digest.update(repr((round(self.loop.time(), 7), *what)).encode())

    def tell(self, *what: object) -> None:
        """Takes a line into the story, and into the digest."""
        self.trace(*what)
        self.story.append(f"{self.loop.time():9.3f} {' '.join(map(str, what))}")

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Gives logbroker this world instead of the real one; collects no garbage meanwhile."""

        def new_random() -> Random:
            return Random(self.random.getrandbits(64))

        names = SimpleNamespace(
            token_hex=lambda size: f"{self.random.getrandbits(8 * size):0{2 * size}x}",
            randbits=self.random.getrandbits,
        )
        replaced: list[tuple[object, str, object]] = [
            (grpc.aio, "insecure_channel", self._channel),
            (grpc.aio, "server", self._server),
            (client, "SystemClock", lambda: self.clock),
            (connection, "Random", new_random),
            (groups, "Random", new_random),
            (coordinator, "secrets", names),
            (redrive, "secrets", names),
            (producer_ids, "secrets", names),
            (engine, "uuid4", lambda: SimpleNamespace(hex=names.token_hex(16))),
            (journal, "SNAPSHOT_EVERY", 40),
            (leftovers, "_holders", WeakSet()),
            (leftovers, "_last_chances", []),
        ]
        logging = structlog.get_config()
        gc.disable()
        with ExitStack() as stack:
            for module, name, value in replaced:
                stack.enter_context(patch.object(module, name, value))
            structlog.configure(processors=[self._log], cache_logger_on_first_use=False)
            try:
                yield
            finally:
                structlog.configure(**logging)
                gc.enable()

    def _channel(self, target: str, options: Any = None) -> SimulatedChannel:
        return SimulatedChannel(self.network, target)

    def _server(self, interceptors: Any = (), options: Any = ()) -> SimulatedServer:
        return SimulatedServer(self.network, interceptors)

    def _log(self, logger: Any, level: str, event: MutableMapping[str, Any]) -> Any:
        if self.loop.is_closed():
            raise structlog.DropEvent
        message = str(event.pop("event"))
        error = event.pop("exc_info", None)
        told = " ".join(f"{name}={value}" for name, value in event.items())
        self.tell("log", level, message, told, repr(error) if error else "")
        if message == "broker fault":
            self.broker_faults.append(f"{message}: {told} {error!r}")
        raise structlog.DropEvent
