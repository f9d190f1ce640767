"""An operation once, with a death at a chosen call; and what is left of it, looked at."""

import copy
import shutil
from collections import Counter
from pathlib import Path
from random import Random
from typing import NamedTuple

import grpc

from crash.child import Plan
from crash.doomed_broker import DiedError, DoomedBroker, restarted
from crash.dying_disk import Death
from crash.operations import Operation, Start
from crash.scene import everything
from logbroker.cli.main import run as run_command

TORN = b"\x0a\xff torn"
"""What a write leaves behind that did not get far."""

COUNTS: dict[str, Counter[str]] = {}
"""Of each operation: at how many points of which kind it was killed."""


class Point(NamedTuple):
    """Where it dies: at the n-th call, the first one is 1, or after the last one."""

    call: int
    name: str
    death: Death


class Stage:
    """An operation with what was there before it."""

    def __init__(self, kind: type[Operation], scratch: Path) -> None:
        self.kind = kind
        self.operation = kind()
        self._before = scratch / "before"
        self._data_dir = scratch / "data"

    async def prepare(self) -> list[Point]:
        """Makes what is there before; returns all points at which the operation can die."""
        async with DoomedBroker(self._plan(self._before)) as broker:
            await self.operation.prepare(broker.calls)
            await broker.kill()
        if self.kind is Start:
            self._tear()
        calls = await self._calls()
        points = [Point(at, name, death) for death in Death for at, name in enumerate(calls, 1)]
        return [
            point for point in points if point.death is not Death.TORN or point.name == "write"
        ] + [Point(len(calls) + 1, "none", death) for death in Death]

    async def die_at(self, point: Point) -> None:
        """Runs the operation, dies there, and fails if anything is lost, doubled or half there."""
        operation = copy.deepcopy(self.operation)
        plan = self._plan(self._fresh(), death=point.death, at_start=self._at_start(point.call))
        broker = DoomedBroker(plan)
        try:
            async with broker:
                if self.kind is not Start:
                    await broker.arm(point.call)
                await operation.run(broker)
                await broker.arm(0)  # or it is dying, and must be let to
        except (DiedError, grpc.aio.AioRpcError):
            if not broker.has_ended:
                raise
        async with restarted(self._data_dir) as calls:
            await operation.check(calls)
            known = await everything(calls)
        assert run_command(["log", "verify", str(self._data_dir)]) == 0
        async with restarted(self._data_dir) as calls:
            assert await everything(calls) == known
        counts = COUNTS.setdefault(self.kind.__name__, Counter())
        counts[point.death] += 1

    async def _calls(self) -> list[str]:
        """Returns the calls of the operation when nothing happens to it."""
        operation = copy.deepcopy(self.operation)
        async with DoomedBroker(self._plan(self._fresh(), at_start=self._at_start(0))) as broker:
            if self.kind is Start:
                return await broker.arm(0)
            await broker.arm(0)
            await operation.run(broker)
            return broker.calls_until_stopped or await broker.arm(0)

    def _at_start(self, call: int) -> int | None:
        return call if self.kind is Start else None

    def _plan(self, data_dir: Path, **fields: object) -> Plan:
        return Plan(data_dir=data_dir, **self.kind.plan, **fields)  # type: ignore[arg-type]

    def _fresh(self) -> Path:
        shutil.rmtree(self._data_dir, ignore_errors=True)
        shutil.copytree(self._before, self._data_dir)
        return self._data_dir

    def _tear(self) -> None:
        """Leaves what a start has to mend: a torn tail, a file not finished, a topic half gone."""
        last = sorted(self._before.glob("topics/a/0/*.log"))[-1]
        end = len(last.read_bytes().rstrip(b"\0"))
        with last.open("r+b") as file:
            file.seek(end)
            file.write(TORN)
        (last.parent / "checkpoint.tmp").write_bytes(TORN)
        shutil.copytree(last.parent, self._before / "trash" / "half")


def sample(points: list[Point], seed: int) -> list[Point]:
    """Returns one of them for each way to die, others for another seed."""
    random = Random(seed)
    by_death = ([point for point in points if point.death is death] for death in Death)
    return [random.choice(found) for found in by_death if found]
