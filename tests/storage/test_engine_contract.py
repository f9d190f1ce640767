"""Every engine keeps the contract."""

import asyncio

import pytest

from logbroker.config import StorageConfig
from logbroker.storage.file.engine import FileEngine
from logbroker.storage.memory import MemoryEngine
from logbroker.testing.engine_contract import CONTRACT
from logbroker.testing.engine_harness import Harness


def memory(_tmp_path):
    async def start(clock, before):
        return before.reopened() if before else MemoryEngine(clock)

    return start


def file(tmp_path):
    async def start(clock, _before):
        return await FileEngine.start(StorageConfig(data_dir=tmp_path), clock)

    return start


@pytest.mark.parametrize("engine", [memory, file], ids=lambda engine: engine.__name__)
@pytest.mark.parametrize("rule", CONTRACT, ids=lambda rule: rule.__name__)
def test_the_engine_keeps_its_contract(rule, engine, tmp_path):
    async def run():
        async with Harness(engine(tmp_path)) as harness:
            await rule(await harness.open(), harness)

    asyncio.run(run())
