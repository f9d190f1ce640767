"""What a client's process does: it obeys orders, one JSON object a line on stdin.

Every client that is measured is a process like this one: what one system's client leaves in
memory, or runs in threads, is in no other's way. An order names the system, the address and
the level; a measurement has connections of its own, and they end with it. Times of all
processes come from one clock, which on Linux `perf_counter` is.
"""

import asyncio
import gc
import importlib
import json
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from time import perf_counter, sleep
from typing import Any

import uvloop

from bench.peers.client import STEP
from bench.peers.pace import PacedSender, value_stamp
from bench.peers.system import Connect, Connection, Level, Sending
from bench.peers.systems import SYSTEMS
from bench.records import Records, Shape, records_of
from logbroker.malloc import keep_freed_memory

Order = dict[str, Any]

LIST = 1_000
"""Records handed over at a time."""
RETRY_S = 0.005
ATTEMPT_S = 2
"""Then it is tried with a new connection."""
HUNDRED = 100
LOST_S = 5
"""A hundred that has no answer after so long is lost with the server."""
CONFIRM_WARM_UP = 20
THREADS = 64
"""For calls that block, while many members of a group end."""


class ClientProcess:
    """Obeys. The name of a verb is the name of its method."""

    def __init__(self) -> None:
        self._members: list[AsyncExitStack] = []
        self._taken = Taken(begin_at=0)

    async def obey(self, order: Order) -> Any:
        """Returns the answer to an order."""
        verb: Callable[[Order], Awaitable[Any]] = getattr(self, order["verb"])
        return await verb(order)

    async def create(self, order: Order) -> None:
        """Makes a topic."""
        async with connected(order) as connection:
            await connection.create_topic(order["topic"], order["partitions"])

    async def delete(self, order: Order) -> None:
        """Removes a topic."""
        async with connected(order) as connection:
            await connection.delete_topic(order["topic"])

    async def publish(self, order: Order) -> Order:
        """Publishes for so many seconds, or so many records; tells how many in which time."""
        lists = records_of(Shape(order["size"], LIST))
        async with (
            connected(order) as connection,
            connection.sender(order["topic"], Sending(order["sending"])) as sender,
        ):
            if not order["count"]:  # otherwise the topic has exactly as many as ordered
                await sender.send(Records(*(column[:HUNDRED] for column in lists[0])))
                await sender.flush()
            gc.collect()
            gc.freeze()
            begun, sent = perf_counter(), 0
            while (
                sent < order["count"]
                if order["count"]
                else not sent or perf_counter() < begun + order["seconds"]
            ):
                records = lists[sent // LIST % len(lists)]
                left = order["count"] - sent
                if 0 < left < LIST:
                    records = Records(*(column[:left] for column in records))
                await sender.send(records)
                sent += len(records.values)
            await sender.flush()
            return {"count": sent, "seconds": perf_counter() - begun}

    async def confirm(self, order: Order) -> list[float]:
        """Publishes single records, the next when the last is confirmed; returns the times."""
        value, key = (column[0] for column in records_of(Shape(order["size"], 1))[0])
        times: list[float] = []
        async with (
            connected(order) as connection,
            connection.sender(order["topic"], Sending.PROMPT) as sender,
        ):
            end = perf_counter() + order["seconds"]
            for number in range(CONFIRM_WARM_UP + order["count"]):
                begun = perf_counter()
                if begun > end and times:
                    break
                await sender.confirm(value, key)
                if number >= CONFIRM_WARM_UP:
                    times.append(perf_counter() - begun)
        return times

    async def replay(self, order: Order) -> Order:
        """Reads a topic from its start; tells how many bytes and in which time."""
        async with connected(order) as connection:
            begun = perf_counter()
            size = await connection.replay(order["topic"], order["count"], order["how"])
            return {"bytes": size, "seconds": perf_counter() - begun}

    async def answer(self, order: Order) -> float:
        """Publishes one record as soon as that is possible, and returns when it was confirmed."""
        said = ""
        while True:
            try:
                async with asyncio.timeout(ATTEMPT_S), connected(order) as connection:
                    if order["is_new"]:
                        order["is_new"] = await self._is_not_made(connection, order["topic"])
                    async with connection.sender(order["topic"], Sending.PROMPT) as sender:
                        await sender.confirm(value_stamp(0, order["size"]), b"key-000000")
                        return perf_counter()
            except Exception as error:  # noqa: BLE001  # what a client says of a server not ready
                if repr(error) != said:
                    print(f"not yet: {(said := repr(error))}", file=sys.stderr)
                await asyncio.sleep(RETRY_S)

    async def _is_not_made(self, connection: Connection, topic: str) -> bool:
        """Makes a topic. An earlier attempt that had no answer may have made it: then it is there
        and cannot be made, which only a record that is confirmed in it can tell."""
        try:
            await connection.create_topic(topic, 1)
        except Exception as error:  # noqa: BLE001  # what a client says of a server not ready
            print(f"not made yet: {error!r}", file=sys.stderr)
            return True
        return False

    async def pace(self, order: Order) -> Order:
        """Publishes at a rate, for some time; tells the rate that it had, and how many."""
        async with (
            connected(order) as connection,
            connection.sender(order["topic"], Sending.PACED) as sender,
        ):
            paced = PacedSender(sender, order["rate"], order["size"])
            return {"rate": await paced.run(order["seconds"]), "count": paced.sent}

    async def hundreds(self, order: Order) -> int:
        """Publishes numbers, a hundred at a time, until the server is gone.

        Returns how many were confirmed: 1 and what follows, without a gap. The last hundred,
        to which no answer came, may be stored or not.
        """
        confirmed = 0
        end = perf_counter() + order["seconds"]
        try:
            async with (
                connected(order) as connection,
                connection.sender(order["topic"], Sending.EACH) as sender,
            ):
                keys = [b"key-%06d" % number for number in range(HUNDRED)]
                while perf_counter() < end:
                    numbers = range(confirmed + 1, confirmed + HUNDRED + 1)
                    values = [number.to_bytes(8, "big").ljust(order["size"]) for number in numbers]
                    async with asyncio.timeout(LOST_S):
                        await sender.send(Records(values, keys))
                        await sender.flush()
                    confirmed += HUNDRED
        except Exception as error:  # noqa: BLE001  # what a client says of a killed server
            print(f"no answer any more: {error!r}", file=sys.stderr)
            return confirmed
        raise RuntimeError("the server was not killed")

    async def consume(self, order: Order) -> None:
        """Becomes so many members of groups, and goes on with the next order meanwhile."""
        self._taken = Taken(order["begin_at"])
        takes = {
            "count": self._taken.count_only,
            "stamp": self._taken.note_latency,
            "number": self._taken.note_number,
        }
        for number in range(order["members"]):
            self._members.append(member := AsyncExitStack())
            connection = await member.enter_async_context(connected(order))
            ways = {"consume": connection.consume, "work": connection.work}
            group = order["group"].format(number)
            way = ways[order["way"]](order["topic"], group, takes[order["take"]])
            await member.enter_async_context(way)

    async def taken(self, _: Order) -> Order:
        """Tells how much the members have taken until now, and when."""
        return self._taken.told()

    async def end(self, _: Order) -> Order:
        """Ends the members: what they settled is sent; tells of all that they took."""
        members, self._members = self._members, []
        await asyncio.gather(*(member.aclose() for member in members))
        return {
            **self._taken.told(),
            "marks": self._taken.marks,
            "latencies": self._taken.latencies,
            "numbers": self._taken.ranges(),
        }

    async def unsettled(self, order: Order) -> int | None:
        """Tells what a group has left."""
        async with connected(order) as connection:
            return await connection.unsettled(order["topic"], order["group"])


class Taken:
    """What the members of this process took. Threads call it, one at a time."""

    def __init__(self, begin_at: float) -> None:
        """Holds the first record, and who brings it, until `begin_at`."""
        self._begin_at = begin_at
        self.latencies: list[float] = []
        self.marks: list[float] = []
        self._numbers: set[int] = set()
        self._count = 0
        self._first = self._last = 0.0

    def count_only(self, _: bytes) -> None:
        """Counts a record."""
        if not self._count:
            sleep(max(0, self._begin_at - perf_counter()))
            self._first = perf_counter()
        self._last = perf_counter()
        self._count += 1
        if not self._count % STEP:
            self.marks.append(self._last)

    def note_latency(self, value: bytes) -> None:
        """Notes how long ago the record was published, if it says so."""
        self.count_only(value)
        sent = int.from_bytes(value[:8], "big")
        if sent:
            self.latencies.append(self._last - sent / 1e9)

    def note_number(self, value: bytes) -> None:
        """Notes the number that the record is."""
        self.count_only(value)
        self._numbers.add(int.from_bytes(value[:8], "big"))

    def told(self) -> Order:
        """Returns the count, and when the first and the last came."""
        return {"count": self._count, "first": self._first, "last": self._last}

    def ranges(self) -> list[tuple[int, int]]:
        """Returns the numbers as half-open ranges."""
        found: list[tuple[int, int]] = []
        for number in sorted(self._numbers):
            if found and found[-1][1] == number:
                found[-1] = (found[-1][0], number + 1)
            else:
                found.append((number, number + 1))
        return found


@asynccontextmanager
async def connected(order: Order) -> AsyncIterator[Connection]:
    """Connects to the server that the order names."""
    module = importlib.import_module(SYSTEMS[order["system"]].client_module)
    connect: Connect = module.connect
    connection = await connect(order["address"], Level(order["level"]))
    try:
        yield connection
    finally:
        await connection.close()


async def _run() -> None:
    process = ClientProcess()
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
    gc.freeze()
    print(json.dumps("ready"), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        try:
            answer = {"answer": await process.obey(json.loads(line))}
        except Exception as error:  # noqa: BLE001  # whoever ordered raises it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    keep_freed_memory()
    logging.disable()  # what clients log of servers that were killed they raise as well
    uvloop.run(_run())
