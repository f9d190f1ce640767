"""A failed sync, and a broker that is started again on what memory still shows of the file."""

import asyncio
import errno
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from logbroker.config import LogConfig, StorageConfig
from logbroker.errors import UnavailableError
from logbroker.storage.file.engine import FileEngine
from logbroker.testing.clock import ManualClock
from logbroker.testing.engine_harness import PARTITION, batch_of, values_from

from .disk import Fault, SimulatedDisk
from .platter import Platter
from .threads import SimulatedThreads


@pytest.mark.parametrize("seed", range(12))
def test_what_is_read_after_a_failed_sync_and_a_restart_survives_a_loss_of_power(seed):
    """It was read, and answered as a duplicate, from memory, and then it was gone."""
    random, platter, clock = Random(seed), Platter(), ManualClock()

    async def start():
        disk = SimulatedDisk(platter, random, Counter())
        config = StorageConfig(data_dir=Path("/data"))
        engine = await FileEngine.start(config, clock, disk, SimulatedThreads(random))
        return disk, engine, await engine.open(PARTITION, LogConfig())

    async def run():
        disk, engine, log = await start()
        await log.append(batch_of("kept"))
        disk.chances["sync"] = Fault(errno.EIO, 1.0)
        with pytest.raises(UnavailableError):
            await log.append(batch_of("doubtful"))
        disk.chances.clear()
        await engine.close()

        disk, engine, log = await start()
        seen = await values_from(log, 0)
        assert seen[0] == "kept"
        disk.kill()
        await engine.close()
        platter.lose_power(random)

        _, engine, log = await start()
        assert await values_from(log, 0) == seen
        await engine.close()

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(12))
def test_a_deletion_cut_short_and_finished_by_another_broker_survives_a_loss_of_power(seed):
    """The other broker found no directory, called the topic erased, and then it was there again."""
    random, platter, clock = Random(seed), Platter(), ManualClock()
    config = StorageConfig(data_dir=Path("/data"))

    async def start():
        disk = SimulatedDisk(platter, random, Counter())
        return disk, await FileEngine.start(config, clock, disk, SimulatedThreads(random))

    async def run():
        disk, engine = await start()
        await (await engine.open(PARTITION, LogConfig())).append(batch_of("deleted"))
        disk.chances["sync_directory"] = Fault(errno.EIO, 1.0)
        with pytest.raises(UnavailableError):
            await engine.delete(PARTITION)
        disk.kill()
        await engine.close()

        disk, engine = await start()
        await engine.delete(PARTITION)
        disk.kill()
        await engine.close()
        platter.lose_power(random)

        _, engine = await start()
        assert engine.partitions() == []
        await engine.close()

    asyncio.run(run())
