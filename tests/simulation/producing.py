"""Producers: the client's own, idempotent, each in a process that may be killed."""

import asyncio
from collections import deque
from random import Random

from history.events import Place, Stored

from logbroker.client import Client
from logbroker.errors import LogbrokerError

from .log_watch import LogWatch, Sent
from .loop import Process
from .machine import ADDRESS
from .notes import SimulatedHistory
from .plan import Plan
from .world import World

KEYS = (None, b"", b"a", b"b", b"c", b"d")
AGAIN_S = 0.2
"""Before the next producer begins: nothing of the last one is under way by then."""


class Producing:
    """Sends numbered records to a topic, by one producer after another."""

    def __init__(
        self,
        world: World,
        topic: str,
        plan: Plan,
        watch: LogWatch,
        histories: list[SimulatedHistory],
    ) -> None:
        self.is_done = False
        self._world = world
        self._topic = topic
        self._plan = plan
        self._watch = watch
        self._histories = histories
        self._random = Random(world.random.getrandbits(64))
        self._number = 0
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._killed = asyncio.Event()

    async def run(self) -> None:
        """Returns when all is sent and answered, or given up."""
        while not self.is_done:
            self._process = Process(f"producer of {self._topic}")
            self._killed = asyncio.Event()
            task = self._process.start(self._produce())
            killed = asyncio.ensure_future(self._killed.wait())
            await asyncio.wait({task, killed}, return_when=asyncio.FIRST_COMPLETED)
            killed.cancel()
            if task.done():
                task.result()
            else:
                await asyncio.sleep(AGAIN_S)

    def kill(self) -> None:
        """Kills the process; another one goes on."""
        if self._process and not self.is_done:
            self._world.counts["producers killed"] += 1
            self._process.kill()
            self._world.network.process_killed(self._process)
            self._killed.set()

    async def _produce(self) -> None:
        plan, random = self._plan, self._random
        pending: deque[tuple[bytes | None, bytes, object]] = deque()
        depth = random.choice([0, 0, 20])
        async with Client(ADDRESS) as client:
            producer = client.producer(
                self._topic,
                linger_ms=random.choice([0, 5]),
                max_in_flight=random.choice([1, 4, 32]),
                codec=random.choice(["none", "none", "zstd"]),
                delivery_timeout_ms=random.choice([3_000, 60_000]),
            )
            while self._number < plan.record_count:
                partition = random.randrange(plan.partition_count)
                for _ in range(random.randint(1, plan.burst)):
                    key = random.choice(KEYS)
                    value = b"%d" % self._number
                    value = value.ljust(random.randint(0, plan.value_bytes))
                    self._number += 1
                    self._watch.sent(value, Sent(self._topic, partition, key))
                    receipt = await producer.send(value, key=key, partition=partition)
                    pending.append((key, value, receipt))
                while len(pending) > depth:
                    await self._settle(*pending.popleft())
                await asyncio.sleep(random.uniform(0, 0.3))
            while pending:
                await self._settle(*pending.popleft())
            self.is_done = True

    async def _settle(self, key: bytes | None, value: bytes, receipt: object) -> None:
        try:
            stored = await receipt  # type: ignore[misc]
        except LogbrokerError as error:
            self._world.counts[f"records not acknowledged: {error.reason}"] += 1
            return
        place = Place(self._topic, stored.partition, stored.offset)
        self._watch.acknowledged(place, value)
        self._world.counts["duplicates answered"] += stored.duplicate
        for history in self._histories:
            history.note(Stored(place, key, value))
