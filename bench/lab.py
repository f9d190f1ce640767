"""What every question is measured with: a broker, the bare limit, a directory on the disk."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Protocol

from bench.bare import BareProcesses, BareStreams
from bench.records import Shape, records_of
from bench.rows import Row, Samples
from bench.scale import Scale
from logbroker.client.client import Client
from logbroker.config import Durability
from logbroker.testing.running_broker import BrokerProcess
from logbroker.topic.topic import TopicSettings

BATCH_BYTES = 8 << 20
"""The broker's limit is raised to this: 5,000 records of 1,000 bytes are more than 2 MiB."""
TOUCHED_BYTES_PER_SECOND = 1 << 30
"""About what is written while a row is measured."""
WRITTEN = TopicSettings(durability=Durability.WRITTEN)
SYNCED = TopicSettings(durability=Durability.SYNCED)


@dataclass(kw_only=True)
class Lab:
    """What the questions share."""

    scale: Scale
    directory: Path
    bare: BareStreams
    bare_as_it_comes: BareProcesses
    broker_process: BrokerProcess
    client: Client
    """Of that broker."""
    samples: Samples = field(default_factory=Samples)
    _numbers: "count[int]" = field(default_factory=count)

    def broker(self, name: str) -> BrokerProcess:
        """Returns another broker on a directory of this name, not started."""
        return BrokerProcess(self.directory / name)

    def touch_memory(self) -> None:
        """Makes the memory real that page cache is about to take: a file is written and removed.

        A virtual machine may get each page from its host when it is first touched, and give
        it back a moment after it is freed. That costs several times what a write costs, and
        has nothing to do with us.
        """
        path, piece = self.directory / "touched", bytes(1 << 20)
        with path.open("wb", buffering=0) as file:
            for _ in range(int(self.scale.seconds * TOUCHED_BYTES_PER_SECOND) >> 20):
                file.write(piece)
        path.unlink()

    @asynccontextmanager
    async def topic(self, settings: TopicSettings) -> AsyncIterator[str]:
        """Makes a topic of one partition, and deletes it at the end: its bytes leave the disk."""
        name = f"bench-{next(self._numbers)}"
        await self.client.admin.create_topic(name, settings=settings)
        yield name
        await self.client.admin.delete_topic(name)


class Question(Protocol):
    """One file of this directory."""

    title: str

    async def prepare(self) -> None:
        """Makes ready what is not measured."""

    async def run_round(self) -> None:
        """Measures every row once, what is compared right after one another."""

    async def close(self) -> None:
        """Lets go of what it made."""

    def rows(self) -> list[Row]:
        """Returns the rows, in the order of the table."""


async def write(
    client: Client, topic: str, shape: Shape, batch_count: int, *, partition: int = 0
) -> None:
    """Writes so many batches, one at least, to a partition; returns when all are stored."""
    records = records_of(shape)
    async with client.producer(topic, max_batch_bytes=64 << 20) as producer:
        for number in range(max(1, batch_count)):
            await producer.send_many(*records[number % len(records)], partition=partition)


@asynccontextmanager
async def open_lab(scale: Scale, parent: Path) -> AsyncIterator[Lab]:
    """Starts the processes; at the end stops them and removes all data."""
    async with AsyncExitStack() as stack:
        directory = Path(tempfile.mkdtemp(prefix="data-", dir=parent))
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        bare, bare_as_it_comes = BareStreams(), BareProcesses()
        stack.push_async_callback(bare.close)
        stack.push_async_callback(bare_as_it_comes.close)
        broker = BrokerProcess(directory / "broker", "--set", f"limits.batch_bytes={BATCH_BYTES}")
        starting = asyncio.to_thread(stack.enter_context, broker)
        await asyncio.gather(bare.open(), bare_as_it_comes.open(), starting)
        client = await stack.enter_async_context(Client(broker.address))
        yield Lab(
            scale=scale,
            directory=directory,
            bare=bare,
            bare_as_it_comes=bare_as_it_comes,
            broker_process=broker,
            client=client,
        )
