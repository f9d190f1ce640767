"""Whose partitions are: what becomes of them when their owner makes no progress."""

from contextlib import asynccontextmanager

from logbroker.broker.settle import Settlement
from logbroker.group.record_state import Cause
from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import GroupSettings

from .brokers import batch_of, next_delivery, topic_on, values_of
from .grouped import member_on, settle

LEASE_MS = 2_000
RETRY = RetryPolicy(initial_ms=100, max_ms=100, max_failures=5)
SETTINGS = GroupSettings(lease_ms=LEASE_MS, retry=RETRY)


def owned(broker, *members):
    """Returns the partitions of each."""
    return [[at for _, at in broker.members.ownership.owned_by(each)] for each in members]


@asynccontextmanager
async def two_members(partition_count):
    """Yields a broker and two members that share its partitions."""
    async with (
        topic_on(partition_count=partition_count) as broker,
        member_on(broker, settings=SETTINGS) as one,
        member_on(broker) as two,
    ):
        await broker.clock.advance(200)
        assert sum(map(len, owned(broker, one, two))) == partition_count
        yield broker, one, two


async def test_an_owner_that_lets_a_lease_run_out_loses_the_partition_to_another_member():
    async with two_members(1) as (broker, one, two):
        owner, other = (one, two) if owned(broker, one)[0] else (two, one)
        await broker.produce("a", "", 0, batch_of(b"0", b"1"))
        lost = await next_delivery(broker, owner)
        await broker.clock.advance(LEASE_MS + 200)
        assert owned(broker, owner, other) == [[], [0]]
        found = await next_delivery(broker, other)
        assert [(run.first, run.failures, run.deliveries) for run in found.runs] == [
            (0, 1, 2), (1, 0, 2),
        ]  # fmt: skip
        news, more = await owner.next()
        assert (news.assigned, more) == ((), None)
        assert [(each.token, each.ranges) for each in news.taken_back] == [
            (lost.token, ((0, 1),)), (lost.token, ((1, 2),)),
        ], "and nothing came again meanwhile"  # fmt: skip


async def test_a_member_that_hangs_burns_one_failure_and_the_rest_is_done_by_another():
    async with two_members(1) as (broker, one, two):
        owner, other = (one, two) if owned(broker, one)[0] else (two, one)
        await broker.produce("a", "", 0, batch_of(*(b"%d" % at for at in range(20))))
        await next_delivery(broker, owner)
        seen = []
        while len(seen) < 20:
            found = await next_delivery(broker, other)
            for run in found.runs:
                seen += [(at, run.failures) for at in range(run.first, run.end)]
                await settle(broker, other, Cause.ACKNOWLEDGE, found.token, run.first, run.end)
        assert seen == [(0, 1), *((at, 0) for at in range(1, 20))]
        assert [one.topic for one in broker.list_topics(0, "")[0]] == ["a"], "no dead letter"


async def test_one_that_goes_on_elsewhere_loses_only_the_partition_in_which_it_hangs():
    async with two_members(4) as (broker, one, two):
        hangs, goes_on = owned(broker, one)[0]
        for partition in (hangs, goes_on):
            await broker.produce("a", "", partition, batch_of(b"v"))
        found = [await next_delivery(broker, one) for _ in range(2)]
        [token] = [each.token for each in found if each.partition == goes_on]
        await broker.clock.advance(LEASE_MS - 100)
        await one.settle([Settlement(token, 0, 1, Cause.ACKNOWLEDGE)])
        await broker.clock.advance(300)
        ones, twos = owned(broker, one, two)
        assert hangs in twos
        assert goes_on in ones
        assert len(ones) == len(twos) == 2


async def test_one_of_which_nothing_is_heard_loses_all_until_it_is_heard_again():
    async with two_members(4) as (broker, one, two):
        hangs, _ = owned(broker, one)[0]
        await broker.produce("a", "", hangs, batch_of(b"v"))
        found = await next_delivery(broker, one)
        await broker.clock.advance(LEASE_MS + 200)
        assert owned(broker, one, two) == [[], [0, 1, 2, 3]]
        await one.settle([Settlement(found.token, 0, 1, Cause.ACKNOWLEDGE)])
        await broker.clock.advance(200)
        ones, twos = owned(broker, one, two)
        assert len(ones) == len(twos) == 2
        assert hangs in twos, "not there, where another is who has not hung"


async def test_one_that_wants_nothing_more_and_lets_a_lease_run_out_loses_all():
    async with two_members(4) as (broker, one, two):
        hangs, _ = owned(broker, one)[0]
        await broker.produce("a", "", hangs, batch_of(b"v"))
        await next_delivery(broker, one)
        await broker.clock.advance(LEASE_MS - 100)
        one.limit(0, 0)
        one.extend([])
        await broker.clock.advance(300)
        assert owned(broker, one, two) == [[], [0, 1, 2, 3]]
        one.limit(10, None)
        await broker.clock.advance(200)
        assert list(map(len, owned(broker, one, two))) == [2, 2]


async def test_one_that_is_alone_keeps_its_partition_until_another_comes():
    async with topic_on() as broker, member_on(broker, settings=SETTINGS) as one:
        await broker.clock.advance(200)
        await broker.produce("a", "", 0, batch_of(b"v"))
        await next_delivery(broker, one)
        await broker.clock.advance(LEASE_MS + 200)
        assert owned(broker, one) == [[0]]
        again = await next_delivery(broker, one)
        assert again.runs[0].failures == 1
        one.extend([(again.token, 60_000)])
        async with member_on(broker) as two:
            await broker.clock.advance(200)
            assert owned(broker, one, two) == [[], [0]]
            assert (await next_delivery(broker, two)).runs[0].failures == 1


async def test_where_all_hang_a_partition_stays_and_its_record_is_a_dead_letter_in_the_end():
    async with two_members(1) as (broker, one, two):
        await broker.produce("a", "", 0, batch_of(b"poison"))
        holders = []
        while len(holders) < 5:
            [name] = [each for each in (one, two) if owned(broker, each)[0]]
            holders.append(name)
            await next_delivery(broker, name)
            await broker.clock.advance(LEASE_MS + 200)
        assert set(holders[:2]) == {one, two}
        assert await values_of(broker, "a.g.dlq") == [b"poison"]


async def test_a_lease_that_is_extended_moves_nothing():
    async with two_members(2) as (broker, one, two):
        before = owned(broker, one, two)
        await broker.produce("a", "", before[0][0], batch_of(b"v"))
        found = await next_delivery(broker, one)
        for _ in range(5):
            await broker.clock.advance(LEASE_MS - 100)
            one.extend([(found.token, 0)])
        assert owned(broker, one, two) == before
