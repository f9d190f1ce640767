"""Clients in processes of their own: what gives them orders."""

import asyncio
import json
import signal
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from bench.child import Child
from bench.peers.system import Level, Sending, System

TIMEOUT_S = 60
"""For an order that does not say how long it may take: an end, so that a run has one."""
FILL_S = 300
"""For an order to publish so many records."""
POLL_S = 0.01
MEMBERS_S = 45
"""For what members are asked."""
STILL_S = 10
"""Members that took nothing for so long will take no more."""
LEAST_MARKS = 3
STEP = 50
"""After so many records a member notes the time."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is measured: a system at a level, on a server that runs."""

    system: System
    level: Level
    address: str


class ClientProcess:
    """One client: it obeys one order after the other."""

    def __init__(self, run_under: Sequence[str] = ()) -> None:
        """`run_under` is a module that runs the process, and its arguments."""
        self._child = Child("bench.peers.client_process", run_under=run_under)

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._child.pid

    @property
    def is_dead(self) -> bool:
        """Tells whether it was killed, or has ended by itself."""
        return self._child.has_ended

    async def wait_ready(self) -> None:
        """Returns once it takes orders."""
        await asyncio.to_thread(self._child.read)

    async def ask(
        self, verb: str, subject: Subject, *, timeout_s: float = TIMEOUT_S, **order: object
    ) -> Any:
        """Returns the answer to an order; RuntimeError where it could not be done, or in time.

        Who is cancelled meanwhile ends the client: its answer would be taken for the next one.
        """
        order |= {
            "verb": verb,
            "system": subject.system.name,
            "address": subject.address,
            "level": subject.level,
        }
        asked = asyncio.create_task(asyncio.to_thread(self._child.ask, json.dumps(order)))
        done: set[asyncio.Task[str]] = set()
        try:
            done, _ = await asyncio.wait([asked], timeout=timeout_s)
        finally:
            if not done:
                self.kill()
                await asyncio.wait([asked])
                asked.exception()
        if not done:
            raise RuntimeError(f"{verb}: no answer after {timeout_s:g} s")
        try:
            answer = json.loads(await asked)
        except OSError as error:
            raise RuntimeError(f"{verb}: the client has ended: {error}") from error
        if "error" in answer:
            raise RuntimeError(f"{verb}: {answer['error']}")
        return answer["answer"]

    async def publish(
        self,
        subject: Subject,
        topic: str,
        size: int,
        *,
        seconds: float = 0,
        count: int = 0,
        sending: Sending = Sending.FASTEST,
    ) -> float:
        """Publishes for so many seconds, or so many records; returns records a second."""
        found = await self.ask(
            "publish",
            subject,
            topic=topic,
            size=size,
            seconds=seconds,
            count=count,
            sending=sending,
            timeout_s=FILL_S if count else TIMEOUT_S + 2 * seconds,
        )
        return float(found["count"]) / float(found["seconds"])

    def send(self, number: signal.Signals) -> None:
        """Sends a signal."""
        self._child.send(number)

    def kill(self) -> None:
        """Ends it at once."""
        self._child.kill()

    def end(self) -> None:
        """Ends it."""
        if self.is_dead:
            self._child.close()
        else:
            with suppress(subprocess.TimeoutExpired):  # a thread of its client hangs
                self._child.end()
            self.kill()


class Clients:
    """As many clients as were ever needed at once."""

    def __init__(self) -> None:
        self._all: list[ClientProcess] = []

    async def some(self, count: int) -> list[ClientProcess]:
        """Returns the first so many, started if need be; those that died are made anew."""
        fresh = [ClientProcess() for _ in range(max(0, count - len(self._all)))]
        self._all += fresh
        for number, one in enumerate(self._all):
            if one.is_dead:
                one.end()
                self._all[number] = one = ClientProcess()
                fresh.append(one)
        await asyncio.gather(*(one.wait_ready() for one in fresh))
        return self._all[:count]

    async def one(self) -> ClientProcess:
        """Returns the first."""
        (one,) = await self.some(1)
        return one

    def end(self) -> None:
        """Ends all."""
        for one in self._all:
            one.end()


@dataclass(frozen=True, slots=True)
class Consumed:
    """What members took together."""

    count: int
    first: float
    last: float
    latencies: list[float]
    numbers: list[tuple[int, int]]
    marks: list[float]
    """When each member had taken STEP records more."""

    @property
    def whole_rate(self) -> float:
        """Records a second, from the first to the last: too high, if only few were taken."""
        return self.count / max(self.last - self.first, 1e-6)

    @property
    def rate(self) -> float:
        """Records a second, without the first quarter of them: that, members may have had
        at hand before they began."""
        marks = sorted(self.marks)
        first = len(marks) // 4
        if len(marks) - first < LEAST_MARKS:
            raise RuntimeError(f"{self.count} records are too few to tell a rate")
        return STEP * (len(marks) - 1 - first) / (marks[-1] - marks[first])


@asynccontextmanager
async def consuming(
    clients: Sequence[ClientProcess],
    subject: Subject,
    topic: str,
    groups: Sequence[str],
    *,
    way: str = "consume",
    take: str = "count",
    members: int = 1,
    together: bool = False,
) -> AsyncIterator["Consuming"]:
    """Makes each client so many members of its group; `{}` in its name is their number.

    `together` they begin to take when all had time to join: until then each holds what it got
    first. Whatever happens, they are no members any more at the end.
    """
    consuming = Consuming(clients, subject)
    order = {"topic": topic, "way": way, "take": take, "members": members}
    order["begin_at"] = perf_counter() + subject.system.join_s if together else 0
    try:
        await consuming.begin(groups, order)
        yield consuming
    finally:
        await consuming.abandon()


class Consuming:
    """Members of groups in some clients, which go on until they are ended."""

    def __init__(self, clients: Sequence[ClientProcess], subject: Subject) -> None:
        self._clients = clients
        self._subject = subject
        self._has_ended = False

    async def begin(self, groups: Sequence[str], order: dict[str, object]) -> None:
        """Makes them members."""
        await self._each("consume", [{**order, "group": group} for group in groups])

    async def count(self) -> int:
        """Returns how much was taken until now."""
        return sum(found["count"] for found in await self._all("taken"))

    async def wait_count(self, count: int, still_s: float = STILL_S) -> bool:
        """Tells whether so much was taken; False after nothing came for some time."""
        loop = asyncio.get_running_loop()
        last, moved = 0, loop.time()
        while (found := await self.count()) < count:
            if found > last:
                last, moved = found, loop.time()
            elif loop.time() - moved > still_s:
                return False
            await asyncio.sleep(POLL_S)
        return True

    async def check_count(self, count: int) -> None:
        """Returns when so much was taken; RuntimeError if it does not come."""
        if not await self.wait_count(count):
            raise RuntimeError(f"{await self.count():,} of {count:,} records came")

    async def end(self) -> Consumed:
        """Ends the members, whose settlements are sent by then."""
        self._has_ended = True
        found = [one for one in await self._all("end") if one["count"]]
        return Consumed(
            count=sum(one["count"] for one in found),
            first=min((one["first"] for one in found), default=0),
            last=max((one["last"] for one in found), default=0),
            latencies=[time for one in found for time in one["latencies"]],
            numbers=[(first, end) for one in found for first, end in one["numbers"]],
            marks=[time for one in found for time in one["marks"]],
        )

    async def abandon(self) -> None:
        """Ends the members, if they were not ended: after an error, which they must not hide."""
        if not self._has_ended:
            with suppress(RuntimeError):
                await self.end()

    async def _all(self, verb: str) -> list[Any]:
        return await self._each(verb, [{} for _ in self._clients])

    async def _each(self, verb: str, orders: Sequence[dict[str, Any]]) -> list[Any]:
        """Asks all at once; raises when all have answered. Who did not answer well is killed."""
        asked = [
            client.ask(verb, self._subject, timeout_s=MEMBERS_S, **order)
            for client, order in zip(self._clients, orders, strict=True)
        ]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        errors = []
        for client, answer in zip(self._clients, answers, strict=True):
            if isinstance(answer, BaseException):
                client.kill()
                errors.append(answer)
        if errors:
            raise errors[0]
        return answers
