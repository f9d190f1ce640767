"""A broker as `serve` puts it together, but for its disk and its clock; told what to do by a pipe.

(arm, n)     the n-th call to the disk is the last           -> the names of the calls so far
(step, ms)   the wall clock moves, and nothing else does     -> None
(stop,)      a clean stop                                    -> the same, once it has ended
"""

import asyncio
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path

import structlog
import uvloop

from crash.dying_disk import Death, DyingDisk
from logbroker.clock import SystemClock
from logbroker.config import StorageConfig
from logbroker.storage import journal
from logbroker.storage.file.engine import FileEngine
from logbroker.testing.running_broker import running_broker


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How to run it."""

    data_dir: Path
    death: Death = Death.KILLED
    at_start: int | None = None
    """At which call to die while it starts."""
    check_interval_ms: int = 3_600_000
    snapshot_every: int = 1_000
    journal_segment_bytes: int = 16 << 20


class SteppedClock(SystemClock):
    """The machine's, with a wall clock that can be moved."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now_ms(self) -> int:
        """As the operator has set it."""
        return super().now_ms() + self.ahead_ms


def serve(plan: Plan, pipe: Connection) -> None:
    """Runs until it is told to stop, or dies."""
    journal.SNAPSHOT_EVERY = plan.snapshot_every
    journal.CONFIG = replace(journal.CONFIG, segment_bytes=plan.journal_segment_bytes)
    with open(f"{plan.data_dir}.log", "a", encoding="utf-8") as log:
        structlog.configure(logger_factory=structlog.PrintLoggerFactory(log))
        uvloop.run(_serve(plan, pipe))


async def _serve(plan: Plan, pipe: Connection) -> None:
    plan.data_dir.mkdir(exist_ok=True)
    disk, clock = DyingDisk(plan.data_dir, plan.death), SteppedClock()
    config = StorageConfig(data_dir=plan.data_dir, check_interval_ms=plan.check_interval_ms)
    if plan.at_start is not None:
        disk.arm(plan.at_start)
    engine = await FileEngine.start(config, clock, disk)
    try:
        async with running_broker(engine=engine, clock=clock) as (address, _):
            pipe.send(address)
            await _obey(pipe, disk, clock)
    finally:
        await engine.close()
    pipe.send(disk.calls)


async def _obey(pipe: Connection, disk: DyingDisk, clock: SteppedClock) -> None:
    while True:
        match await asyncio.to_thread(pipe.recv):
            case ("arm", call):
                told = list(disk.calls)
                disk.arm(call)
                pipe.send(told)
            case ("step", ms):
                clock.ahead_ms += ms
                pipe.send(None)
            case ("stop",):
                return
