"""The topics and groups of a soak."""

import asyncio

from logbroker.client import Client
from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import GroupSettings, Order
from logbroker.topic.topic import TopicSettings

from .account import ORDERS, REPLAY, WITNESS, WORK
from .sizes import Sizes

RETRY = RetryPolicy(initial_ms=100, max_ms=1_000, max_failures=3)
SEGMENT_BYTES = 64 << 10
"""Small: they roll often."""


def idle_topic(number: int) -> str:
    """Returns the name of one of the topics that hardly anybody writes to."""
    return f"idle-{number}"


def idle_group(number: int) -> str:
    """Returns the name of one of the groups of idle consumers."""
    return f"idle-group-{number}"


async def prepare(client: Client, sizes: Sizes) -> None:
    """Makes what must be there before the load begins."""
    settings = TopicSettings(segment_bytes=SEGMENT_BYTES)
    await client.admin.create_topic(WORK, sizes.work_partition_count, settings)
    await client.admin.create_topic("probe", 1, TopicSettings(retention_bytes=1 << 20))
    await asyncio.gather(
        *(
            client.admin.create_topic(idle_topic(number), sizes.idle_partition_count)
            for number in range(sizes.idle_topic_count)
        )
    )
    await asyncio.gather(*(_write_once(client, sizes, n) for n in range(sizes.idle_topic_count)))
    for order in ORDERS:
        settings_of = GroupSettings(order=Order(order), retry=RETRY)
        await client.admin.create_group(f"work-{order}", settings_of)
    for group in (WITNESS, REPLAY):
        await client.admin.create_group(group, GroupSettings(retry=RETRY))


async def _write_once(client: Client, sizes: Sizes, number: int) -> None:
    """Writes to each partition: what is kept of it is there before anything is measured."""
    async with client.producer(idle_topic(number)) as producer:
        for partition in range(sizes.idle_partition_count):
            await producer.send(b"first", partition=partition)
