"""An engine that holds up changes of topics, or refuses them; and what it has."""

import asyncio

from logbroker.errors import ExhaustedError
from logbroker.storage.memory import MemoryEngine
from logbroker.topic.topic import TopicSettings

NONE = TopicSettings()


def of_users(engine):
    """Returns the partitions of topics, without those of the journals."""
    return sorted(found for found in engine.partitions() if not found.topic.startswith("__"))


class StubbornEngine(MemoryEngine):
    """Refuses to open or to delete what `refuses` says; waits for `gate` before it does either."""

    def __init__(self, clock):
        super().__init__(clock)
        self.refuses = lambda verb, partition: False
        self.gate = asyncio.Event()
        self.gate.set()

    async def _pass(self, verb, partition):
        if not partition.topic.startswith("__"):
            await self.gate.wait()
            if self.refuses(verb, partition):
                raise ExhaustedError("DISK_FULL", f"no room to {verb} {partition}")

    async def open(self, partition, config):
        await self._pass("open", partition)
        return await super().open(partition, config)

    async def delete(self, partition):
        await self._pass("delete", partition)
        await super().delete(partition)


async def turns():
    for _ in range(50):
        await asyncio.sleep(0)
