"""ConsumeService over gRPC, `partition` order: deliveries, answers, and what ends do."""

from logbroker.broker.member import CAUGHT_UP_DELAY_MS
from logbroker.storage.memory import MemoryEngine
from logbroker.testing.clock import ManualClock
from logbroker.v1 import group_pb2

from .calls import refusal, serving, until_no_stream
from .members import ACK, REJECT, RELEASE, RETRY, member_of, member_on, publish

PARTITION, KEY, NONE = group_pb2.ORDER_PARTITION, group_pb2.ORDER_KEY, group_pb2.ORDER_NONE


async def test_a_group_gets_all_in_order_and_goes_on_where_it_settled():
    async with serving(partition_count=1) as calls:
        await publish(calls, b"0", b"1", b"2")
        async with member_on(calls) as member:
            delivered = await member.delivery()
            assert member.assignments == [[("a", 0)]]
            assert delivered.records == [(0, b"0"), (1, b"1"), (2, b"2")]
            result = await member.settle(delivered, ACK, 0, 2)
            assert (result.committed_offset, result.HasField("error")) == (2, False)
        await publish(calls, b"3")
        async with member_on(calls) as member:
            again = await member.delivery()
            assert (again.records, again.numbers) == ([(2, b"2"), (3, b"3")], [2, 1])


async def test_what_was_settled_is_settled_after_a_restart_and_nothing_else_is():
    clock = ManualClock()
    engine = MemoryEngine(clock)
    async with serving(partition_count=1, engine=engine) as calls:
        await publish(calls, *(b"%d" % number for number in range(10)))
        async with member_on(calls) as member:
            delivered = await member.delivery()
            for first, end in ((0, 3), (4, 5), (6, 7)):
                await member.settle(delivered, ACK, first, end)
    engine = engine.reopened()
    async with serving(topic="", engine=engine) as calls, member_on(calls) as member:
        found = await member.take(7 - 2)
        assert [offset for each in found for offset in each.offsets] == [3, 5, 7, 8, 9]
        assert {number for each in found for number in each.numbers} == {2}


async def test_a_member_that_waits_gets_what_comes():
    async with serving(partition_count=1) as calls, member_on(calls) as member:
        await member.until(lambda: member.caught_up)
        assert member.caught_up == [("a", 0)]
        await publish(calls, b"new")
        assert (await member.delivery()).values == [b"new"]


async def test_no_more_is_outstanding_than_the_limit_says():
    async with serving(partition_count=1) as calls, member_on(calls, limits=2) as member:
        await publish(calls, b"0", b"1", b"2", b"3")
        first = await member.delivery()
        assert first.offsets == [0, 1]
        assert not member.deliveries
        await member.settle(first, ACK, 0, 1)
        assert (await member.delivery()).offsets == [2]
        await member.limit(3)
        assert (await member.delivery()).offsets == [3]


async def test_a_retry_holds_up_what_is_behind_it_and_takes_back_what_was_prefetched():
    clock = ManualClock()
    async with (
        serving(partition_count=1, clock=clock) as calls,
        member_on(calls, retry_initial_ms=1_000) as member,
    ):
        await publish(calls, b"0", b"1")
        await clock.advance(1_000)
        first = await member.delivery()
        await publish(calls, b"2")
        second = await member.delivery()
        await member.settle(first, RETRY, 0, 1, reason="not yet")
        await member.until(lambda: len(member.taken_back) == 2)
        assert member.taken_back == [(first.token, 1, 2), (second.token, 2, 3)]
        late = await member.settle(second)
        assert late.error.reason == "LEASE_LOST"
        await clock.advance(1_000)
        again = await member.take(3)
        assert [offset for each in again for offset in each.offsets] == [0, 1, 2]
        assert again[0].failures[0] == 1
        assert again[0].numbers[0] == 2


async def test_a_lease_that_expires_has_failed_and_its_token_is_worth_nothing():
    clock = ManualClock()
    async with (
        serving(partition_count=1, clock=clock) as calls,
        member_on(calls, lease_ms=2_000) as member,
    ):
        await publish(calls, b"0")
        await clock.advance(1_000)
        first = await member.delivery()
        assert not (await member.extend(first, 3_000)).HasField("error")
        await clock.advance(2_500)
        assert not member.taken_back
        await clock.advance(1_000)
        await member.until(lambda: member.taken_back)
        await clock.advance(1_000)
        second = await member.delivery()
        assert (second.numbers, second.failures) == ([2], [1])
        for late in (await member.settle(first), await member.extend(first)):
            assert late.error.reason == "LEASE_LOST"
        assert not (await member.settle(second)).HasField("error")
        assert not (await member.settle(second)).HasField("error")


async def test_a_partition_that_moves_is_taken_back_before_another_has_it():
    clock = ManualClock()
    async with serving(partition_count=2, clock=clock) as calls:
        await publish(calls, b"0", partition=0)
        await publish(calls, b"1", partition=1)
        async with member_on(calls) as one:
            await clock.advance(200)
            held = {each.delivery.partition: each for each in await one.take(2)}
            async with member_on(calls) as two:
                await clock.advance(200)
                moved = await two.delivery()
                partition = moved.delivery.partition
                await one.until(lambda: len(one.assignments) == 2)
                assert one.taken_back == [(held[partition].token, 0, 1)]
                assert two.assignments == [[("a", partition)]]
                assert moved.numbers == [2]
                assert (await one.settle(held[partition])).error.reason == "LEASE_LOST"
                assert not (await two.settle(moved)).HasField("error")
            await clock.advance(200)
            await one.until(lambda: len(one.assignments) == 3)
            assert one.assignments[-1] == [("a", 0), ("a", 1)]


async def test_a_member_is_told_anew_that_it_has_caught_up_on_a_partition_that_came_back():
    clock = ManualClock()
    async with serving(partition_count=2, clock=clock) as calls, member_on(calls) as one:
        await clock.advance(200)
        await one.until(lambda: len(one.caught_up) == 2)
        async with member_on(calls) as two:
            await clock.advance(200)
            await two.until(lambda: two.assignments)
            [moved] = two.assignments[0]
        one.caught_up.clear()
        await clock.advance(200)
        await one.until(lambda: len(one.assignments) == 3)
        await one.until(lambda: one.caught_up)
        assert one.caught_up == [moved]


async def test_a_member_is_told_anew_that_it_has_caught_up_after_each_answer_but_done():
    clock = ManualClock()
    async with serving(partition_count=1, clock=clock) as calls, member_on(calls) as member:
        await publish(calls, b"0", b"1", b"2")
        await clock.advance(200)
        first = await member.delivery()
        await clock.advance(CAUGHT_UP_DELAY_MS)
        await member.until(lambda: member.caught_up)
        member.caught_up.clear()
        await member.settle(first, REJECT, 1, 2)
        await clock.advance(CAUGHT_UP_DELAY_MS)
        await member.until(lambda: member.caught_up)
        member.caught_up.clear()
        await member.settle(first, RETRY, 2, 3, delay_ms=500)
        await clock.advance(400)
        await member.settle(first, ACK, 0, 1)
        assert not member.caught_up, "one is to be tried again"
        await clock.advance(200)
        assert (await member.delivery()).offsets == [2]
        await clock.advance(CAUGHT_UP_DELAY_MS)
        await member.until(lambda: member.caught_up)
        assert member.caught_up == [("a", 0)]


async def test_what_a_vanished_member_held_comes_one_by_one():
    clock = ManualClock()
    async with serving(partition_count=1, clock=clock) as calls:
        await publish(calls, b"0", b"1", b"2")
        member = await member_of(calls)
        await clock.advance(200)
        assert (await member.delivery()).offsets == [0, 1, 2]
        member.vanish()
        await until_no_stream(calls)
        async with member_on(calls) as member:
            await clock.advance(200)
            for offset in range(3):
                alone = await member.delivery()
                assert (alone.offsets, alone.failures) == ([offset], [0])
                await member.settle(alone)


async def test_a_release_comes_again_at_once_and_counts_no_failure():
    async with serving(partition_count=1) as calls, member_on(calls) as member:
        await publish(calls, b"0", b"1")
        first = await member.delivery()
        await member.settle(first, RELEASE)
        again = await member.delivery()
        assert (again.offsets, again.numbers, again.failures) == ([0, 1], [2], [0])


async def test_a_stream_of_a_deleted_topic_ends_with_not_found():
    from logbroker.v1.topic_service_pb2 import DeleteTopicRequest

    async with serving(partition_count=1) as calls:
        member = await member_of(calls)
        await calls.topics.DeleteTopic(DeleteTopicRequest(topic="a"))
        assert await refusal(member.call) == ("NOT_FOUND", "TOPIC_NOT_FOUND")
