"""A run against a real broker, by a script: three groups, one of each order, read one topic."""

import asyncio
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from logbroker.client import Client, DeadLetterFilter, Shift
from logbroker.errors import ConflictError, LogbrokerError, PreconditionError
from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import GroupSettings, Order
from logbroker.testing.running_broker import BrokerProcess

from .calls_member import CallsMember
from .checker import Checker
from .events import BrokerKilled, Event, Outcome, Place, RedriveAsked, Reset, Stored, Trimmed
from .member_process import ProcessMember
from .noting import History
from .outcome import differences, outcome_of
from .script import Kind, Plan, Script, Step, What
from .wire_member import WireMember
from .worker_member import WorkerMember

TOPIC = "orders"
POLICY = RetryPolicy(initial_ms=50, max_ms=200, max_failures=3)
IN_USE_S = 30
"""How long a group may count as in use after its members have ended."""
RECEIVES_S = 3
"""How long to wait for a process to receive anything."""

Member = WireMember | WorkerMember | CallsMember | ProcessMember
KINDS = {Kind.WIRE: WireMember, Kind.WORKER: WorkerMember, Kind.CALLS: CallsMember}


class GroupRun:
    """One group, and who is in it."""

    def __init__(self, order: Order, script: Script, run: "Workload") -> None:
        self.name = f"by-{order}"
        self.order = order
        self.history = History()
        self.fate = script.fate(self.name)
        self.members: list[Member] = []
        self.lock = asyncio.Lock()
        """Held while a process is a member, or the group must have none."""
        self._kinds: list[Kind] = []
        """Of those who joined, again and again."""
        self._run = run

    def join(self, kind: Kind) -> None:
        """Lets another one join."""
        if self.order is Order.PARTITION and kind is Kind.CALLS:
            kind = Kind.WIRE  # calls are given nothing where members own all partitions
        self._kinds.append(kind)
        name = self._run.new_name(kind)
        member = KINDS[kind](name, self.name, TOPIC, self._run.address, self.history, self.fate)
        self.members.append(member)

    async def start_process(self) -> ProcessMember:
        """Starts a member in a process of its own; it is nobody's but the caller's."""
        return await ProcessMember.start(
            self._run.new_name(Kind.PROCESS), self.name, TOPIC, self._run.address, self.history,
            self.fate, self._run.directory,
        )  # fmt: skip

    async def refill(self, count: int) -> None:
        """Replaces those who have ended; raises what one should not have met."""
        over = [member for member in self.members if member.is_over]
        self.members = [member for member in self.members if member not in over]
        for member in over:
            await member.wait_over()
        while len(self.members) < count:
            self.join(self._kinds[len(self.members) - count])

    async def end_all(self, *, in_order: bool) -> None:
        """Ends all members."""
        members, self.members = self.members, []
        for member in members:
            await (member.leave() if in_order else member.vanish())


class Workload:
    """One run."""

    def __init__(self, seed: int, plan: Plan, broker: BrokerProcess, directory: Path) -> None:
        self.script = Script(seed, plan, len(Order))
        self.directory = directory
        self.counts: Counter[str] = Counter()
        """How often what was done, and seen."""
        self.outcomes: list[Outcome] = []
        """How it has ended, by group."""
        self.groups = [GroupRun(order, self.script, self) for order in Order]
        self._plan = plan
        self._broker = broker
        self._stored = 0
        self._has_stored = asyncio.Event()
        self._steps_done = 0
        self._has_step = asyncio.Event()
        self._client = Client(broker.address)

    @property
    def address(self) -> str:
        """Of the broker, which is the same after a restart."""
        return self._broker.address

    def new_name(self, kind: Kind) -> str:
        """Returns a member's name."""
        self.counts[f"{kind} members"] += 1
        return f"{kind}-{self.counts.total()}"

    async def run(self) -> None:
        """Does everything, and lets the groups come to rest."""
        async with self._client:
            admin = self._client.admin
            await admin.create_topic(TOPIC, partition_count=self._plan.partition_count)
            for group, kinds in zip(self.groups, self.script.first_kinds, strict=True):
                settings = GroupSettings(
                    order=group.order, lease_ms=self._plan.lease_ms, retry=POLICY
                )
                await admin.create_group(group.name, settings)
                for kind in kinds:
                    group.join(kind)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._produce())
                await self._disturb(tasks)
            for group in self.groups:
                group.fate.calm()
            for group in self.groups:
                parked = await admin.list_dead_letters(_letters_of(group))
                await self._redrive(group, limit=len(parked) // 2)
                await self._drain(group)
                await group.end_all(in_order=True)

    # Producing

    async def _produce(self) -> None:
        number = 0
        async with self._client.producer(TOPIC, linger_ms=1) as producer:
            for batch in self.script.batches:
                await self._wait_turn(number)
                pending = []
                for key in batch.keys:
                    value = b"%d" % number
                    receipt = await producer.send(value, key=key, partition=batch.partition)
                    pending.append((key, value, receipt))
                    number += 1
                for key, value, receipt in pending:
                    stored = await receipt
                    self._note(Stored(Place(TOPIC, batch.partition, stored.offset), key, value))
                self._stored = number
                self._has_stored.set()
                await asyncio.sleep(len(batch.keys) / self._plan.records_per_second)

    async def _wait_turn(self, number: int) -> None:
        """Waits until what was to be done long before this record has been done."""
        steps = self.script.steps
        while (
            self._steps_done < len(steps)
            and number > steps[self._steps_done].after + self._plan.ahead
        ):
            self._has_step.clear()
            await self._has_step.wait()

    # Disturbing

    async def _disturb(self, tasks: asyncio.TaskGroup) -> None:
        for step in self.script.steps:
            while self._stored < step.after:
                self._has_stored.clear()
                await self._has_stored.wait()
            self.counts[str(step.what)] += 1
            await self._do(step, tasks)
            for one in self.groups:
                await one.refill(self._plan.member_count)
            self._steps_done += 1
            self._has_step.set()

    async def _do(self, step: Step, tasks: asyncio.TaskGroup) -> None:
        group = self.groups[step.group]
        match step.what:
            case What.JOIN:
                group.join(step.kind)
            case What.LEAVE | What.VANISH:
                member = group.members.pop(step.amount % len(group.members))
                await (member.leave() if step.what is What.LEAVE else member.vanish())
            case What.KILL_MEMBER:
                await group.lock.acquire()
                member = await group.start_process()
                tasks.create_task(self._short_life(group, member, step.amount / 200))
            case What.REDRIVE:
                with suppress(LogbrokerError):
                    await self._redrive(group, limit=step.amount // 10)
            case What.RESET:
                await self._reset(group, step.amount)
            case What.TRIM:
                await self._trim(step.amount % self._plan.partition_count)
            case What.KILL_BROKER:
                await self._kill_broker()

    async def _short_life(self, group: GroupRun, member: ProcessMember, lives_s: float) -> None:
        """Lets a process take records for a while, and kills it."""
        try:
            if await member.wait_received(RECEIVES_S):
                await asyncio.sleep(lives_s)
                self.counts["members killed that held records"] += 1
            await member.vanish()
        finally:
            group.lock.release()

    async def _kill_broker(self) -> None:
        await asyncio.to_thread(self._broker.kill)
        self._note(BrokerKilled())
        await asyncio.to_thread(self._broker.start)

    async def _redrive(self, group: GroupRun, limit: int) -> None:
        group.history.note(RedriveAsked())
        try:
            which = _letters_of(group, limit)
            started = await self._client.admin.start_redrive(which)
        except ConflictError as error:  # the one before still runs: a later step tries again
            if error.reason != "REDRIVE_RUNNING":
                raise
            return
        self.counts["redriven"] += started.selected_count

    async def _reset(self, group: GroupRun, amount: int) -> None:
        """Moves a group back or forth, while nobody is in it."""
        async with group.lock:
            await group.end_all(in_order=amount % 2 == 0)
            until = time.monotonic() + IN_USE_S
            while True:
                try:
                    resets = await self._client.admin.reset_offsets(
                        group.name, TOPIC, Shift(amount * 3 - 250)
                    )
                    break
                except PreconditionError:  # calls are gone when their leases are over
                    assert time.monotonic() < until, "the group stays in use"
                    await asyncio.sleep(0.1)
        for one in resets:
            before = one.to_offset if one.from_offset is None else one.from_offset
            group.history.note(Reset(TOPIC, one.partition, before, one.to_offset))
            self.counts["records moved by resets"] += abs(one.to_offset - before)

    async def _trim(self, partition: int) -> None:
        """Removes what every group has settled."""
        admin = self._client.admin
        settled = [await admin.get_offsets(group.name, TOPIC) for group in self.groups]
        least = min(one[partition].committed_offset or 0 for one in settled)
        offset = await admin.trim_topic(TOPIC, partition, least)
        self._note(Trimmed(TOPIC, partition, offset))
        self.counts["records trimmed"] += offset

    def _note(self, event: Event) -> None:
        for group in self.groups:
            group.history.note(event)

    async def _drain(self, group: GroupRun) -> None:
        """Waits until the group has nothing left to do."""

        async def is_idle() -> bool:
            await group.refill(self._plan.member_count)
            found = await self._client.admin.get_group(group.name)
            waiting = sum(one.lag for one in found.progress)
            return not waiting and not any(one.redriven_count for one in found.dead_letters)

        try:
            async with asyncio.timeout(self._plan.drain_s):
                while not await is_idle():  # noqa: ASYNC110  # it lies beyond the network
                    await asyncio.sleep(0.05)
        except TimeoutError:
            found = await self._client.admin.get_group(group.name)
            raise AssertionError(f"{group.name} does not come to rest: {found}") from None


async def prove(seed: int, plan: Plan, broker: BrokerProcess, directory: Path) -> Workload:
    """Runs the workload, kills the broker once more, and checks the history of every group."""
    workload = Workload(seed, plan, broker, directory)
    await workload.run()
    async with Client(broker.address) as client:
        for group in workload.groups:
            workload.outcomes.append(await outcome_of(client, group.name, TOPIC))
    await asyncio.to_thread(broker.kill)
    await asyncio.to_thread(broker.start)
    async with Client(broker.address) as client:
        for group, outcome in zip(workload.groups, workload.outcomes, strict=True):
            after = await outcome_of(client, group.name, TOPIC)
            changed = differences(outcome, after)
            assert not changed, f"seed {seed}, {group.name}: a restart changed {changed}"
    faults = []
    for group, outcome in zip(workload.groups, workload.outcomes, strict=True):
        noted = group.history.in_order()
        checker = Checker(noted, outcome, order=group.order, policy=POLICY, lease_ms=plan.lease_ms)
        try:
            checker.check()
        except AssertionError as error:
            kept = directory / f"{group.name}.history"
            kept.write_text("".join(f"{one}\n" for one in [*noted, outcome]))
            faults.append(f"seed {seed}, {group.name}: {error}\nThe history is in {kept}.")
        for name, count in checker.counts.items():
            workload.counts[str(name)] += count
    assert not faults, "\n".join(faults)
    return workload


def _letters_of(group: GroupRun, limit: int = 0) -> DeadLetterFilter:
    return DeadLetterFilter(group=group.name, topic=TOPIC, limit=limit)
