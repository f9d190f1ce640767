"""One group of the simulation: its members, each in a process of its own, and its history."""

import asyncio
from contextlib import suppress
from random import Random
from typing import Any

from history.calls_member import CallsMember
from history.events import Cut, Ended, How, Received, RedriveAsked, Reset
from history.script import Fate
from history.wire_member import WireMember
from history.worker_member import WorkerMember

from logbroker.client import DeadLetterFilter
from logbroker.errors import LogbrokerError
from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import GroupSettings, Order

from .loop import Process
from .machine import ADDRESS
from .notes import SimulatedHistory
from .operator import Operator
from .plan import Plan
from .world import World

POLICY = RetryPolicy(initial_ms=50, max_ms=400, max_failures=3)
KINDS = (WireMember, WireMember, WireMember, WorkerMember, CallsMember)
IN_USE_S = 60.0

Member = Any
"""A WireMember, a WorkerMember or a CallsMember."""


class Grouping:
    """One group, and who is in it."""

    def __init__(self, world: World, topic: str, order: Order, plan: Plan) -> None:
        self.name = f"by-{order}"
        self.order = order
        self.history = SimulatedHistory(world, self.name)
        self.fate = Fate(world.seed, self.name, plan.fault_chance)
        self.fate.poison_chance = 0.04
        self.members: list[tuple[Member, Process]] = []
        self.is_open = True
        """Whether who has ended is replaced."""
        self._world = world
        self._topic = topic
        self._plan = plan
        self._random = Random(world.random.getrandbits(64))
        self._count = 0
        world.network.on_cut.append(self._note_cut)

    def _note_cut(self, process: Process) -> None:
        """Takes note of a cut that a worker survives; the others end with their stream."""
        for member, of_member in self.members:
            if of_member is process and isinstance(member, WorkerMember) and not member.is_over:
                self.history.note(Cut(member.name))

    @property
    def settings(self) -> GroupSettings:
        """As the group is made."""
        return GroupSettings(
            order=self.order,
            lease_ms=self._plan.lease_ms,
            retry=POLICY,
            max_unsettled=self._plan.max_unsettled,
        )

    def join(self) -> None:
        """Lets another one join."""
        kind = self._random.choice(KINDS)
        if kind is CallsMember and self.order is Order.PARTITION:
            kind = WireMember  # calls are given nothing where members own all partitions
        self._count += 1
        name = f"{kind.__name__}-{self._count}"
        process = Process(name)
        made = process.run(kind, name, self.name, self._topic, ADDRESS, self.history, self.fate)
        self.members.append((made, process))

    async def refill(self) -> None:
        """Replaces those who have ended; raises what one should not have met."""
        for member, process in [one for one in self.members if one[0].is_over]:
            self.members.remove((member, process))
            await member.wait_over()
        while self.is_open and len(self.members) < self._plan.member_count:
            self.join()

    async def end_one(self) -> None:
        """Ends a member: in order, by a cut stream, or by a kill."""
        if not self.members:
            return
        member, process = self.members.pop(self._random.randrange(len(self.members)))
        how = self._random.choice(["left", "vanished", "killed", "killed"])
        self._world.counts[f"members {how}"] += 1
        match how:
            case "left":
                with suppress(TimeoutError):
                    async with asyncio.timeout(20):
                        await asyncio.shield(asyncio.ensure_future(member.leave()))
                        return
                self.kill(member, process)  # nobody answers
            case "vanished":
                await member.vanish()
            case _:
                self.kill(member, process)

    def kill(self, member: Member, process: Process) -> None:
        """Ends a member's process where it stands."""
        process.kill()
        if not member.is_over:
            member.is_over = True
            how = How.LOST if isinstance(member, WorkerMember) else How.VANISHED
            self.history.note(Ended(member.name, how))
        self._world.network.process_killed(process)

    async def end_all(self) -> None:
        """Ends all members, in order where that is possible."""
        members, self.members = self.members, []
        for member, process in members:
            with suppress(TimeoutError):
                async with asyncio.timeout(20):
                    await asyncio.shield(asyncio.ensure_future(member.leave()))
            if not member.is_over:
                self.kill(member, process)

    # What operators do

    async def redrive(self, operator: Operator, limit: int) -> None:
        """Asks for a redrive."""
        self.history.note(RedriveAsked())
        which = DeadLetterFilter(group=self.name, topic=self._topic, limit=limit)
        admin = operator.client.admin
        # A group reads a topic from its first member on; what was delivered proves one.
        reads = any(isinstance(one.event, Received) for one in self.history.noted)
        foreseen = [] if reads else ["TOPIC_NOT_FOUND"]
        started = await operator.ask_once(lambda: admin.start_redrive(which), foreseen=foreseen)
        if started:
            self._world.counts["records redriven"] += started.selected_count

    async def reset(self, operator: Operator) -> None:
        """Moves the group in one partition, while nobody is in it."""
        self.is_open = False
        try:
            await self.end_all()
            admin = operator.client.admin
            progress = await operator.ask(lambda: admin.get_offsets(self.name, self._topic))
            if not progress:
                return
            one = self._random.choice(progress)
            to = self._random.randint(one.log_start_offset, one.high_watermark)
            # Calls hold their leases until these are over.
            await asyncio.sleep(self._plan.lease_ms * 2 / 1_000)
            [before] = [
                each
                for each in await operator.ask(lambda: admin.get_offsets(self.name, self._topic))
                if each.partition == one.partition
            ]
            await operator.ask(
                lambda: admin.reset_offsets(self.name, self._topic, to, partitions=[one.partition])
            )
            came_from = before.committed_offset
            if came_from is None:  # it has settled nothing yet
                came_from = before.log_start_offset
            self.history.note(Reset(self._topic, one.partition, came_from, to))
            self._world.counts["groups reset"] += 1
        finally:
            self.is_open = True

    async def is_idle(self, operator: Operator) -> bool:
        """Returns whether there is nothing left to do."""
        try:
            found = await operator.client.admin.get_group(self.name)
        except LogbrokerError as error:
            if not error.may_retry and error.reason != "OUTCOME_UNKNOWN":
                raise
            return False
        waiting = sum(one.lag for one in found.progress)
        has_begun = bool(found.progress)  # else nobody of it has reached the broker yet
        return (
            has_begun and not waiting and not any(one.redriven_count for one in found.dead_letters)
        )
