"""Brokers for tests of the client: in memory, and one that can be stopped and started again."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from logbroker.client import Client, Producer
from logbroker.clock import SystemClock
from logbroker.config import LimitsConfig, ListenConfig
from logbroker.storage.memory import MemoryEngine
from logbroker.testing.running_broker import running_broker


@asynccontextmanager
async def client_of_broker(
    partition_count: int = 1, limits: LimitsConfig | None = None, **options: Any
) -> AsyncIterator[Client]:
    """Yields a client of a fresh broker that has one topic, `t`."""
    async with running_broker(limits=limits) as (address, _), Client(address, **options) as client:
        await client.admin.create_topic("t", partition_count)
        yield client


class RestartableBroker:
    """A broker on one port, whose records outlive it."""

    def __init__(self) -> None:
        self.engine = MemoryEngine(SystemClock())
        self.address = "127.0.0.1:0"
        self._running = AsyncExitStack()

    async def start(self) -> None:
        """Starts it, on the port it had."""
        listen = ListenConfig(grpc=self.address, stop_grace_ms=100)
        running = running_broker(engine=self.engine, listen=listen)
        self.address, _ = await self._running.enter_async_context(running)

    async def stop(self) -> None:
        """Stops it."""
        await self._running.aclose()

    async def __aenter__(self) -> "RestartableBroker":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


async def values_of(client: Client, topic: str = "t") -> list[bytes | None]:
    """Returns all values, partition by partition."""
    records = [record async for record in client.reader(topic)]
    return [record.value for record in sorted(records, key=lambda each: each.partition)]


async def send_all(producer: Producer, values: list[bytes]) -> None:
    """Sends and waits for every receipt."""
    for receipt in [await producer.send(value) for value in values]:
        await receipt
