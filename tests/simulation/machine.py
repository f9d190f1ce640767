"""The broker's machine: it starts brokers, one after another, on what the last one left."""

import asyncio
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

from logbroker.broker.broker import Broker, open_broker
from logbroker.config import LimitsConfig, ListenConfig, LogConfig, StorageConfig
from logbroker.errors import LogbrokerError
from logbroker.server.server import serve_grpc
from logbroker.storage.file.engine import FileEngine

from .disk import SimulatedDisk
from .loop import Process
from .threads import SimulatedThreads
from .world import World

ADDRESS = "127.0.0.1:9470"
DATA_DIR = Path("/data")
START_AGAIN_S = 1.0
STARTS = 100
WRITE_S = 2.0
UNSYNCED_S = 0.0, 0.004
"""After a write: about as long as it takes to be synced, answered and read."""
START_S = 0.0, 0.05
"""When a broker dies that does not live to serve: it starts in about 20 ms."""


class Ending(StrEnum):
    """How a broker ends."""

    STOP = "brokers stopped"
    KILL = "brokers killed"
    POWER = "power cuts"


class Machine:
    """One broker at a time."""

    def __init__(self, world: World, storage: StorageConfig, defaults: LogConfig) -> None:
        self.disk = SimulatedDisk(world.platter, world.random, world.counts, world.trace)
        self.threads = SimulatedThreads(world.random)
        self.broker: Broker | None = None
        """The one that serves now."""
        self.first_tokens: list[int] = []
        """Of each broker that has served."""
        self.on_end: Callable[[], None] = lambda: None
        """Called when a broker that has served is no more."""
        self.dies_at_start = 0.0
        """The chance that one does not live to serve."""
        self.on_serving: Callable[[Broker], None] = lambda _: None
        self._world = world
        self._storage = storage
        self._defaults = defaults
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._number = 0

    async def start(self) -> None:
        """Starts a broker; again, where the disk does not let it."""
        for _ in range(STARTS):
            ready: asyncio.Future[Broker] = asyncio.get_running_loop().create_future()
            self._number += 1
            self._process = Process(f"broker-{self._number}")
            self._stop = asyncio.Event()
            self._take_new_disk()
            self._task = self._process.start(self._live(ready))
            await self._wait_started(ready)
            if ready.done():
                self.broker = ready.result()
                self.first_tokens.append(self.broker._groups._next_token)
                self._world.tell("broker serves", self.first_tokens[-1])
                self.on_serving(self.broker)
                return
            if self._task.done():
                self._note_failed_start(self._task.exception())
            else:
                self._world.counts["brokers killed as they started"] += 1
            await self.end(self._world.random.choice([Ending.KILL, Ending.POWER]))
            await asyncio.sleep(START_AGAIN_S)
        raise AssertionError("the broker does not start")

    async def _wait_started(self, ready: asyncio.Future[Broker]) -> None:
        """Returns when it serves, or has failed, or when its end comes before that."""
        assert self._task
        random = self._world.random
        dies_s = random.uniform(*START_S) if random.random() < self.dies_at_start else None
        started = {ready, self._task}
        await asyncio.wait(started, timeout=dies_s, return_when=asyncio.FIRST_COMPLETED)

    def _note_failed_start(self, error: BaseException | None) -> None:
        self._world.counts["starts that failed"] += 1
        self._world.tell("broker does not start", repr(error))
        reasons = error.exceptions if isinstance(error, BaseExceptionGroup) else [error]
        if not all(isinstance(reason, LogbrokerError) for reason in reasons):
            self._world.broker_faults.append(f"the broker did not start: {reasons}")

    async def end(self, how: Ending) -> None:
        """Ends the broker that runs."""
        assert self._process
        assert self._task
        world = self._world
        world.counts[how] += 1
        world.tell(how)
        if how is Ending.STOP:
            self._stop.set()
            await asyncio.wait({self._task})
            error = self._task.exception()
            if error and not isinstance(error, LogbrokerError):
                world.broker_faults.append(f"the broker ended with {error!r}")
        self._process.kill()
        self.disk.kill()
        is_loud = how is not Ending.POWER or world.random.random() < 0.5
        world.network.process_killed(self._process, is_loud=is_loud)
        if how is Ending.POWER:
            world.counts["bytes lost with the power"] += world.platter.lose_power(world.random)
        if self.broker:
            self.broker = None
            self.on_end()

    async def wait_write(self) -> None:
        """Returns some moments after the next write, when it may not be synced; or gives up."""
        loop = asyncio.get_running_loop()
        written = loop.create_future()

        def note() -> None:
            if not written.done():
                written.set_result(None)

        disk = self.disk
        disk.on_write = note
        await asyncio.wait({written}, timeout=WRITE_S)
        disk.on_write = lambda: None
        await asyncio.sleep(self._world.random.uniform(*UNSYNCED_S))

    def _take_new_disk(self) -> None:
        """Gives the next process descriptors of its own on the same disk, in the same state."""
        old, world = self.disk, self._world
        self.disk = SimulatedDisk(world.platter, world.random, world.counts, world.trace)
        self.disk.chances, self.disk.is_full = old.chances, old.is_full
        slow_chance = self.threads.slow_chance
        self.threads = SimulatedThreads(world.random)
        self.threads.slow_chance = slow_chance

    async def _live(self, ready: asyncio.Future[Any]) -> None:
        clock = self._world.clock
        stop = self._stop
        engine = await FileEngine.start(self._storage, clock, self.disk, self.threads)
        try:
            listen = ListenConfig(grpc=ADDRESS, stop_grace_ms=1_000)
            async with (
                open_broker(
                    engine, clock, defaults=self._defaults, limits=LimitsConfig()
                ) as broker,
                serve_grpc(broker, listen, "simulated"),
            ):
                ready.set_result(broker)
                await stop.wait()
        finally:
            await engine.close()
