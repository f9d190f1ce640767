"""The file engine keeps its contract on the simulated disk, as on a real one."""

import asyncio
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from logbroker.config import StorageConfig
from logbroker.storage.file.engine import FileEngine
from logbroker.testing.engine_contract import CONTRACT
from logbroker.testing.engine_harness import Harness

from .disk import SimulatedDisk
from .platter import Platter
from .threads import SimulatedThreads


@pytest.mark.parametrize("rule", CONTRACT, ids=lambda rule: rule.__name__)
def test_the_engine_keeps_its_contract(rule):
    random, platter = Random(rule.__name__), Platter()

    async def start(clock, _before):
        disk = SimulatedDisk(platter, random, Counter())
        config = StorageConfig(data_dir=Path("/data"))
        return await FileEngine.start(config, clock, disk, SimulatedThreads(random))

    async def run():
        async with Harness(start) as harness:
            await rule(await harness.open(), harness)

    asyncio.run(run())
