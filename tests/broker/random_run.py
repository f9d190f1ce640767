"""A group at the mercy of a seed, and the models that say after every step what must be.

Members join, leave, vanish, settle, and forget their leases; calls lease, too; records are
produced; groups are reset; dead letters are redriven; the broker stops, or crashes in the
middle of something and loses what was not flushed. All of it by one clock and one `Random`.
"""

import asyncio
from random import Random
from typing import Any

from logbroker.broker.lease import LeaseSpec
from logbroker.broker.leasing import Delivery
from logbroker.broker.membership import MemberSpec
from logbroker.group.events import LedgerId
from logbroker.group.record_state import Cause, State
from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import GroupSettings, Order
from logbroker.topic.topic import TopicSettings

from .driven_broker import DrivenBroker
from .random_answers import RandomAnswers
from .random_operator import RandomOperator
from .shadow import Facts
from .shadows import Place, Shadows
from .written import Written

PARTITIONS = range(3)
KEYS = [b"a", b"b", b"c", None]
POLICY = RetryPolicy(initial_ms=50, max_ms=500, max_failures=3)
LEASE_MS = 5_003
"""Leases end when nothing else does: everything else is decided at multiples of 20 ms."""
SOURCE, DEAD = "a", "a.g.dlq"
MOST_RECORDS = 120
"""The models are slow: that many a partition are enough."""


class RandomRun:
    """One run. `story` tells it; `shadows.done` counts what happened."""

    def __init__(self, seed: int, order: Order) -> None:
        self.random = Random(seed)
        self.order = order
        self.driven = DrivenBroker(self.random)
        self.shadows = Shadows(order, POLICY)
        self.written = Written(SOURCE, DEAD)
        self.story: list[tuple[object, ...]] = []
        self._members: list[Any] = []
        self._answers = RandomAnswers(self)
        self._operator = RandomOperator(self, SOURCE, PARTITIONS)

    @property
    def broker(self) -> Any:
        """The one that runs now."""
        return self.driven.broker

    @property
    def now_ms(self) -> int:
        """On the clock that runs leases."""
        return self.driven.clock.monotonic_ms()

    async def go(self, steps: int) -> None:
        """Does so many steps, and then what is left to do."""
        try:
            await self._begin()
            often = [self._deliver] * 10 + [self._publish] * 2 + [self._change] * 3
            often += [self._call, self._operator.redrive, self._wait, self._restart, self._crash]
            for _ in range(steps):
                rarely = self.random.random() < 0.02
                step = self.random.choice(
                    [self._operator.reset, self._operator.commit] if rarely else often
                )
                self.shadows.done[step.__name__.strip("_")] += 1
                await step()
                self.shadows.note()
            await self._finish()
            await self.driven.stop()
        finally:
            self.driven.abandon()

    async def _begin(self) -> None:
        """Makes all topics, so that no later failure has to wait for one."""
        await self.driven.start()
        await self.driven.drive(self.broker.create_topic(SOURCE, len(PARTITIONS), TopicSettings()))
        for number in PARTITIONS:
            self.shadows.add((SOURCE, number), is_dead_letter_topic=False)
        while not self.shadows[SOURCE, 0].model.entries:
            await self._publish()
        member = await self._join()
        await self._advance(200)
        await self._read(member)
        [token] = [token for token, (place, *_) in self.shadows.leases.items() if place[1] == 0]
        await self._answers.settle(token, 0, Cause.REJECT)
        await self.driven.settle_down()
        for number in PARTITIONS:
            self.shadows.add((DEAD, number), is_dead_letter_topic=True)
        await self.read_letters()

    async def _settle_down(self) -> None:
        await self.driven.settle_down()
        await self.read_letters()

    def tell(self, *what: object) -> None:
        """Adds to the story."""
        self.story.append((self.now_ms, *what))

    # The broker

    async def _restart(self) -> None:
        """Stops the broker in order: nothing is forgotten, and nothing counts as failed."""
        if self.random.random() < 0.2:
            self.look()
            self.shadows.end_all()
            await self.driven.stop()
            self.shadows.note_durable()
            await self._begin_again()

    async def _crash(self) -> None:
        """Ends the broker in the middle of something: what was confirmed is not forgotten."""
        if self.random.random() < 0.5:
            self.look()
            answers = [self._answers.settle_some, self._answers.give_up, self._answers.give_up]
            doing = self.random.choice([self._publish, *answers, self._operator.redrive])
            self.shadows.done["cut off by a crash"] += await self.driven.crash(doing())
            await self._begin_again()

    async def _begin_again(self) -> None:
        self._members.clear()
        self.shadows.leases.clear()
        await self.driven.start()
        await self._settle_down()
        for number in PARTITIONS:
            self.written.see(self.broker, self.shadows[SOURCE, number], number)
        for (topic, number), shadow in self.shadows.by_place.items():
            for at in range(len(shadow.model.entries)):
                was_dead = shadow.ends.get(at) == "dead"
                facts = shadow.after_crash(at, self._found((topic, number), at))
                if topic == SOURCE:
                    self.shadows.dead[number, at] += (facts.state == "dead") - was_dead
        self.shadows.note_durable()
        self.tell("begins again")

    def _found(self, place: Place, at: int) -> Facts:
        """Returns what the broker knows of a record."""
        ledger = self._ledger(place)
        state = ledger.state
        found = state.state_of(at)
        if found is State.SETTLED:
            ends = self.shadows[place].possible_ends(at)
            assert len(ends) == 1, f"{place} {at} is settled, and may be {ends or 'only open'}"
            return Facts(ends.pop())
        return Facts(
            "parked" if found is State.PARKED else "open",
            state.deliveries.at(at),
            ledger.failures_of(at),
            at in state.marks,
            state.redrives.at(at),
        )

    def _ledger(self, place: Place) -> Any:
        topic_id = self.broker.get_topic(place[0]).topic_id
        return self.broker._groups.ledger(LedgerId("g", topic_id, place[1]))

    async def _publish(self) -> None:
        number = self.random.choice(PARTITIONS)
        keys = self.random.choices(KEYS, k=self.random.randint(1, 6))
        if len(self.shadows[SOURCE, number].model.entries) <= MOST_RECORDS:
            await self.written.publish(self.driven, number, keys)
            self.written.see(self.broker, self.shadows[SOURCE, number], number)

    # Time

    async def _wait(self) -> None:
        await self._advance(self.random.choice([20, 200, 2_000, 5_020]))

    async def _advance(self, ms: int) -> None:
        """Moves the clock, and looks just before and at each deadline."""
        end = self.now_ms + ms
        while True:
            now = self.now_ms
            deadlines = self.shadows.deadlines()
            stops = [at for until in deadlines for at in (until - 1, until) if now < at <= end]
            await self.driven.clock.advance(min(stops, default=end) - now)
            self.look()
            await self._settle_down()
            if self.now_ms == end:
                return

    def look(self) -> None:
        """Takes in what has expired by now, and what has moved to other members."""
        self.shadows.pass_time(self.now_ms)
        owners: dict[int, str] = {}
        for member in self._members:
            owned = {number for _, number in self.broker.members.ownership.owned_by(member)}
            owners.update(dict.fromkeys(owned, member.holding.name))
            for one in member.holding.taken_back:
                place, *_ = self.shadows.leases[one.token]
                for at in self.shadows[place].model.held_by(one.token):
                    if any(first <= at < end for first, end in one.ranges):
                        assert self.order is Order.PARTITION, f"{at} was taken for no reason"
                        assert place[1] not in owned, f"{at} was taken from its owner"
                        self.shadows[place].lose(at)
                        self.shadows.done["revoked"] += 1
        self.shadows.check_owners(owners)
        self.shadows.note()

    # Members

    async def _change(self) -> None:
        """Lets somebody come or go."""
        if len(self._members) < 3 and self.random.random() < 0.6:
            await self._join()
        elif self._members:
            member = self._members.pop(self.random.randrange(len(self._members)))
            self.look()
            await self._end(member, has_vanished=self.random.random() < 0.7)
        await self._advance(self.random.choice([20, 200]))

    async def _join(self) -> Any:
        settings = GroupSettings(
            order=self.order, lease_ms=LEASE_MS, retry=POLICY, max_unsettled=20
        )
        limit = self.random.choice([1, 3, 50])
        spec = MemberSpec(group="g", topics=(SOURCE,), settings=settings, max_records=limit)
        member = await self.driven.drive(self.broker.join(spec))
        self._members.append(member)
        return member

    async def _end(self, member: Any, *, has_vanished: bool) -> None:
        name = member.holding.name
        self.tell("ends", name, has_vanished)
        self.shadows.end(name, has_vanished=has_vanished, now_ms=self.now_ms)
        await self.driven.drive(self.broker.leave(member, has_vanished=has_vanished))
        leases = self.shadows.leases
        for token in [token for token, (_, whose, _) in leases.items() if whose == name]:
            del leases[token]

    async def _deliver(self) -> None:
        """Lets one member take what comes, and somebody answer."""
        if self._members:
            await self._read(self.random.choice(self._members))
            await self._answers.settle_some()
            await self._advance(self.random.choice([0, 0, 20, 300]))

    async def _read(self, member: Any) -> None:
        """Takes in all that the member is told now; AssertionError if that is not all."""
        engine, clock, name = self.driven.engine, self.driven.clock, member.holding.name
        told: set[tuple[int, int]] = set()
        while True:
            coming = asyncio.ensure_future(member.next())
            await clock.advance(0)
            while not coming.done() and engine.pending_count:
                engine.flush()
                await clock.advance(0)
            self.look()
            if not coming.done():
                coming.cancel()
                break
            news, delivery = coming.result()
            for one in news.taken_back:
                told |= {(one.token, at) for first, end in one.ranges for at in range(first, end)}
            if delivery:
                self._take(delivery, name)
        for token, (place, whose, _) in self.shadows.leases.items():
            if whose == name:
                must_be_told = self.shadows[place].told[token]
                missing = {(token, at) for at in must_be_told} - told
                assert not missing, f"{name} was not told of {missing}"
                must_be_told.clear()

    async def _call(self) -> None:
        """Lets a call lease something; it forgets it, or answers at once."""
        spec = LeaseSpec(group="g", topics=(SOURCE,), max_records=self.random.choice([1, 5]))
        self.look()
        delivery = await self.driven.drive(self.broker.lease(spec))
        if delivery:
            self._take(delivery, f"call {delivery.token}")
            if self.random.random() < 0.6:
                await self._answers.answer(delivery.token)

    def _take(self, delivery: Delivery, name: str) -> None:
        """Takes a delivery; AssertionError if it must not be, or not so."""
        place = delivery.dead_letter_topic or SOURCE, delivery.partition
        offsets = [at for run in delivery.runs for at in range(run.first, run.end)]
        assert self.written.check(self.broker, delivery, place) == offsets
        self.shadows.lease(delivery.token, name, place, offsets, self.now_ms)
        self.shadows.leases[delivery.token] = place, name, self.now_ms + LEASE_MS
        for run in delivery.runs:
            for at in range(run.first, run.end):
                entry = self.shadows[place].model.entries[at]
                told = run.deliveries, run.failures, run.redrives
                expected = entry.deliveries, entry.failures, entry.redrives
                assert told == expected, f"{place} {at}: {told}, not {expected}"
        self.shadows.note()
        self.tell("takes", name, place, offsets)

    # The end

    async def read_letters(self) -> None:
        """Takes in what has come to the dead-letter topic."""
        if (DEAD, 0) in self.shadows.by_place:
            for number in PARTITIONS:
                await self.written.read_letters(self.broker, self.shadows[DEAD, number], number)

    async def _finish(self) -> None:
        """Acknowledges all that is left, and compares."""
        while self._members:
            self.look()
            await self._end(self._members.pop(), has_vanished=False)
        member = await self._join()
        for _ in range(2_000):
            await self._advance(200)
            await self._read(member)
            for token in list(self.shadows.leases):
                place, *_ = self.shadows.leases[token]
                for at in self.shadows[place].model.held_by(token):
                    await self._answers.settle(token, at, Cause.ACKNOWLEDGE)
            told = await self.broker.groups.progress("g")
            redriven = sum(one.redriven for one in self.broker.groups.dead_letters("g"))
            if not redriven and not any(one.progress.lag for one in told):
                break
        else:
            raise AssertionError(f"not all is settled: {told}")
        for place, shadow in self.shadows.by_place.items():
            state = self._ledger(place).state
            for at, entry in enumerate(shadow.model.entries):
                assert state.state_of(at) is entry.state
                assert place[0] == DEAD or entry.state is State.SETTLED
        assert self.written.copies() == +self.shadows.dead, "each dead letter has one copy"
