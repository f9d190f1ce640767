"""Members that come, go, fail and vanish, and brokers that restart, by a seed.

In the end every record is acknowledged or a dead letter, once; on the way no two live leases
hold one record, delivery numbers rise by one, and nothing overtakes what it must not.
"""

import asyncio
from contextlib import suppress
from random import Random

import pytest

from logbroker.broker.dead_letter_view import DeadLetterFilter
from logbroker.broker.membership import MemberSpec
from logbroker.broker.settle import Settlement
from logbroker.errors import ConflictError, NotFoundError
from logbroker.group.record_state import Cause
from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import GroupSettings, Order
from logbroker.record.batch import Batch
from logbroker.record.columns import decode_records
from logbroker.storage.memory import MemoryEngine
from logbroker.testing.clock import ManualClock
from logbroker.topic.topic import TopicSettings

from .brokers import batch_of, broker_on

PARTITIONS = 3
CAUSES = [Cause.ACKNOWLEDGE] * 4 + [Cause.RETRY, Cause.REJECT, Cause.RELEASE]
KEYS = [b"a", b"b", b"c", None]
LETTERS = DeadLetterFilter(group="g", topic="a")


class Run:
    """One workload; what is known of each record is by partition and offset of the source."""

    def __init__(self, seed, order):
        self.random = Random(seed)
        self.order = order
        self.clock = ManualClock()
        self.members, self.held = [], {}
        self.acknowledged, self.numbers = set(), {}
        self.keys = {}
        self.broker = None

    async def go(self, steps):
        engine = MemoryEngine(self.clock)
        is_new = True
        for _ in range(4):
            async with broker_on(engine, self.clock) as self.broker:
                if is_new:
                    await self.broker.create_topic("a", PARTITIONS, TopicSettings())
                is_new = False
                for _ in range(steps // 4):
                    await self.random.choice([self.publish, *[self.deliver] * 5, self.change])()
                self.members.clear()
                self.held.clear()
            engine = engine.reopened()
        async with broker_on(engine, self.clock) as self.broker:
            await self.finish()

    async def publish(self):
        partition = self.random.randrange(PARTITIONS)
        keys = self.random.choices(KEYS, k=self.random.randint(1, 6))
        batch = batch_of(*[b"v"] * len(keys), keys=keys)
        receipt = await self.broker.produce("a", "", partition, batch)
        for number, key in enumerate(keys):
            self.keys[partition, receipt.base_offset + number] = key

    async def change(self):
        if len(self.members) < 3 and self.random.random() < 0.6:
            await self.join()
        elif self.members:
            member = self.members.pop(self.random.randrange(len(self.members)))
            await self.broker.leave(member, has_vanished=self.random.random() < 0.7)
            self.drop(member)
        elif self.random.random() < 0.5:
            await self.redrive()
        await self.clock.advance(self.random.choice([10, 200, 2_000]))

    async def join(self):
        settings = GroupSettings(
            order=self.order,
            lease_ms=5_000,
            retry=RetryPolicy(initial_ms=50, max_ms=500, max_failures=3),
            max_unsettled=20,
        )
        spec = MemberSpec(
            group="g", topics=("a",), settings=settings, max_records=self.random.choice([1, 3, 50])
        )
        self.members.append(await self.broker.join(spec))

    async def redrive(self):
        with suppress(ConflictError, NotFoundError):  # one runs; there is no group yet
            await self.broker.start_redrive(LETTERS)

    async def deliver(self):
        """Lets one member take what comes, and settle some of what it holds."""
        if not self.members:
            return await self.change()
        member = self.random.choice(self.members)
        await self.read(member)
        mine = [lease for lease in self.held.values() if lease["member"] is member]
        for lease in self.random.sample(mine, min(len(mine), 2)):
            await self.settle(lease)
        await self.clock.advance(self.random.choice([0, 0, 10, 300]))
        return None

    async def read(self, member):
        """Takes in all that the member is told now."""
        while True:
            coming = asyncio.ensure_future(member.next())
            await self.clock.advance(0)
            if not coming.done():
                coming.cancel()
                return
            news, delivery = coming.result()
            for one in news.taken_back:
                self.lose(one.token, one.ranges)
            if delivery:
                self.take(member, delivery)
            if not delivery and news == type(news)():
                return

    def take(self, member, delivery):
        seed = (
            self.broker.get_topic(delivery.dead_letter_topic or delivery.topic)
            .partition(delivery.partition)
            .seed
        )
        at, offsets = 0, []
        while at < len(delivery.batches):
            batch = Batch.decode(delivery.batches, seed, at)
            at += batch.header.size_bytes
            offsets += [record.offset for record in decode_records(batch)]
        place = (delivery.dead_letter_topic, delivery.partition)
        told = [at for run in delivery.runs for at in range(run.first, run.end)]
        assert offsets == told
        for run in delivery.runs:
            for offset in range(run.first, run.end):
                record = (*place, offset)
                for lease in self.all_held():
                    assert record not in lease["records"], f"{record} is leased twice"
                expected = self.numbers.get(record, 0) + 1
                assert run.deliveries == expected, (record, run, expected)
                self.numbers[record] = run.deliveries
                assert record not in self.acknowledged, f"{record} was settled"
                self.check_order(member, record)
        records = [(*place, offset) for offset in told]
        self.held[delivery.token] = {"token": delivery.token, "member": member, "records": records}

    def check_order(self, member, record):
        """Nothing unsettled lies before it in its partition or key, but with the same member."""
        topic, partition, offset = record
        if topic or self.order is Order.NONE:
            return
        state = self.state_of(partition)
        for before in range(state.committed, offset):
            is_concerned = self.order is Order.PARTITION or (
                self.keys[partition, before] is not None
                and self.keys[partition, before] == self.keys[partition, offset]
            )
            if is_concerned and before not in state.settled:
                leased = state.leases.holder_of(before)
                assert leased, f"{before} of {partition} is not settled, {offset} is delivered"
                assert leased.member == member.holding.name
                assert self.order is Order.PARTITION, "a key has one lease at a time"

    def state_of(self, partition):
        topic_id = self.broker.get_topic("a").topic_id
        return next(
            ledger.state
            for ledger_id, ledger in self.broker._groups.state.of("g", topic_id).items()
            if ledger_id.partition == partition
        )

    def all_held(self):
        """Returns the leases that the broker knows of; others have expired meanwhile."""
        found = []
        for lease in self.held.values():
            live = self.broker._groups.live_group("g")
            ledger = self.broker._groups.state.get(live.ledger_of(lease["token"]))
            known = ledger and ledger.state.leases.get(lease["token"])
            if known:
                lease["records"] = [one for one in lease["records"] if one[2] in known.held]
                found.append(lease)
        return found

    async def settle(self, lease):
        cause = self.random.choice(CAUSES)
        records = lease["records"]
        if not records:
            return
        record = self.random.choice(records)
        one = Settlement(lease["token"], record[2], record[2] + 1, cause)
        [result] = await self.broker.settle("g", [one])
        if result.error:
            assert result.error.reason == "LEASE_LOST"
            self.held.pop(lease["token"], None)
        else:
            lease["records"] = [each for each in lease["records"] if each != record]
            if cause is Cause.ACKNOWLEDGE:
                self.acknowledged.add(record)

    def lose(self, token, ranges):
        if lease := self.held.get(token):
            lease["records"] = [
                one
                for one in lease["records"]
                if not any(first <= one[2] < end for first, end in ranges)
            ]

    def drop(self, member):
        for token in [token for token, one in self.held.items() if one["member"] is member]:
            del self.held[token]

    async def finish(self):
        """Reads until nothing is left, and compares."""
        await self.join()
        [member] = self.members
        for _ in range(2_000):
            await self.clock.advance(200)
            await self.read(member)
            for lease in list(self.all_held()):
                for record in list(lease["records"]):
                    one = Settlement(lease["token"], record[2], record[2] + 1, Cause.ACKNOWLEDGE)
                    [result] = await self.broker.settle("g", [one])
                    if not result.error:
                        self.acknowledged.add(record)
                self.held.pop(lease["token"], None)
            told = await self.broker.group_progress("g")
            if not any(one.progress.lag for one in told):
                break
        else:
            raise AssertionError(f"not all is settled: {told}")
        letters, _ = await self.broker.list_dead_letters(
            LETTERS, with_resolved=True, page_size=1_000, page_token=""
        )
        dead = [(one.partition, one.letter.offset) for one in letters]
        assert len(dead) == len(set(dead)), "a dead letter has two copies"
        done = {record[1:] for record in self.acknowledged if not record[0]}
        assert done | set(dead) == set(self.keys)
        assert not done & set(dead)


@pytest.mark.parametrize("order", list(Order))
async def test_every_record_ends_acknowledged_or_dead_once(order):
    await Run(0, order).go(40)


@pytest.mark.slow
@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("seed", range(1, 11))
async def test_every_record_ends_acknowledged_or_dead_once_in_longer_runs(seed, order):
    await Run(seed, order).go(240)
