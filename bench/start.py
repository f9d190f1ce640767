"""How long until a broker serves, after a clean stop and after a kill?

From `exec` to the line that says where it listens. Clean: with 1,000 segments, stopped by
SIGTERM. Unclean: with an active segment of 256 MiB, killed by SIGKILL; and after 100,000
commits of one group, each an event in the journal, killed as well. All with a warm page cache.
"""

import asyncio
import subprocess
import sys
from time import perf_counter

from bench.lab import Lab, write
from bench.processes import rss_bytes
from bench.records import Shape, stored_bytes
from bench.rows import AtMost, Row
from logbroker.client.client import Client
from logbroker.client.group_status import Commit
from logbroker.config import Durability
from logbroker.testing.running_broker import BrokerProcess
from logbroker.topic.topic import TopicSettings

SEGMENT_BYTES = 4 << 10
"""The smallest there is."""
SEGMENT_SHAPE = Shape(4_000, 1)
"""Two of these do not fit a segment."""
UNCLEAN_SHAPE = Shape(1_000, 1_000)
IMPORTS = "import logbroker.app, logbroker.cli.main"
CLEAN_GOAL = AtMost(1)
COMMITS_GOAL = AtMost(5)
IDLE_GOAL = AtMost(90)
COMMIT_SHAPE = Shape(1, 1_000)
COMMITS_A_CALL = 1_000
GROUP = "committing"


class Start:
    """(f): start time."""

    title = "Start, from exec to the listening line"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._segmented = lab.broker("segmented")
        self._killed = lab.broker("killed")
        self._committed = lab.broker("committed")
        scale = lab.scale
        self._clean = f"start, clean, {scale.segment_count:,} segments"
        self._unclean = f"start, killed, active segment of {scale.unclean_bytes >> 20} MiB"
        self._imports = "interpreter and imports alone"
        self._commits = f"start, killed, {scale.commit_count:,} commits journaled"
        self._idle = f"RSS idle, {scale.segment_count:,} segments"

    async def prepare(self) -> None:
        """Makes the two data directories."""
        count = self._lab.scale.segment_count
        await _fill(self._segmented, SEGMENT_SHAPE, count, SEGMENT_BYTES)
        async with Client(self._segmented.address) as client:
            (partition,) = (await client.admin.get_topic("bench")).partitions
            assert partition.segment_count >= count, partition
        await asyncio.to_thread(self._segmented.stop)
        size = self._lab.scale.unclean_bytes
        batches = max(1, size // stored_bytes(UNCLEAN_SHAPE))
        await _fill(self._killed, UNCLEAN_SHAPE, batches, 2 * size)
        await asyncio.to_thread(self._killed.kill)
        await self._commit(self._lab.scale.commit_count)
        await asyncio.to_thread(self._committed.kill)

    async def run_round(self) -> None:
        """Starts the brokers, and ends each as it was ended before."""
        await asyncio.to_thread(self._run_round)
        begun = perf_counter()
        await asyncio.to_thread(self._committed.start)
        self._lab.samples.add(self._commits, perf_counter() - begun)
        async with Client(self._committed.address) as client:
            (progress,) = await client.admin.get_offsets(GROUP)
            assert progress.committed_offset == self._lab.scale.commit_count, progress
        await asyncio.to_thread(self._committed.kill)

    def _run_round(self) -> None:
        add = self._lab.samples.add
        begun = perf_counter()
        subprocess.run([sys.executable, "-c", IMPORTS], check=True)
        add(self._imports, perf_counter() - begun)
        begun = perf_counter()
        self._segmented.start()
        add(self._clean, perf_counter() - begun)
        add(self._idle, rss_bytes(self._segmented.pid) / (1 << 20))
        self._segmented.stop()
        begun = perf_counter()
        self._killed.start()
        add(self._unclean, perf_counter() - begun)
        self._killed.kill()

    async def close(self) -> None:
        """Has nothing to let go: no broker runs between two rounds."""

    def rows(self) -> list[Row]:
        """Returns the rows."""
        return [
            Row(name=self._imports, unit="s"),
            Row(name=self._clean, unit="s", goal=CLEAN_GOAL),
            Row(name=self._unclean, unit="s"),
            Row(name=self._commits, unit="s", goal=COMMITS_GOAL),
            Row(name=self._idle, unit="MiB", goal=IDLE_GOAL),
        ]

    async def _commit(self, count: int) -> None:
        """Writes as many records, and commits behind each of them."""
        batches = count // COMMIT_SHAPE.record_count
        await _fill(self._committed, COMMIT_SHAPE, batches, TopicSettings().segment_bytes)
        async with Client(self._committed.address) as client:
            for first in range(0, count, COMMITS_A_CALL):
                offsets = range(first + 1, min(first + COMMITS_A_CALL, count) + 1)
                commits = [Commit("bench", 0, offset) for offset in offsets]
                results = await client.admin.commit_offsets(GROUP, commits)
                assert results == list(offsets), results


async def _fill(
    broker: BrokerProcess, shape: Shape, batches: int, segment_bytes: int | None
) -> None:
    """Starts the broker and writes so many batches to a topic of one partition."""
    await asyncio.to_thread(broker.start)
    settings = TopicSettings(durability=Durability.WRITTEN, segment_bytes=segment_bytes)
    async with Client(broker.address) as client:
        await client.admin.create_topic("bench", settings=settings)
        await write(client, "bench", shape, batches)
