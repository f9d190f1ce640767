"""A seeded random run against a real broker, and its history.

Three groups, one of each order, read one topic. Members join, leave, stall past their lease,
fail, and vanish; the broker is killed and started again; dead letters are redriven in between.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable
from contextlib import suppress
from random import Random
from typing import NamedTuple

import grpc

from logbroker.client import Client, DeadLetterFilter, Delivered, Reject, Retry
from logbroker.errors import ConflictError, LogbrokerError
from logbroker.group.dead_letter import dead_letter_of
from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import GroupSettings, Order
from logbroker.testing.running_broker import BrokerProcess
from logbroker.v1 import consume_service_pb2 as pb
from logbroker.v1.consume_service_pb2_grpc import ConsumeServiceStub
from logbroker.v1.records_pb2 import Records
from logbroker.v1.stored_batch_pb2 import StoredBatch

from .checker import Checker
from .events import (
    Answer,
    Answered,
    Begun,
    BrokerKilled,
    Confirmed,
    Ended,
    Event,
    Letter,
    Outcome,
    Place,
    Received,
    Refused,
    Stored,
    TakenBack,
)

TOPIC = "orders"
LEASE_MS = 1_000
STALL_S = 1.4
MAX_FAILURES = 3
OUTCOMES = {
    Answer.ACKNOWLEDGE: pb.OUTCOME_ACKNOWLEDGE,
    Answer.RETRY: pb.OUTCOME_RETRY,
    Answer.RELEASE: pb.OUTCOME_RELEASE,
    Answer.REJECT: pb.OUTCOME_REJECT,
}


class Plan(NamedTuple):
    """How much there is of everything."""

    record_count: int
    partition_count: int = 4
    kill_count: int = 2
    member_count: int = 3
    batch_records: int = 20
    records_per_second: int = 1_000
    fault_chance: float = 0.02
    """That a record is not acknowledged at once."""
    drain_s: float = 60


class Fate:
    """What members do with records, at random until it is calm."""

    def __init__(self, random: Random, chance: float) -> None:
        self.random = random
        self.chance = chance

    def calm(self) -> None:
        """From now on everything is acknowledged."""
        self.chance = 0

    def answer(self) -> Answer | None:
        """Returns the next answer; None: it stalls past its lease first."""
        drawn = self.random.random()
        if drawn >= self.chance:
            return Answer.ACKNOWLEDGE
        part = drawn / self.chance
        if part < 0.55:
            return Answer.RETRY
        if part < 0.8:
            return Answer.RELEASE
        return Answer.REJECT if part < 0.97 else None


class History:
    """The events of one group."""

    def __init__(self, group: str, order: Order) -> None:
        self.group = group
        self.order = order
        self.events: list[Event] = []

    def note(self, event: Event) -> None:
        """Takes an event; the order of calls is the order in time."""
        self.events.append(event)


class WireMember:
    """A member by the generated stub alone: what it notes is what travelled."""

    def __init__(self, name: str, history: History, fate: Fate, address: str) -> None:
        self.name = name
        self.is_over = False
        self._history = history
        self._fate = fate
        self._channel = grpc.aio.insecure_channel(address)
        self._call = ConsumeServiceStub(self._channel).Consume()
        self._deliveries: deque[tuple[pb.Delivery, float]] = deque()
        self._held: dict[int, set[int]] = {}
        self._topics: dict[int, str] = {}
        self._partitions: dict[int, int] = {}
        self._sent: deque[tuple[int, int, int, Answer]] = deque()
        self._again: list[tuple[int, int, Answer]] = []
        """Of a range that was refused as a whole, to be asked one by one."""
        self._news = asyncio.Event()
        self._is_leaving = False
        self._task = asyncio.create_task(self._run(), name=name)

    async def leave(self) -> None:
        """Ends in order."""
        self._is_leaving = True
        self._news.set()
        await self._task

    async def vanish(self) -> None:
        """Ends without a word, as a killed process does."""
        self._note_ended()
        self._call.cancel()
        await self._channel.close()
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _run(self) -> None:
        reading: asyncio.Task[None] | None = None
        try:
            opening = pb.OpenConsume(
                group=self._history.group, topics=[TOPIC], client_id=self.name,
                limits=pb.FlowLimits(max_outstanding_records=200),
            )  # fmt: skip
            await self._call.write(pb.ConsumeRequest(open=opening))
            reading = asyncio.create_task(self._read())
            await self._handle(reading)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            pass
        finally:
            if reading is not None:
                if self._is_leaving:  # what is on its way still comes, and is noted
                    with suppress(TimeoutError):
                        await asyncio.wait_for(asyncio.shield(reading), 5)
                reading.cancel()
            self._note_ended()
            await self._channel.close()

    def _note_ended(self) -> None:
        if not self.is_over:
            self.is_over = True
            self._history.note(Ended(self.name))

    async def _read(self) -> None:
        with suppress(grpc.aio.AioRpcError):
            while (response := await self._call.read()) is not grpc.aio.EOF:
                if self.is_over:
                    return
                self._take(response)
                self._news.set()
        self._news.set()

    def _take(self, response: pb.ConsumeResponse) -> None:
        note, name = self._history.note, self.name
        for one in response.taken_back:
            held = self._held.get(one.token, set())
            for offset in range(one.first_offset, one.end_offset):
                note(TakenBack(name, one.token, self._place(one.token, offset)))
                held.discard(offset)
        for result in response.settled:
            token, first, end, answer = self._sent.popleft()
            for offset in range(first, end):
                place = self._place(token, offset)
                if not result.HasField("error"):
                    note(Confirmed(name, token, place, answer))
                elif end - first == 1:
                    assert result.error.reason == "LEASE_LOST", result.error
                    note(Refused(name, token, place))
                else:
                    self._again.append((token, offset, answer))
        if response.HasField("delivery"):
            delivery = response.delivery
            token = delivery.token
            self._topics[token] = delivery.dead_letter_topic or delivery.topic
            self._partitions[token] = delivery.partition
            held = self._held[token] = set()
            for one in delivery.ranges:
                for offset in range(one.first_offset, one.end_offset):
                    held.add(offset)
                    note(
                        Received(
                            name, token, self._place(token, offset), one.delivery_number,
                            one.failures, one.redrives,
                        )
                    )  # fmt: skip
            assert sorted(held) == list(_offsets_of(response.batches)), "ranges are not batches"
            self._deliveries.append((delivery, asyncio.get_running_loop().time()))

    def _place(self, token: int, offset: int) -> Place:
        return Place(self._topics[token], self._partitions[token], offset)

    async def _handle(self, reading: asyncio.Task[None]) -> None:
        while not reading.done():
            if self._again:
                again = list(self._again)
                self._again.clear()
                await self._settle([(token, at, at + 1, answer) for token, at, answer in again])
            elif self._is_leaving and not self._sent:
                await self._call.write(pb.ConsumeRequest(leave=pb.LeaveConsume()))
                return
            elif self._deliveries and not self._is_leaving:
                delivery, came = self._deliveries.popleft()
                await self._handle_one(delivery.token, came, reading)
            else:
                self._news.clear()
                await self._news.wait()

    async def _handle_one(self, token: int, came: float, reading: asyncio.Task[None]) -> None:
        loop, held = asyncio.get_running_loop(), self._held[token]
        done: list[tuple[int, int, int, Answer]] = []
        for offset in sorted(held):
            if offset not in held:
                continue  # taken back meanwhile
            place = self._place(token, offset)
            is_old = (loop.time() - came) * 1_000 > LEASE_MS / 2
            if not is_old:
                self._history.note(Begun(self.name, token, place))
            answer = Answer.RELEASE if is_old else self._fate.answer()
            if answer is None:
                await self._settle(done)
                done = []
                await asyncio.sleep(STALL_S)
                answer = Answer.ACKNOWLEDGE
            self._history.note(Answered(self.name, token, place, answer))
            held.discard(offset)
            if answer is Answer.ACKNOWLEDGE:
                done.append((token, offset, offset + 1, answer))
                continue
            await self._settle([*done, (token, offset, offset + 1, answer)])
            done = []
            while self._sent and not reading.done():  # what is behind it may be taken back now
                self._news.clear()
                await self._news.wait()
            if reading.done():
                return
        await self._settle(done)

    async def _settle(self, entries: list[tuple[int, int, int, Answer]]) -> None:
        joined: list[tuple[int, int, int, Answer]] = []
        for entry in entries:
            token, first, end, answer = entry
            if joined and joined[-1][0] == token and joined[-1][2:] == (first, answer):
                joined[-1] = (token, joined[-1][1], end, answer)
            else:
                joined.append(entry)
        if not joined:
            return
        self._sent += joined
        settlements = [
            pb.Settlement(token=token, first_offset=first, end_offset=end,
                          outcome=OUTCOMES[answer], reason="drawn")
            for token, first, end, answer in joined
        ]  # fmt: skip
        await self._call.write(pb.ConsumeRequest(settle=pb.Settlements(settlements=settlements)))


class WorkerMember:
    """A Worker of the client, as applications use it. It outlives the broker's restarts."""

    def __init__(self, name: str, history: History, fate: Fate, address: str) -> None:
        self.name = name
        self.is_over = False
        self._history = history
        self._fate = fate
        self._client = Client(address)
        self._worker = self._client.worker(
            history.group, TOPIC, self._handler, concurrency=4, max_outstanding_records=200
        )
        self._listen()
        self._task = asyncio.create_task(self._run(), name=name)

    async def leave(self) -> None:
        """Ends in order."""
        self._worker.stop()
        await self._task

    async def _run(self) -> None:
        try:
            await self._worker.run()
        finally:
            self.is_over = True
            self._history.note(Ended(self.name))
            await self._client.close()

    def _listen(self) -> None:
        """Notes what the worker is told."""
        take, note_lost = self._worker.take, self._worker.note_lost
        note = self._history.note

        def noting_take(batch):  # type: ignore[no-untyped-def]
            lease = batch.lease
            for record in batch:
                place = Place(
                    lease.dead_letter_topic or lease.topic, lease.partition, record.ledger_offset
                )
                note(
                    Received(
                        self.name, lease.token, place, record.delivery_number,
                        record.failures, record.redrives,
                    )
                )  # fmt: skip
            take(batch)

        def noting_lost(lease, range_):  # type: ignore[no-untyped-def]
            topic = lease.dead_letter_topic or lease.topic
            for offset in range(*range_):
                note(Refused(self.name, lease.token, Place(topic, lease.partition, offset)))
            note_lost(lease, range_)

        self._worker.take, self._worker.note_lost = noting_take, noting_lost  # type: ignore[method-assign]

    async def _handler(self, record: Delivered) -> None:
        lease = record.run.lease
        place = Place(lease.dead_letter_topic or lease.topic, lease.partition, record.ledger_offset)
        self._history.note(Begun(self.name, lease.token, place))
        answer = self._fate.answer() or Answer.RETRY
        if answer is Answer.RELEASE:  # a worker does not release by itself: it takes its time
            await asyncio.sleep(self._fate.random.random() / 50)
            answer = Answer.ACKNOWLEDGE
        self._history.note(Answered(self.name, lease.token, place, answer))
        if answer is Answer.RETRY:
            raise Retry(reason="drawn")
        if answer is Answer.REJECT:
            raise Reject("drawn")


Member = WireMember | WorkerMember


class Workload:
    """One run."""

    def __init__(self, seed: int, plan: Plan, broker: BrokerProcess) -> None:
        self.random = Random(seed)
        self.plan = plan
        self.broker = broker
        self.fate = Fate(Random(seed + 1), plan.fault_chance)
        self.histories = [History(f"by-{order}", order) for order in Order]
        self.counts: dict[str, int] = defaultdict(int)
        """How often what was done."""
        self._members: dict[str, list[Member]] = defaultdict(list)
        self._client = Client(broker.address)
        self._number = 0

    async def run(self) -> None:
        """Does everything, and lets the groups come to rest."""
        async with self._client:
            admin = self._client.admin
            await admin.create_topic(TOPIC, partition_count=self.plan.partition_count)
            for history in self.histories:
                retry = RetryPolicy(initial_ms=50, max_ms=200, max_failures=MAX_FAILURES)
                settings = GroupSettings(order=history.order, lease_ms=LEASE_MS, retry=retry)
                await admin.create_group(history.group, settings)
                for _ in range(self.plan.member_count):
                    self._join(history)
            async with asyncio.TaskGroup() as tasks:
                producing = tasks.create_task(self._produce())
                tasks.create_task(self._disturb(producing))
            self.fate.calm()
            for history in self.histories:
                await self._redrive(history, limit=0)
                await self._drain(history)
                for member in self._members[history.group]:
                    await member.leave()

    def _join(self, history: History) -> None:
        self._number += 1
        kind = WorkerMember if self.random.random() < 0.15 else WireMember
        name = f"{kind.__name__}-{self._number}"
        member = kind(name, history, self.fate, self.broker.address)
        self._members[history.group].append(member)
        self.counts["join"] += 1

    async def _produce(self) -> None:
        random, plan = Random(self.random.random()), self.plan
        number = 0
        async with self._client.producer(TOPIC, linger_ms=1) as producer:
            while number < plan.record_count:
                count = min(random.randint(1, plan.batch_records), plan.record_count - number)
                partition = random.randrange(plan.partition_count)
                pending = []
                for _ in range(count):
                    key = random.choice([None, *(b"k%d" % at for at in range(8))])
                    value = b"%d" % number
                    receipt = await producer.send(value, key=key, partition=partition)
                    pending.append((value, receipt))
                    number += 1
                for value, receipt in pending:
                    stored = await receipt
                    place = Place(TOPIC, partition, stored.offset)
                    for history in self.histories:
                        history.note(Stored(place, value))
                await asyncio.sleep(count / plan.records_per_second)

    async def _disturb(self, producing: asyncio.Task[None]) -> None:
        kills = self.plan.kill_count
        lasts_s = self.plan.record_count / self.plan.records_per_second
        kill_at = [lasts_s * (at + 0.5) / kills for at in range(kills)]
        loop = asyncio.get_running_loop()
        began = loop.time()
        while not producing.done():
            await asyncio.sleep(self.random.uniform(0.05, 0.25))
            history = self.random.choice(self.histories)
            if kill_at and loop.time() - began > kill_at[0]:
                kill_at.pop(0)
                await self._kill_broker()
                continue
            match self.random.choice(["join", "leave", "vanish", "vanish", "redrive"]):
                case "join":
                    self._join(history)
                case "redrive":
                    with suppress(LogbrokerError):
                        await self._redrive(history, limit=self.random.randint(0, 5))
                case what:
                    await self._end_one(history, what)
            self._refill()

    async def _end_one(self, history: History, what: str) -> None:
        members = self._members[history.group]
        member = members.pop(self.random.randrange(len(members)))
        self.counts[what] += 1
        if what == "vanish" and isinstance(member, WireMember):
            await member.vanish()
        else:
            await member.leave()

    async def _kill_broker(self) -> None:
        self.counts["kill"] += 1
        await asyncio.to_thread(self.broker.kill)
        for history in self.histories:
            history.note(BrokerKilled())
        await asyncio.to_thread(self.broker.start)
        self._refill()

    def _refill(self) -> None:
        for history in self.histories:
            members = self._members[history.group]
            members[:] = [member for member in members if not member.is_over]
            while len(members) < self.plan.member_count:
                self._join(history)

    async def _redrive(self, history: History, limit: int) -> None:
        which = DeadLetterFilter(group=history.group, topic=TOPIC, limit=limit)
        try:
            started = await self._client.admin.start_redrive(which)
        except ConflictError as error:  # the one before still runs: a later step tries again
            if error.reason != "REDRIVE_RUNNING":
                raise
            return
        self.counts["redriven"] += started.selected_count

    async def _drain(self, history: History) -> None:
        """Waits until the group has nothing left to do."""

        async def is_idle() -> bool:
            self._refill()
            found = await self._client.admin.get_group(history.group)
            waiting = sum(one.lag for one in found.progress)
            return not waiting and not any(one.redriven_count for one in found.dead_letters)

        try:
            async with asyncio.timeout(self.plan.drain_s):
                while not await is_idle():  # noqa: ASYNC110  # it lies beyond the network
                    await asyncio.sleep(0.05)
        except TimeoutError:
            found = await self._client.admin.get_group(history.group)
            raise AssertionError(f"{history.group} does not come to rest: {found}") from None


async def outcome_of(client: Client, history: History) -> Outcome:
    """Asks the broker how everything ended for a group."""
    admin = client.admin
    log: dict[Place, tuple[bytes | None, bytes]] = {}
    async with client.reader(TOPIC) as reader:
        async for batch in reader.batches():
            for record in batch.records():
                place = Place(TOPIC, record.partition, record.offset)
                log[place] = record.key, record.value or b""
    letters = []
    which = DeadLetterFilter(group=history.group, topic=TOPIC)
    listed = {
        (one.partition, one.offset): one
        for one in await admin.list_dead_letters(which, with_resolved=True)
    }
    dead_letter_topic = f"{TOPIC}.{history.group}.dlq"
    if listed:
        async with client.reader(dead_letter_topic) as reader:
            async for record in reader:
                letter = dead_letter_of(record.headers)
                info = listed.get((record.partition, record.offset))
                letters.append(
                    Letter(
                        Place(dead_letter_topic, record.partition, record.offset),
                        Place(letter.topic, letter.partition, letter.offset),
                        info.state if info else "resolved",
                        info.redrives if info else 0,
                        record.value or b"",
                    )
                )
    committed = {
        one.partition: one.committed_offset or 0
        for one in await admin.get_offsets(history.group, TOPIC)
    }
    dead = {letter.source for letter in letters}
    states = {}
    for place in log:
        if place in dead:
            states[place] = "parked"
        elif place.offset < committed.get(place.partition, 0):
            states[place] = "settled"
        else:
            why = await admin.explain(history.group, *place)
            states[place] = "settled" if why.state == "settled" else "pending"
    return Outcome(log, states, letters)


async def prove(seed: int, plan: Plan, broker: BrokerProcess) -> Workload:
    """Runs the workload and checks the history of every group."""
    workload = Workload(seed, plan, broker)
    await workload.run()
    async with Client(broker.address) as client:
        for history in workload.histories:
            outcome = await outcome_of(client, history)
            assert len(outcome.log) >= plan.record_count
            checker = Checker(
                history.events, outcome, order=history.order, max_failures=MAX_FAILURES
            )
            try:
                checker.check()
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, {history.group}: {error}") from None
            workload.counts.update(
                {f"{history.group} {name}": count for name, count in checker.counts.items()}
            )
    return workload


def _offsets_of(batches: Iterable[StoredBatch]) -> Iterable[int]:
    for batch in batches:
        records = Records.FromString(batch.records)
        for delta in records.offset_deltas or range(len(records.values)):
            yield batch.base_offset + delta
