"""What tests of the file engine share."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from logbroker.config import LogConfig, StorageConfig
from logbroker.storage.file.disk import Disk
from logbroker.storage.file.engine import FileEngine
from logbroker.testing.clock import ManualClock
from logbroker.testing.engine_harness import PARTITION, batch_of


class Place:
    """A data directory and a clock, for one engine after the other."""

    def __init__(self, data_dir):
        self.data_dir = data_dir
        self.clock = ManualClock()
        self.directory = data_dir / "topics" / PARTITION.topic / str(PARTITION.partition)

    @asynccontextmanager
    async def engine(self, disk=None, **settings):
        config = StorageConfig(data_dir=self.data_dir, **settings)
        engine = await FileEngine.start(config, self.clock, disk or Disk())
        try:
            yield engine
        finally:
            await engine.close()

    @asynccontextmanager
    async def log(self, disk=None, partition=PARTITION, **settings):
        async with self.engine(disk) as engine:
            log = await engine.open(partition, LogConfig(**settings))
            log.housekeep = engine.housekeep
            yield log

    async def fill(self, values, **settings):
        """Writes a batch for each value, and stops cleanly."""
        async with self.log(**settings) as log:
            for value in values:
                await log.append(batch_of(value))

    async def flushed(self, log):
        """Returns when no flush runs."""
        if task := log._flusher._task:
            await task

    def files(self, suffix=".log"):
        return sorted(self.directory.glob(f"*{suffix}"))


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path / "data")


@pytest.fixture
def run():
    return lambda test: asyncio.run(test())
