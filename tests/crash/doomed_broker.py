"""A broker in a process of its own, which may die at a call to its disk; and its stubs."""

import asyncio
import multiprocessing
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import grpc
from server.calls import stubs_of

from crash.child import Plan, serve
from logbroker.clock import SystemClock
from logbroker.config import StorageConfig
from logbroker.storage.file.engine import FileEngine
from logbroker.testing.running_broker import running_broker

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    ["uvloop", "logbroker.testing.running_broker", "logbroker.testing.faulty_disk"]
)
"""Forked from one that has imported all that a broker needs: a start takes no second then."""
ENDS_WITHIN_S = 60
DIES_WITHIN_S = 10
ENDINGS = {0, -signal.SIGKILL}
"""After its connections have broken."""


class DiedError(Exception):
    """The broker's process has died."""


class DoomedBroker:
    """Use it as an async context manager; `calls` are stubs for it."""

    def __init__(self, plan: Plan) -> None:
        self.calls = SimpleNamespace()
        self.has_ended = False
        """By itself, by SIGKILL or after a clean stop."""
        self.calls_until_stopped: list[str] = []
        """To its disk, since it was armed."""
        self._pipe, theirs = multiprocessing.Pipe()
        self._process = PROCESSES.Process(target=serve, args=(plan, theirs), daemon=True)
        self._theirs = theirs
        self._channel: grpc.aio.Channel | None = None

    async def arm(self, call: int) -> list[str]:
        """Makes it die at this call from now on; returns which were made since the last time."""
        return await self._ask("arm", call)

    async def step_wall(self, ms: int) -> None:
        """Moves its wall clock."""
        await self._ask("step", ms)

    async def stop(self) -> None:
        """Stops it cleanly. DiedError if it dies on the way."""
        self.calls_until_stopped = await self._ask("stop")
        assert await self._ended() == 0

    async def kill(self) -> None:
        """Sends SIGKILL, unless it has died before."""
        self._process.kill()
        assert await self._ended() == -signal.SIGKILL

    async def __aenter__(self) -> Self:
        self._process.start()
        self._theirs.close()
        address = await self._answer()
        self._channel = grpc.aio.insecure_channel(address)
        self.calls = stubs_of(self._channel)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._channel:
            await self._channel.close()
        if kind is not None:  # it is dying, perhaps: the network tells of it first
            await asyncio.to_thread(self._process.join, DIES_WITHIN_S)
        self.has_ended = self.has_ended or self._process.exitcode in ENDINGS
        self._process.kill()
        await self._ended()
        self._pipe.close()

    async def _ask(self, *command: Any) -> Any:
        try:
            self._pipe.send(command)
        except (BrokenPipeError, OSError) as error:
            raise DiedError from error
        return await self._answer()

    async def _answer(self) -> Any:
        try:
            return await asyncio.to_thread(self._pipe.recv)
        except (EOFError, OSError) as error:
            await asyncio.to_thread(self._process.join, DIES_WITHIN_S)
            self.has_ended = self._process.exitcode in ENDINGS
            raise DiedError from error

    async def _ended(self) -> int | None:
        await asyncio.to_thread(self._process.join, ENDS_WITHIN_S)
        return self._process.exitcode


@asynccontextmanager
async def restarted(data_dir: Path) -> AsyncIterator[SimpleNamespace]:
    """Yields stubs for a broker on the same directory and a real disk; stops it cleanly."""
    clock = SystemClock()
    engine = await FileEngine.start(StorageConfig(data_dir=data_dir), clock)
    try:
        async with (
            running_broker(engine=engine, clock=clock) as (address, _),
            grpc.aio.insecure_channel(address) as channel,
        ):
            yield stubs_of(channel)
    finally:
        await engine.close()
