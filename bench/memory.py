"""How much memory does a broker hold: idle, and after much was written and read?

A broker of its own. Each round writes its share of the whole and reads the log from the
start of that share on; memory must not grow with the log.
"""

import asyncio

from bench.lab import WRITTEN, Lab, write
from bench.processes import rss_bytes
from bench.records import Shape, stored_bytes
from bench.rows import AtMost, Row
from logbroker.client.client import Client

SHAPE = Shape(1_000, 1_000)
IDLE, FIRST = "RSS idle, no data", "RSS after the first round's share"
IDLE_GOAL = AtMost(90)
GROWTH_GOAL = AtMost(1.2)
"""After all, against after the first share: what an allocator keeps is never quite the same."""


class Memory:
    """(f): resident memory."""

    title = "Memory of the broker's process"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._broker = lab.broker("memory")
        self._client: Client | None = None
        self._offset = 0
        self._all = f"RSS after {lab.scale.memory_bytes >> 20} MiB written and read"

    async def prepare(self) -> None:
        """Starts the broker, and looks at it while it is idle."""
        await asyncio.to_thread(self._broker.start)
        self._client = Client(self._broker.address)
        await self._client.admin.create_topic("bench", settings=WRITTEN)
        self._lab.samples.add(IDLE, self._rss_mib())

    async def run_round(self) -> None:
        """Writes and reads a share."""
        assert self._client
        scale = self._lab.scale
        batches = scale.memory_bytes // scale.rounds // stored_bytes(SHAPE)
        await write(self._client, "bench", SHAPE, batches)
        async with self._client.reader("bench", start=self._offset) as reader:
            async for batch in reader.batches():
                self._offset += batch.record_count
        if not self._lab.samples.of(FIRST):
            self._lab.samples.add(FIRST, self._rss_mib())
        self._lab.samples.replace(self._all, self._rss_mib())

    async def close(self) -> None:
        """Stops the broker."""
        if self._client:
            await self._client.close()
            await asyncio.to_thread(self._broker.stop)

    def rows(self) -> list[Row]:
        """Returns the rows."""
        return [
            Row(name=IDLE, unit="MiB", goal=IDLE_GOAL),
            Row(name=FIRST, unit="MiB"),
            Row(name=self._all, unit="MiB", limit=FIRST, goal=GROWTH_GOAL),
        ]

    def _rss_mib(self) -> float:
        return rss_bytes(self._broker.pid) / (1 << 20)
