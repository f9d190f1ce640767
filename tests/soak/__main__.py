"""A soak: a broker's process, its load, and a verdict.

    python -m tests.soak --minutes 10
    python -m tests.soak --seconds 15 --sizes small --json soak.json

Exit code 1 if something grew, became slow, was lost or stayed unsettled: a sentence says what.
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from logbroker.client import Client
from logbroker.testing.running_broker import BrokerProcess

from .account import Account
from .samples import Sample, Sampler, Samples
from .sizes import MIB, PATIENCE_MS, SIZES
from .verdict import Verdict, shown, verdict_of

ROOT = Path(__file__).parents[2]
SETTINGS = (
    "--set", "storage.scrub_interval_ms=60000",  # often, so that it is part of the load
    "--set", "storage.max_open_files=512",  # fewer than there are, so that they come and go
)  # fmt: skip


class Beside:
    """A process of ours beside the broker's."""

    def __init__(self, name: str, *arguments: str) -> None:
        self._name = name
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"tests.soak.{name}", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip

    async def wait_line(self) -> str:
        """Returns what it says next."""
        assert self._process.stdout
        line = await asyncio.to_thread(self._process.stdout.readline)
        if not line:
            raise RuntimeError(f"the process {self._name} has ended with {self._process.wait()}")
        return line

    def end(self) -> None:
        """Tells it to end."""
        assert self._process.stdin
        with suppress(BrokenPipeError):
            self._process.stdin.write("end\n")
            self._process.stdin.flush()

    async def wait_over(self) -> None:
        """Returns once it has ended."""
        await asyncio.to_thread(self._process.wait)

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def __enter__(self) -> "Beside":
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_running:
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                with suppress(BrokenPipeError):
                    stream.close()


async def soak(
    sizes_name: str, seconds: float, *, seed: int, leak: int
) -> tuple[Verdict, Samples, Account]:
    """Runs one, and returns what it says."""
    sizes = SIZES[sizes_name]
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-"))
        broker = stack.enter_context(BrokerProcess(Path(directory) / "data", *SETTINGS))
        load = stack.enter_context(Beside("load", broker.address, sizes_name, str(seed), str(leak)))
        await load.wait_line()
        idle = stack.enter_context(Beside("idle", broker.address, sizes_name))
        await idle.wait_line()
        _tell(
            f"{sizes.idle_consumer_count} idle consumers have joined; it goes on for {seconds:g} s"
        )
        async with Client(broker.address, timeout_ms=PATIENCE_MS) as client:
            sampler = Sampler(client, broker.pid)
            teller = LiveLine(seconds)
            await sampler.sample_for(seconds, sizes.sample_every_s, teller.tell)
            sampler.samples.last_stats = await client.admin.get_stats()
            if not idle.is_running:
                sampler.samples.errors.append("the process of idle consumers has ended")
            load.end()
            account = Account.of(json.loads(await load.wait_line()))
            idle.end()
            await idle.wait_over()
        code = broker.stop()
        if code:
            sampler.samples.errors.append(f"the broker ended with {code}")
    return verdict_of(sampler.samples, account, sizes), sampler.samples, account


class LiveLine:
    """Tells how it goes, each tenth of the time."""

    def __init__(self, seconds: float) -> None:
        self._every_s = max(seconds / 20, 1)
        self._next_s = 0.0

    def tell(self, sample: Sample) -> None:
        """Tells of a sample, if it is time to."""
        if sample.at_s >= self._next_s:
            self._next_s += self._every_s
            _tell(
                f"{sample.at_s:6.0f} s  RSS {sample.rss_bytes / MIB:6.1f} MiB"
                f"  files {sample.open_files:5}  threads {sample.threads:3}"
                f"  publish {sample.latency_ms:6.1f} ms  CPU {sample.cpu_s:7.1f} s"
            )


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def report(verdict: Verdict, samples: Samples, account: Account) -> str:
    """Returns the table at the end."""
    lines = [f"{'':12} {'first':>11} {'last':>11} {'least':>11} {'most':>11} {'an hour':>13}"]
    for row in verdict.rows:
        values = (row.first, row.last, row.least, row.greatest, row.growth.per_hour)
        first, last, least, most, per_hour = (shown(row.name, value) for value in values)
        lines.append(f"{row.name:12} {first:>11} {last:>11} {least:>11} {most:>11} {per_hour:>13}")
    lines.append(f"publish: p50 {verdict.p50_ms:.1f} ms, p99 {verdict.p99_ms:.1f} ms")
    for name, found in verdict.latencies.items():
        quarters = f"first quarter {found.first_p99:.0f} ms, last {found.last_p99:.0f} ms"
        lines.append(f"{name}: p99 of the {quarters}")
    lines.append(f"CPU of the broker: {verdict.cpu_share:.2f} of a core")
    stats = samples.last_stats
    names = "partition_count", "group_count", "member_count", "open_stream_count"
    lines.append(", ".join(f"{name} {stats.get(name)}" for name in names))
    lines.append(f"scrubbed: {stats.get('scrubbed_segment_count')} segments")
    lines.append(f"errors answered: {stats.get('error_counts')}")
    lines.append(
        f"records: {account.acknowledged_count} acknowledged, {account.stored_count} stored"
    )
    lines += [f"  {what}: {count}" for what, count in sorted(account.done.items())]
    lines.append("FAILED" if verdict.faults else "ok")
    lines += [f"  {fault}" for fault in verdict.faults]
    return "\n".join(lines)


def to_json(verdict: Verdict, samples: Samples, account: Account) -> dict[str, Any]:
    """Returns all of it as plain values."""
    taken = [[getattr(one, name) for name in Sample.__slots__] for one in samples.taken]
    return {
        "verdict": verdict.to_json(),
        "account": account.to_json(),
        "stats": {name: value for name, value in samples.last_stats.items() if name != "groups"},
        "samples": {"columns": list(Sample.__slots__), "rows": taken},
        "loop_lags_ms": samples.loop_lags_ms,
    }


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seconds", type=float, help="instead of minutes")
    parser.add_argument("--sizes", choices=list(SIZES), default="full")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="a file for all that was sampled")
    parser.add_argument("--leak", type=int, default=0, help="connections a second never closed")
    given = parser.parse_args()
    seconds = given.seconds or given.minutes * 60
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends what was started, too
    found = asyncio.run(soak(given.sizes, seconds, seed=given.seed, leak=given.leak))
    print(report(*found))
    if given.json:
        given.json.write_text(json.dumps(to_json(*found), default=str) + "\n")
    return 1 if found[0].faults else 0


if __name__ == "__main__":
    sys.exit(main())
