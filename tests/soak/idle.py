"""A process of idle consumers: members of many groups, to whom hardly anything comes.

    python -m tests.soak.idle ADDRESS SIZES

Says `ready` once all have joined and read what there is; ends after a line `end`, or with 1
when one of them ends.
"""

import asyncio
import sys
from contextlib import AsyncExitStack

from logbroker.client import Client, Consumer

from .sizes import PATIENCE_MS, SIZES
from .topics import idle_group, idle_topic


async def main(address: str, name: str) -> None:
    """Joins, and stays until it is told otherwise."""
    sizes = SIZES[name]
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(Client(address, timeout_ms=PATIENCE_MS))
            for _ in range(sizes.idle_channel_count)
        ]
        consumers = []
        for number in range(sizes.idle_consumer_count):
            group = number % sizes.idle_group_count
            client = clients[number % len(clients)]
            topic = idle_topic(group % sizes.idle_topic_count)
            consumer = client.consumer(idle_group(group), topic)
            consumers.append(await stack.enter_async_context(consumer))
        reading = [asyncio.create_task(_read(consumer)) for consumer in consumers]
        for group in range(sizes.idle_group_count):
            await _wait_read(clients[0], idle_group(group))
        print("ready", flush=True)
        end = asyncio.create_task(asyncio.to_thread(sys.stdin.readline))
        await asyncio.wait([end, *reading], return_when=asyncio.FIRST_COMPLETED)
        is_early = not end.done()
        for task in reading:
            task.cancel()
        results = await asyncio.gather(*reading, return_exceptions=True)
        if is_early:
            [error] = [one for one in results if not isinstance(one, asyncio.CancelledError)][:1]
            print(f"an idle consumer has ended: {error!r}", file=sys.stderr, flush=True)
            sys.exit(1)


async def _wait_read(client: Client, group: str) -> None:
    async def is_behind() -> bool:
        return (await client.admin.get_group(group)).lag > 0

    while await is_behind():  # noqa: ASYNC110  # it is the broker that knows
        await asyncio.sleep(0.2)


async def _read(consumer: Consumer) -> None:
    async for _ in consumer:
        pass


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
