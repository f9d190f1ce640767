"""Members of groups in processes of their own, as those of different applications are.

One Python client is bound to one core; so several are measured in several processes. Run by
itself this is one of them, which takes its orders from stdin: to join a group, to read for so
long with a handler that takes its time, and to leave.
"""

import asyncio
import gc
import json
import sys
from contextlib import AsyncExitStack, suppress
from time import perf_counter
from typing import Any

import uvloop

from bench.child import Child
from logbroker.client.client import Client
from logbroker.client.consumer import Consumer
from logbroker.group.settings import GroupSettings, Start
from logbroker.malloc import keep_freed_memory


class MemberProcess:
    """One client, which is a member of one group after the other."""

    def __init__(self, address: str) -> None:
        self._child = Child("bench.member", address)

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._child.pid

    async def wait_ready(self) -> None:
        """Returns once it takes orders."""
        await asyncio.to_thread(self._child.read)

    async def join(self, group: str, topic: str, start: Start) -> None:
        """Makes it the member of a new group that has its partitions."""
        await self._order(verb="join", group=group, topic=topic, start=start)

    async def read(self, seconds: float, handler_seconds: float) -> float:
        """Returns records a second, of batches after each of which it waits as long as said.

        Ends early where there is nothing left to read.
        """
        answer = await self._order(verb="read", seconds=seconds, handler=handler_seconds)
        return float(answer["rate"])

    async def leave(self) -> None:
        """Returns when it is no member any more."""
        await self._order(verb="leave")

    def end(self) -> None:
        """Ends the process."""
        self._child.end()

    async def _order(self, **order: object) -> Any:
        return json.loads(await asyncio.to_thread(self._child.ask, json.dumps(order)))


class _Member:
    """What the process does."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._stack = AsyncExitStack()
        self._consumer: Consumer | None = None

    async def obey(self, order: dict[str, Any]) -> dict[str, Any]:
        """Does what it is told."""
        match order["verb"]:
            case "join":
                await self._join(order["group"], order["topic"], Start(order["start"]))
                return {}
            case "read":
                assert self._consumer
                return {"rate": await _read(self._consumer, order["seconds"], order["handler"])}
            case "leave":
                await self._stack.aclose()
                return {}
        raise ValueError(order)

    async def _join(self, group: str, topic: str, start: Start) -> None:
        settings = GroupSettings(start=start)
        follow = start is Start.LATEST
        consumer = self._client.consumer(group, topic, settings=settings, follow=follow)
        self._consumer = await self._stack.enter_async_context(consumer)
        while not self._consumer.assignment:  # noqa: ASYNC110  # nothing tells of it
            await asyncio.sleep(0.005)


async def _read(consumer: Consumer, seconds: float, handler_seconds: float) -> float:
    batches, count, begun = consumer.batches(), 0, perf_counter()
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            async for batch in batches:
                count += batch.record_count
                if handler_seconds:
                    await asyncio.sleep(handler_seconds)
    if not count:
        count = (await anext(batches)).record_count
    return count / (perf_counter() - begun)


async def _obey(address: str) -> None:
    async with Client(address) as client:
        member = _Member(client)
        gc.freeze()
        print("ready", flush=True)
        while order := await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(await member.obey(json.loads(order))), flush=True)


if __name__ == "__main__":
    keep_freed_memory()
    uvloop.run(_obey(sys.argv[1]))
