"""The stats: what was counted, and how things are."""

from logbroker.broker import group_admin
from logbroker.broker.dead_letter_view import DeadLetterFilter
from logbroker.broker.membership import MemberSpec
from logbroker.broker.offsets import Commit
from logbroker.group.record_state import Cause
from logbroker.group.retry_policy import Exhausted, RetryPolicy
from logbroker.group.settings import GroupSettings, Order
from logbroker.storage.memory import MemoryEngine
from logbroker.testing.clock import ManualClock

from .brokers import batch_of, broker_on, fetched, next_delivery, topic_on
from .grouped import member_on, settle


async def test_the_stats_count_what_was_done():
    async with topic_on(partition_count=3) as broker:
        await broker.clock.advance(1_234)
        batch = batch_of(b"1", b"2", producer_id=7)
        await broker.produce("a", "", 0, batch)
        await broker.produce("a", "", 0, batch)
        await fetched(broker)
        stats = broker.stats(open_stream_count=9)
        assert (stats.uptime_ms, stats.topic_count, stats.partition_count) == (1_234, 1, 3)
        assert (stats.appended_batch_count, stats.appended_record_count) == (1, 2)
        assert stats.duplicate_batch_count == 1
        assert stats.appended_bytes == stats.fetched_bytes == batch.header.size_bytes
        assert (stats.in_flight_bytes, stats.open_stream_count) == (0, 9)
        assert (stats.failed_partition_count, stats.damaged_topics, stats.error_counts) == (
            0,
            (),
            {},
        )


async def test_a_deleted_topic_is_gone_from_the_stats():
    async with topic_on(partition_count=3) as broker:
        await broker.delete_topic("a", "")
        stats = broker.stats()
        assert (stats.topic_count, stats.partition_count) == (0, 0)


async def test_the_stats_of_a_group_tell_how_it_is_and_what_it_has_failed_at():
    clock = ManualClock()
    engine = MemoryEngine(clock)
    settings = GroupSettings(order=Order.NONE, retry=RetryPolicy(initial_ms=60_000))
    async with topic_on(engine, clock, partition_count=2) as broker:
        await broker.produce("a", "", 0, batch_of(*[b"v"] * 10))
        await clock.advance(5_000)
        await broker.produce("a", "", 1, batch_of(*[b"v"] * 3))
        async with member_on(broker, settings=settings) as one, member_on(broker) as other:
            found = await next_delivery(broker, one)
            assert found.partition == 0
            await settle(broker, one, Cause.ACKNOWLEDGE, found.token, 0, 2)
            await settle(broker, one, Cause.RETRY, found.token, 2, 4)
            await settle(broker, one, Cause.REJECT, found.token, 4, 5)
            assert broker.stats().member_count == 2
            [stats] = await broker.group_stats()
            assert (stats.group, stats.member_count, stats.partition_count) == ("g", 2, 2)
            assert (stats.lag, stats.leased_count, stats.waiting_count) == (10, 5, 2)
            assert (stats.failure_count, stats.dead_letter_count, stats.parked_count) == (2, 1, 1)
            assert stats.age_ms >= 5_000
            await next_delivery(broker, other)
            [stats] = await broker.group_stats()
            assert (stats.lag, stats.leased_count) == (10, 8)
    async with broker_on(engine.reopened(), clock) as broker:
        [again] = await broker.group_stats()
        assert (again.lag, again.leased_count, again.member_count) == (10, 0, 0)
        assert (again.failure_count, again.dead_letter_count) == (2, 1), "a restart keeps counts"
        wanted = DeadLetterFilter(group="g", topic="a")
        await broker.dead_letters.resolve(wanted, is_discard=True)
        for offset in (10, 0):
            await broker.groups.commit_offsets("g", [Commit("a", "", 0, offset, False)])
        [again] = await broker.group_stats()
        assert (again.parked_count, again.discarded_count, again.reset_count) == (0, 1, 1)
        assert again.lag == 13


async def test_a_record_that_blocks_its_partition_is_told_as_blocked():
    async with topic_on() as broker:
        settings = GroupSettings(retry=RetryPolicy(exhausted=Exhausted.BLOCK))
        await broker.produce("a", "", 0, batch_of(b"0", b"1"))
        async with member_on(broker, settings=settings) as member:
            found = await next_delivery(broker, member)
            await settle(broker, member, Cause.REJECT, found.token, 0, 1)
            [stats] = await broker.group_stats()
            assert (stats.blocked_count, stats.parked_count, stats.dead_letter_count) == (1, 0, 0)


async def test_groups_are_counted_all_and_told_of_one_by_one_up_to_a_limit(monkeypatch):
    async with topic_on() as broker:
        for name in ("d", "b", "c", "a"):
            await broker.groups.create(name, GroupSettings())
        assert [one.group for one in await broker.group_stats()] == ["a", "b", "c", "d"]
        monkeypatch.setattr(group_admin, "GROUPS_IN_STATS", 3)
        assert [one.group for one in await broker.group_stats()] == ["a", "b", "c"]
        assert broker.stats().group_count == 4
        await broker.groups.delete("a")
        assert [one.group for one in await broker.group_stats()] == ["b", "c", "d"]


async def test_what_is_remembered_of_ages_does_not_outlive_groups():
    async with topic_on(partition_count=4) as broker:
        for partition in range(4):
            await broker.produce("a", "", partition, batch_of(b"v"))
        for number in range(20):
            group = f"g{number}"
            member = await broker.join(MemberSpec(group=group, topics=("a",)))
            await broker.leave(member, has_vanished=False)
            [stats] = await broker.group_stats()
            assert stats.lag == 4
            await broker.groups.delete(group, is_forced=True)
        assert len(broker._progress._append_times) <= 3 * 4
