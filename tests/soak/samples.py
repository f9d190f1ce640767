"""What is sampled while a soak goes on: the process from outside, the broker by its API."""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from logbroker.client import Client
from logbroker.errors import LogbrokerError

from .sizes import PATIENCE_MS

STATS_EVERY = 5
"""Stats are asked for with each so many samples: they tell of the last 10 s."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Of one moment."""

    at_s: float
    rss_bytes: int
    open_files: int
    threads: int
    cpu_s: float
    latency_ms: float
    """Of one publish."""


@dataclass(slots=True)
class Samples:
    """Of one soak."""

    taken: list[Sample] = field(default_factory=list)
    loop_lags_ms: list[float] = field(default_factory=list)
    last_stats: dict[str, object] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)


class Sampler:
    """Looks at one broker's process."""

    def __init__(self, client: Client, pid: int) -> None:
        self.samples = Samples()
        self._client = client
        self._producer = client.producer("probe")
        self._process = Path(f"/proc/{pid}")
        self._begun_s = time.monotonic()

    async def sample(self) -> Sample:
        """Takes one sample, the latency of a publish included."""
        latency_ms = await self._latency_ms()
        status = dict(
            line.split(":", 1) for line in (self._process / "status").read_text().splitlines()
        )
        fields = (self._process / "stat").read_text().rpartition(")")[2].split()
        taken = Sample(
            at_s=time.monotonic() - self._begun_s,
            rss_bytes=int(status["VmRSS"].split()[0]) * 1_024,
            open_files=len(os.listdir(self._process / "fd")),
            threads=int(status["Threads"]),
            cpu_s=(int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"),
            latency_ms=latency_ms,
        )
        self.samples.taken.append(taken)
        if len(self.samples.taken) % STATS_EVERY == 0:
            await self._take_stats()
        return taken

    async def sample_for(
        self, seconds: float, every_s: float, told: Callable[[Sample], None]
    ) -> None:
        """Takes samples, so often, for that time, and tells of each."""
        end = time.monotonic() + seconds
        while (begun := time.monotonic()) < end:
            told(await self.sample())
            await asyncio.sleep(max(begun + every_s - time.monotonic(), 0))

    async def _take_stats(self) -> None:
        try:
            stats = await self._client.admin.get_stats()
        except LogbrokerError as error:
            self.samples.errors.append(f"no stats: {error!r}")
            return
        self.samples.last_stats = stats
        self.samples.loop_lags_ms.append(float(str(stats["loop_lag_ms"])))

    async def _latency_ms(self) -> float:
        begun = time.perf_counter()
        try:
            async with asyncio.timeout(PATIENCE_MS / 1_000):
                await self._producer.publish(b"probe")
        except (LogbrokerError, TimeoutError) as error:
            self.samples.errors.append(f"a publish failed: {error!r}")
        return (time.perf_counter() - begun) * 1_000
