"""Do five groups that read one topic get more than one, and does the producer notice them?

Each group is a process of its own that reads batches and lets them be settled. With handlers
that take 2 ms a batch one group leaves most of the machine idle, so five of them show whether
one is in another's way. Without handlers one group already takes most of two CPUs, and five
can have no more than is left. The same for a producer that five such groups follow, when it
has a rate to keep and when it is as fast as it can be. `CPU` is what the broker and all its
clients took, of all CPUs; `broker` what the broker took, of the one that it can use.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from time import perf_counter

from bench.lab import WRITTEN, Lab, write
from bench.member import MemberProcess
from bench.processes import cpu_seconds
from bench.produce import send_for
from bench.records import Shape, records_of, stored_bytes
from bench.rows import AtLeast, Row
from logbroker.client.producer import Producer
from logbroker.group.settings import Start

Send = Callable[[Producer, float], Awaitable[float]]

SHAPE = Shape(100, 1_000)
TOPIC = "fan-out"
GROUPS = 5
HANDLER_S = 0.002
BATCHES_PER_SECOND = 200
"""Of the producer that has a rate to keep."""
FAN_OUT_GOAL = AtLeast(3)
PRODUCER_GOAL = AtLeast(0.7)
HANDLERS, NO_HANDLERS = "handlers of 2 ms", "no handlers"
PACED, FULL = f"producer of {BATCHES_PER_SECOND} batches/s", "producer at full speed"
ALONE, FOLLOWED = "alone", f"{GROUPS} groups follow"


class FanOut:
    """Five members of five groups, one process each."""

    title = f"Fan-out: {GROUPS} groups read one topic, 100 B x 1,000"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._stack = AsyncExitStack()
        self._members: list[MemberProcess] = []
        self._numbers = count()

    async def prepare(self) -> None:
        """Starts the processes and writes what is read."""
        address = self._lab.broker_process.address
        self._members = [MemberProcess(address) for _ in range(GROUPS)]
        for member in self._members:
            self._stack.callback(member.end)
        client = self._lab.client
        await client.admin.create_topic(TOPIC, settings=WRITTEN)
        await write(client, TOPIC, SHAPE, self._lab.scale.group_bytes // stored_bytes(SHAPE))
        await asyncio.gather(*(member.wait_ready() for member in self._members))

    async def run_round(self) -> None:
        """Measures one group, then five; a producer alone, then with five."""
        for what, handler_seconds in {HANDLERS: HANDLER_S, NO_HANDLERS: 0}.items():
            for number in (1, GROUPS):
                await self._read(_groups(number, what), number, handler_seconds)
        for what, send in {PACED: _send_paced, FULL: _send_all}.items():
            for number in (0, GROUPS):
                await self._produce(what, number, send)

    async def close(self) -> None:
        """Ends the processes."""
        await self._stack.aclose()

    def rows(self) -> list[Row]:
        """Returns the rates, and beside each two how busy the CPUs were."""
        rows = []
        for what, goal in {HANDLERS: FAN_OUT_GOAL, NO_HANDLERS: None}.items():
            one, five = _groups(1, what), _groups(GROUPS, what)
            rows += [
                Row(name=one, unit="records/s"),
                Row(name=five, unit="records/s", limit=one, goal=goal),
                *_cpu_rows(one),
                *_cpu_rows(five),
            ]
        for what, goal in {PACED: PRODUCER_GOAL, FULL: None}.items():
            alone, followed = f"{what}, {ALONE}", f"{what}, {FOLLOWED}"
            rows += [
                Row(name=alone, unit="records/s"),
                Row(name=followed, unit="records/s", limit=alone, goal=goal),
                Row(name=_read_by(followed), unit="records/s"),
                *_cpu_rows(alone),
                *_cpu_rows(followed),
            ]
        return rows

    async def _read(self, name: str, number: int, handler_seconds: float) -> None:
        """Measures so many groups that read the topic from its start."""
        async with self._joined(TOPIC, number, Start.EARLIEST) as members, self._watched(name):
            rates = await self._rates(members, handler_seconds)
        self._lab.samples.add(name, sum(rates))

    async def _produce(self, what: str, number: int, send: Send) -> None:
        """Measures a producer that so many groups follow."""
        name = f"{what}, {FOLLOWED if number else ALONE}"
        seconds, add = self._lab.scale.group_seconds, self._lab.samples.add
        self._lab.touch_memory()
        async with (
            self._lab.topic(WRITTEN) as topic,
            self._lab.client.producer(topic, max_batch_bytes=64 << 20) as producer,
            self._joined(topic, number, Start.LATEST) as members,
            self._watched(name),
        ):
            batches, rates = await asyncio.gather(
                send(producer, seconds), self._rates(members, HANDLER_S)
            )
        add(name, batches * SHAPE.record_count)
        if members:
            add(_read_by(name), sum(rates))

    async def _rates(self, members: list[MemberProcess], handler_seconds: float) -> list[float]:
        seconds = self._lab.scale.group_seconds
        return await asyncio.gather(*(one.read(seconds, handler_seconds) for one in members))

    @asynccontextmanager
    async def _joined(
        self, topic: str, number: int, start: Start
    ) -> AsyncIterator[list[MemberProcess]]:
        """Makes so many processes members of new groups, and removes the groups."""
        members = self._members[:number]
        groups = [f"fan-out-{next(self._numbers)}" for _ in members]
        pairs = zip(members, groups, strict=True)
        await asyncio.gather(*(member.join(group, topic, start) for member, group in pairs))
        yield members
        await asyncio.gather(*(member.leave() for member in members))
        for group in groups:
            await self._lab.client.admin.delete_group(group)

    @asynccontextmanager
    async def _watched(self, name: str) -> AsyncIterator[None]:
        """Notes how much of all CPUs the broker and its clients take, this process included."""
        broker, members = self._lab.broker_process.pid, [one.pid for one in self._members]
        pids = [broker, os.getpid(), *members]
        begun, used = perf_counter(), list(map(cpu_seconds, pids))
        yield
        seconds = perf_counter() - begun
        busy = [now - then for now, then in zip(map(cpu_seconds, pids), used, strict=True)]
        add = self._lab.samples.add
        add(_cpu(name), sum(busy) / seconds / (os.cpu_count() or 1) * 100)
        add(_broker(name), busy[0] / seconds * 100)


async def _send_all(producer: Producer, seconds: float) -> float:
    return await send_for(producer, SHAPE, seconds)


async def _send_paced(producer: Producer, seconds: float) -> float:
    """Sends a batch each time one is due, late ones at once; returns batches answered a second."""
    records, pending = records_of(SHAPE), []
    begun = perf_counter()
    for number in range(max(1, round(seconds * BATCHES_PER_SECOND))):
        await asyncio.sleep(begun + number / BATCHES_PER_SECOND - perf_counter())
        pending.append(await producer.send_many(*records[number % len(records)], partition=0))
    for receipts in pending:
        await receipts
    return len(pending) / max(perf_counter() - begun, len(pending) / BATCHES_PER_SECOND)


def _groups(number: int, what: str) -> str:
    return f"{number} group, {what}" if number == 1 else f"{number} groups, {what}"


def _read_by(name: str) -> str:
    return f"{name}: what they read"


def _cpu(name: str) -> str:
    return f"CPU, {name}"


def _broker(name: str) -> str:
    return f"broker, {name}"


def _cpu_rows(name: str) -> list[Row]:
    return [Row(name=_cpu(name), unit="%"), Row(name=_broker(name), unit="%")]
