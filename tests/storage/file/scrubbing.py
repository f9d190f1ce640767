"""A log to scrub, and what tests of the scrub say again and again."""

import asyncio
from contextlib import asynccontextmanager

from logbroker.config import LogConfig
from logbroker.record.batch import HEADER
from logbroker.storage.file.disk import Disk
from logbroker.testing.engine_harness import PARTITION

VALUES = [f"{number:04}" * 100 for number in range(40)]

SETTINGS = {"segment_bytes": 4_096, "retention_ms": 0}
FAST = 1 << 40
INTERVAL_MS = 3_600_000


class WatchedDisk(Disk):
    """Notes what is read aside, and by which clock."""

    def __init__(self, clock=None):
        self.reads = []
        self._clock = clock

    def read_aside(self, path, size, position):
        data = super().read_aside(path, size, position)
        self.reads.append((self._clock.monotonic_ms() if self._clock else 0, path, len(data)))
        return data


@asynccontextmanager
async def scrubbing(place, disk=None, scrub_bytes_per_second=FAST, **settings):
    """Gives the engine and the log of a place whose scrub begins with the next pass."""
    settings = {"scrub_interval_ms": INTERVAL_MS} | settings
    settings["scrub_bytes_per_second"] = scrub_bytes_per_second
    async with place.engine(disk, **settings) as engine:
        yield engine, await engine.open(PARTITION, LogConfig(**SETTINGS))


async def becomes(place, condition):
    """Lets time pass, and threads end, until it is so."""
    async with asyncio.timeout(60):
        while not condition():
            await place.clock.advance(1_000)
            await asyncio.to_thread(int)


async def passed(place, engine):
    """Lets one more pass end."""
    before = engine.stats().scrub_finished_time_ms
    await place.clock.advance(INTERVAL_MS)
    await becomes(place, lambda: engine.stats().scrub_finished_time_ms != before)


def events(logs, name):
    return [line for line in logs if line["event"] == name]


def batches_in(path):
    """Returns where each batch of a file begins and ends."""
    size = HEADER.size + 2 + 1 + len(VALUES[0])
    assert path.stat().st_size % size == 0
    return [(at, at + size) for at in range(0, path.stat().st_size, size)]


def state_of(directory):
    """Returns which files there are, and what a change to one would change."""
    found = {path: path.stat() for path in directory.iterdir()}
    return {path: (stat.st_ino, stat.st_size, stat.st_mtime_ns) for path, stat in found.items()}


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)
