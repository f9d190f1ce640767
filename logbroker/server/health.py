"""The standard gRPC health service: whether each of our services serves.

A disk that failed under the broker's own state cannot be told from a wrong state, so what
rests on that state serves no more until the broker is started again. The broker as a whole
(the empty name) does not serve then either: that is what gets it started again. Where the disk
failed under partitions of topics, all others go on, and so does reading; `ProduceService` does
not serve then, until the broker is started again or the topics are deleted.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from logbroker.topic.names import CATALOG_TOPIC, GROUPS_TOPIC, PRODUCERS_TOPIC

RESTS_ON = {
    CATALOG_TOPIC: ("TopicService",),
    PRODUCERS_TOPIC: (),
    GROUPS_TOPIC: ("ConsumeService", "GroupService", "DeadLetterService"),
}
"""What does not serve without which part of the state."""


class Failing(Protocol):
    """What health asks of the broker."""

    async def wait_failed(self, journal: str) -> None: ...
    def failed_partition_counts(self) -> AsyncIterator[int]: ...


@asynccontextmanager
async def health_of(
    server: grpc.aio.Server, broker: Failing, services: Sequence[str]
) -> AsyncIterator[health.aio.HealthServicer]:
    """Adds the service to the server, and watches the broker meanwhile."""
    checks = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    for name in ("", *services):
        await checks.set(_full(name), health_pb2.HealthCheckResponse.SERVING)
    watching = [
        asyncio.create_task(_watch(checks, broker, journal, names))
        for journal, names in RESTS_ON.items()
    ]
    watching.append(asyncio.create_task(_watch_partitions(checks, broker)))
    try:
        yield checks
    finally:
        for task in watching:
            task.cancel()
        await asyncio.wait(watching)


async def _watch(
    checks: health.aio.HealthServicer, broker: Failing, journal: str, names: Sequence[str]
) -> None:
    await broker.wait_failed(journal)
    for name in ("", *names):
        await checks.set(_full(name), health_pb2.HealthCheckResponse.NOT_SERVING)


async def _watch_partitions(checks: health.aio.HealthServicer, broker: Failing) -> None:
    status = health_pb2.HealthCheckResponse
    async for count in broker.failed_partition_counts():
        await checks.set(_full("ProduceService"), status.NOT_SERVING if count else status.SERVING)


def _full(name: str) -> str:
    return name and f"logbroker.v1.{name}"
