"""One run: everything that a seed decides, from the first broker to the verdict."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from traceback import extract_tb
from typing import Any, NamedTuple

from history.checker import Checker
from history.events import BrokerKilled, Noted, Outcome, Place, Trimmed
from history.outcome import differences, outcome_of

from logbroker.broker.broker import Broker
from logbroker.broker.groups import TOKENS_RESERVED_AT_ONCE
from logbroker.config import LogConfig, StorageConfig
from logbroker.errors import LogbrokerError
from logbroker.topic.topic import TopicSettings

from .damaged import unacknowledged, without
from .flips import flip, flip_index
from .grouping import POLICY, Grouping
from .log_watch import LogWatch
from .machine import DATA_DIR, Ending, Machine
from .network import PROBE_S
from .operator import Operator
from .plan import Plan, Trouble
from .producing import Producing
from .reading import Following
from .weather import Weather
from .world import World

ORDERS, EVENTS = "orders", "events"
"""The topic that groups read, and the one that is followed by a reader of its own."""
DOWN_S = 0.0, 2.0
LOOK_S = 0.5
POWER_CHANCE = 0.5
"""That the power goes soon after a broker was started again because a sync had failed."""
WRITTEN_CHANCE = 0.7
"""That the broker ends just behind a write."""
INDEX_CHANCE = 0.3
"""That a bit flips in an index, where there is one, and not in a log."""
MOST_S = 2_000.0
DRAIN_S = 120.0


class Result(NamedTuple):
    """What came of a seed."""

    seed: int
    faults: list[str]
    counts: Counter[str]
    digest: str
    story: list[str]


class Simulation:
    """One run."""

    def __init__(self, seed: int) -> None:
        self.world = world = World(seed)
        self.plan = plan = Plan.drawn(world.random)
        self.watch = LogWatch()
        storage = StorageConfig(data_dir=DATA_DIR, check_interval_ms=500, scrub_interval_ms=2_000)
        self.machine = Machine(world, storage, LogConfig(segment_bytes=plan.segment_bytes))
        self.machine.on_end = self._note_end
        self.machine.on_serving = self._watch_bounds
        if Trouble.CRASHES in plan.troubles:
            self.machine.dies_at_start = 0.2
        self.weather = Weather(world, self.machine)
        self.groups = [Grouping(world, ORDERS, order, plan) for order in plan.orders]
        self._lock = asyncio.Lock()
        """Held while the broker is ended and started."""
        self._topic_ids: dict[str, str] = {}
        self._is_over = False

    def run(self) -> Result:
        """Runs it, and judges."""
        world, faults = self.world, list[str]()
        with world.entered():
            try:
                faults += world.loop.run(self._run())
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # a fault, too
                faults.append(_told(error))
        faults += world.broker_faults + world.loop.faults
        world.counts["callbacks"] = world.loop.callback_count
        world.counts["simulated seconds"] = int(world.loop.time())
        return Result(world.seed, faults, world.counts, world.digest, list(world.story))

    async def _run(self) -> list[str]:
        async with asyncio.timeout(MOST_S):
            await self.machine.start()
            operator = Operator(self.world)
            await self._begin(operator)
            producing = [
                Producing(
                    self.world, ORDERS, self.plan, self.watch, [one.history for one in self.groups]
                ),
                Producing(self.world, EVENTS, self.plan, self.watch, []),
            ]
            following = Following(self.world, EVENTS, self.plan.partition_count, self.watch)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(following.run())
                looking = tasks.create_task(self._look_after())
                members = tasks.create_task(self._refill())
                working = [tasks.create_task(one.run()) for one in producing]
                disturbing = tasks.create_task(self._disturb(operator, producing, following))
                await asyncio.wait(working)
                self._is_over = True
                await disturbing
                self.weather.clear()
                self.machine.dies_at_start = 0.0
                await self._rest(operator)
                members.cancel()
                for group in self.groups:
                    await group.end_all()
                following.stop()
                looking.cancel()
            return await self._judge(operator)

    async def _begin(self, operator: Operator) -> None:
        admin, plan = operator.client.admin, self.plan
        settings = {
            ORDERS: TopicSettings(),
            EVENTS: TopicSettings(retention_ms=4_000, segment_bytes=4 << 10),
        }
        for name, one in settings.items():
            made = await admin.create_topic(
                name, partition_count=plan.partition_count, settings=one
            )
            self._topic_ids[name] = made.topic_id
        for group in self.groups:
            await admin.create_group(group.name, group.settings)

    # What goes on all the time

    async def _refill(self) -> None:
        while True:
            for group in self.groups:
                await group.refill()
            await asyncio.sleep(LOOK_S / 2)

    async def _look_after(self) -> None:
        """Starts the broker again when its disk has failed it, as whoever watches it does."""
        while True:
            await asyncio.sleep(LOOK_S)
            async with self._lock:
                if broker := self.machine.broker:
                    self._watch_bounds(broker)
                    if broker.failed_journals() or broker.stats().failed_partition_count:
                        self.world.counts["brokers whose storage failed"] += 1
                        random = self.world.random
                        await self._restart(random.choice([Ending.STOP, Ending.KILL]))
                        if random.random() < POWER_CHANCE:  # what was only in memory is gone
                            await asyncio.sleep(random.uniform(0, LOOK_S))
                            await self._restart(Ending.POWER)

    def _watch_bounds(self, broker: Broker) -> None:
        if self.weather.was_full_lately:
            return  # a full disk keeps retention from noting at once where a log begins
        for name in self._topic_ids:
            try:
                topic = broker.get_topic(name)
                for one in broker.partition_statuses(topic):
                    if not one.failure:
                        self.watch.bounds(
                            (name, one.partition),
                            one.log_start_offset,
                            one.high_watermark,
                            one.next_offset,
                        )
            except LogbrokerError as error:
                self.watch.faults.append(f"{name} cannot be looked at: {error}")

    async def _restart(self, how: Ending) -> None:
        await self.machine.end(how)
        if Trouble.FLIPS in self.plan.troubles and self.world.random.random() < 0.5:
            self._flip()
        await asyncio.sleep(self.world.random.uniform(*DOWN_S))
        await self.machine.start()

    def _flip(self) -> None:
        if self.world.random.random() < INDEX_CHANCE:
            is_done = flip_index(self.world.platter, self.world.random)
            self.world.counts["bits of indexes flipped"] += is_done
            return
        places = flip(self.world.platter, self.world.random, self._topic_ids)
        if places:
            self.world.counts["bits flipped"] += 1
            self.world.tell("flipped", places[0], len(places))
            self.watch.flipped.update(places)

    def _note_end(self) -> None:
        for group in self.groups:
            group.history.note(BrokerKilled())

    # What goes wrong

    async def _disturb(
        self, operator: Operator, producing: list[Producing], following: Following
    ) -> None:
        random = self.world.random
        troubles = sorted(self.plan.troubles)
        while not self._is_over:
            await asyncio.sleep(random.expovariate(1 / self.plan.pause_s))
            match random.choice(troubles):
                case Trouble.CRASHES:
                    async with self._lock:
                        if random.random() < WRITTEN_CHANCE:
                            await self.machine.wait_write()
                        await self._restart(random.choice(list(Ending)))
                case Trouble.NETWORK:
                    await self.weather.network_episode()
                case Trouble.DISK:
                    await self.weather.disk_episode()
                case Trouble.FLIPS:
                    self._flip()
                case Trouble.MEMBERS:
                    await self._change_members(operator, producing, following)

    async def _change_members(
        self, operator: Operator, producing: list[Producing], following: Following
    ) -> None:
        random = self.world.random
        group = random.choice(self.groups)
        match random.choice(["end", "end", "end", "join", "redrive", "reset", "trim", "kill"]):
            case "end":
                await group.end_one()
            case "join":
                group.join()
            case "redrive":
                await group.redrive(operator, random.choice([0, 1, 3]))
            case "reset":
                await group.reset(operator)
            case "trim":
                await self._trim(operator)
            case _:
                random.choice([producing[0].kill, producing[1].kill, following.kill])()

    async def _trim(self, operator: Operator) -> None:
        """Removes what every group has settled."""
        admin, partition = operator.client.admin, 0
        least = None
        for group in self.groups:
            found = await operator.ask(lambda name=group.name: admin.get_offsets(name, ORDERS))
            at = {one.partition: one.committed_offset or 0 for one in found}.get(partition, 0)
            least = at if least is None else min(least, at)
        offset = await operator.ask(lambda: admin.trim_topic(ORDERS, partition, least or 0))
        self.world.counts["logs trimmed"] += 1
        for group in self.groups:
            group.history.note(Trimmed(ORDERS, partition, offset))

    # The end

    async def _rest(self, operator: Operator) -> None:
        """Waits until no group has anything left to do."""
        for group in self.groups:
            group.fate.calm()
        loop = asyncio.get_running_loop()
        until = loop.time() + DRAIN_S
        while self.weather.was_full_lately or not await self._is_idle(operator):
            if loop.time() > until:
                told = [await operator.client.admin.get_group(one.name) for one in self.groups]
                raise AssertionError(f"the groups do not come to rest: {told}")
            await asyncio.sleep(LOOK_S)

    async def _is_idle(self, operator: Operator) -> bool:
        are_idle = [await group.is_idle(operator) for group in self.groups]
        broker = self.machine.broker
        # Dead letters are written after their records are settled, later where the disk fails.
        return all(are_idle) and broker is not None and not broker._groups.letters.ledger_ids()

    async def _judge(self, operator: Operator) -> list[str]:
        client, faults = operator.client, self.watch.faults
        outcomes = [await self._outcome(operator, one) for one in self.groups]
        await self.machine.end(Ending.POWER)
        await self.machine.start()
        for group, outcome in zip(self.groups, outcomes, strict=True):
            after = await self._outcome(operator, group)
            if changed := differences(outcome, after):
                faults.append(f"{group.name}: a power cut changed {changed}")
        logs: dict[Place, tuple[bytes | None, bytes]] = {}
        for topic in self._topic_ids:
            async with client.reader(topic, skip_damage=True) as reader:
                async for record in reader:
                    place = Place(topic, record.partition, record.offset)
                    logs[place] = record.key, record.value or b""
        assert self.machine.broker
        self._watch_bounds(self.machine.broker)
        self.watch.check_log(logs)
        self.world.counts.update(self.watch.counts)
        for group, outcome in zip(self.groups, outcomes, strict=True):
            faults += self._check(group, outcome)
        await self.machine.end(Ending.STOP)
        return faults

    async def _outcome(self, operator: Operator, group: Grouping) -> Outcome:
        client, name = operator.client, group.name
        return await operator.ask(lambda: outcome_of(client, name, ORDERS, skip_damage=True))

    def _check(self, group: Grouping, outcome: Outcome) -> Iterable[str]:
        noted = group.history.noted
        trimmed = unacknowledged(noted, outcome)
        faults = [
            f"{group.name} was given what is lost: {place}"
            for place in sorted(trimmed - self.watch.flipped)
            if place.offset >= self.watch.starts[place[:2]]
        ]
        noted, outcome = without(noted, outcome, self.watch.flipped | trimmed)
        noted = [self._with_life(one) for one in noted]
        checker = Checker(
            noted,
            outcome,
            order=group.order,
            policy=POLICY,
            lease_ms=self.plan.lease_ms,
            deaf_ms=self._deaf_ms(),
        )
        faults += [f"{group.name}: {fault}" for fault in checker.faults()]
        self.world.counts.update({f"{name}": count for name, count in checker.counts.items()})
        return faults

    def _deaf_ms(self) -> int:
        is_possible = self.world.counts["connections gone silent"] > 0
        return int(PROBE_S[1] * 1_000) if is_possible else 0

    def _with_life(self, noted: Noted) -> Noted:
        """Returns it with a token that counts only the brokers that have served."""
        token = getattr(noted.event, "token", None)
        if token is None:
            return noted
        firsts = self.machine.first_tokens
        life = max(at for at, first in enumerate(firsts) if first <= token)
        changed = token - firsts[life] + life * TOKENS_RESERVED_AT_ONCE + 1
        event: Any = noted.event
        return noted._replace(event=event._replace(token=changed))


def simulate(seed: int) -> Result:
    """Runs the simulation of a seed."""
    return Simulation(seed).run()


def _told(error: BaseException) -> str:
    """Returns what an error says, and where it comes from."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    where = [
        f"{one.filename.rpartition('/')[2]}:{one.lineno}" for one in extract_tb(error.__traceback__)
    ]
    return f"{type(error).__name__}: {error} ({', '.join(where[-6:])})"
