"""`python -m bench.profile WORKLOAD`: where broker and client spend their time.

Each workload is one of `bench.peers`, done by the same client process. It is done twice in
the same processes: first plainly, which gives the rate and the CPU of all threads for each
record; then under cProfile, which makes every call of a Python function dearer, so its parts
tell where to look and not what would be saved.
"""

import argparse
import asyncio
import json
import pstats
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep
from typing import Any, NamedTuple

from bench.peers.client import ClientProcess, Subject, consuming
from bench.peers.logbroker.system import SYSTEM
from bench.peers.server import LOOPBACK, ServerProcess, ports_of
from bench.peers.system import Level, Sending
from bench.processes import cpu_seconds
from bench.profiled_process import times_file

WRITTEN_S = 30
POLL_S = 0.01
PROFILED = "bench.profiled_process"
IN_C = "(uvloop, gRPC, asyncio: what is written in C, and the profiler itself)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is done."""

    verb: str
    size: int = 100
    partitions: int = 1
    sending: Sending = Sending.FASTEST
    how: str = ""


WORKLOADS = {
    "publish-100": Workload(verb="publish"),
    "publish-1000": Workload(verb="publish", size=1_000),
    "each-100": Workload(verb="publish", sending=Sending.EACH),
    "each-1000": Workload(verb="publish", size=1_000, sending=Sending.EACH),
    "partitions-100": Workload(verb="publish", partitions=100),
    "partitions-1000": Workload(verb="publish", partitions=1_000),
    "replay-100": Workload(verb="replay", how="records"),
    "replay-1000": Workload(verb="replay", size=1_000, how="records"),
    "batches-1000": Workload(verb="replay", size=1_000, how="by batch"),
    "raw-1000": Workload(verb="replay", size=1_000, how="raw"),
    "confirm": Workload(verb="confirm"),
    "pace": Workload(verb="pace"),
    "work": Workload(verb="work"),
}
PACE = 10_000
CONFIRM_COUNT = 1_000_000
"""More than there is time for."""
REPLAY_BYTES = 100 << 20
"""For each second of `--seconds`."""
WORK_COUNT = 100_000
"""The same, of records that a worker settles."""


class Done(NamedTuple):
    """What came of a workload."""

    records: int
    seconds: float


class Part(NamedTuple):
    """What one process did in it."""

    name: str
    cpu_us: float
    """Of all its threads, for each record."""
    worked_s: float
    """Of its main thread, under the profiler."""
    stats: pstats.Stats


class Bench:
    """A broker, and the clients that a workload needs."""

    def __init__(self, workload: Workload, level: Level, seconds: float, directory: Path) -> None:
        self._workload = workload
        self._seconds = seconds
        self._directory = directory
        self._broker = _broker(directory)
        self._subject = Subject(SYSTEM, level, self._broker.address)
        names = ["publisher", "consumer"] if workload.verb == "pace" else ["client"]
        self._clients = {
            name: ClientProcess(run_under=(PROFILED, str(directory / name))) for name in names
        }
        self._numbers = iter(range(1_000))

    async def measure(self) -> tuple[Done, Done, list[Part]]:
        """Returns what was done plainly, what under the profiler, and the profiles."""
        await self._prepare()
        before = self._cpu()
        plain = await self._do()
        cpu = {name: used - before[name] for name, used in self._cpu().items()}
        self._switch()
        profiled = await self._do()
        self._switch()
        parts = [
            _part(name, self._directory / name, cpu[name] / plain.records * 1e6) for name in cpu
        ]
        return plain, profiled, parts

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Has the processes run meanwhile."""
        try:
            await asyncio.to_thread(self._broker.start)
            for client in self._clients.values():
                await client.wait_ready()
            yield
        finally:
            for client in self._clients.values():
                client.end()
            self._broker.kill()

    def _pids(self) -> dict[str, int]:
        return {"broker": self._broker.pid} | {
            name: client.pid for name, client in self._clients.items()
        }

    def _cpu(self) -> dict[str, float]:
        return {name: cpu_seconds(pid) for name, pid in self._pids().items()}

    def _switch(self) -> None:
        """Begins or ends the profiles of all."""
        for client in self._clients.values():
            client.send(signal.SIGUSR1)
        self._broker.send(signal.SIGUSR1)

    async def _prepare(self) -> None:
        workload = self._workload
        await self._ask("create", partitions=workload.partitions)
        if workload.verb in ("replay", "work"):
            await self._publish(Sending.FASTEST, count=self._filled_count())
        elif workload.verb in ("publish", "confirm"):
            await self._do()  # what is made once, be it records or connections

    def _filled_count(self) -> int:
        if self._workload.verb == "work":
            return int(WORK_COUNT * self._seconds)
        return int(REPLAY_BYTES * self._seconds) // self._workload.size

    async def _do(self) -> Done:
        match self._workload.verb:
            case "publish":
                return await self._publish(self._workload.sending)
            case "replay":
                count = self._filled_count()
                found = await self._ask("replay", count=count, how=self._workload.how)
                return Done(count, found["seconds"])
            case "confirm":
                size, seconds = self._workload.size, self._seconds
                times = await self._ask("confirm", size=size, count=CONFIRM_COUNT, seconds=seconds)
                return Done(len(times), sum(times))
            case "pace":
                return await self._pace()
        return await self._work()

    async def _publish(self, sending: Sending, count: int = 0) -> Done:
        found = await self._ask(
            "publish",
            size=self._workload.size,
            sending=sending,
            count=count,
            seconds=self._seconds,
        )
        return Done(found["count"], found["seconds"])

    async def _pace(self) -> Done:
        consumer, group = self._clients["consumer"], f"group-{next(self._numbers)}"
        async with consuming([consumer], self._subject, "topic", [group]) as members:
            begun = perf_counter()
            size, seconds = self._workload.size, self._seconds
            sent = await self._ask("pace", size=size, rate=PACE, seconds=seconds)
            await members.check_count(sent["count"])
            return Done(sent["count"], perf_counter() - begun)

    async def _work(self) -> Done:
        client, group = self._clients["client"], f"group-{next(self._numbers)}"
        async with consuming([client], self._subject, "topic", [group], way="work") as members:
            await members.check_count(self._filled_count())
            taken = await members.end()
            return Done(taken.count, taken.last - taken.first)

    async def _ask(self, verb: str, **order: Any) -> Any:
        client = next(iter(self._clients.values()))
        return await client.ask(verb, self._subject, topic="topic", **order)


def _broker(directory: Path) -> ServerProcess:
    (port,) = ports_of(directory / "server", "grpc")
    address = f"{LOOPBACK}:{port}"
    command = [sys.executable, "-m", PROFILED, str(directory / "broker"), "logbroker", "serve"]
    command += ["--data-dir", str(directory / "data"), "--grpc", address]
    environ = {"PYTHONPATH": str(Path(__file__).parents[1])}
    return ServerProcess(
        directory / "server", command, address=address, ports=[port], environ=environ
    )


def _part(name: str, file: Path, cpu_us: float) -> Part:
    """Returns a profile once it is written."""
    end = perf_counter() + WRITTEN_S
    while not times_file(file).exists():
        if perf_counter() > end:
            raise RuntimeError(f"{name} has written no profile")
        sleep(POLL_S)
    times = json.loads(times_file(file).read_text())
    return Part(name, cpu_us, times["worked"], pstats.Stats(str(file)))


def report(plain: Done, profiled: Done, parts: Iterable[Part], top: int) -> str:
    """Returns what was found, for people."""
    rate = plain.records / plain.seconds
    lines = [f"{rate:,.0f} records/s, {profiled.records / profiled.seconds:,.0f} profiled"]
    for part in parts:
        busy = part.cpu_us * rate / 1e6
        lines += ["", f"{part.name}: {part.cpu_us:.3f} us CPU a record, {busy:.2f} cores", ""]
        lines += _table(part, profiled.records, top)
    return "\n".join(lines)


def _table(part: Part, records: int, top: int) -> list[str]:
    """Returns the functions that took most time by themselves."""
    found: list[tuple[float, int, str]] = []
    for (file, line, name), (_, calls, own, *_) in part.stats.stats.items():  # type: ignore[attr-defined]  # not in typeshed
        place = f" {'/'.join(Path(file).parts[-2:])}:{line}" if line else ""
        found.append((own, calls, f"{name}{place}"))
    found.append((part.worked_s - sum(own for own, _, _ in found), 0, IN_C))
    found.sort(reverse=True)
    lines = [f"{'%':>6} {'us/record':>10} {'calls/record':>13}  function"]
    for own, calls, name in found[:top]:
        share, each = own / part.worked_s * 100, own / records * 1e6
        lines.append(f"{share:6.1f} {each:10.3f} {calls / records:13.4f}  {name}")
    return lines


def main() -> None:
    """Profiles what the arguments say."""
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__)
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--level", choices=list(Level), default=Level.WRITTEN, help="durability")
    parser.add_argument("--seconds", type=float, default=2, help="how long, about")
    parser.add_argument("--top", type=int, default=20, help="functions of each process")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="profile-") as directory:
        print(asyncio.run(_run(args, Path(directory))))


async def _run(args: argparse.Namespace, directory: Path) -> str:
    main_task = asyncio.current_task()
    assert main_task
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, main_task.cancel)
    bench = Bench(WORKLOADS[args.workload], Level(args.level), args.seconds, directory)
    async with bench.running():
        return report(*await bench.measure(), args.top)


if __name__ == "__main__":
    main()
