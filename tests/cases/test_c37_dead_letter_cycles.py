"""C37: what fails in a dead-letter topic stays there; nothing goes round, nothing grows."""

import pytest
from server.calls import refusal, serving
from server.members import REJECT, RETRY, member_of, member_on, publish

from cases.grouped import calls_to, check_nothing_left, letters_of, make_topic
from logbroker.testing.clock import ManualClock
from logbroker.testing.running_broker import BrokerProcess
from logbroker.v1 import dead_letter_service_pb2 as dlq
from logbroker.v1 import group_pb2
from logbroker.v1.group_service_pb2 import ExplainRequest
from logbroker.v1.topic_service_pb2 import (
    CreateTopicRequest,
    DeleteTopicRequest,
    GetTopicRequest,
    ListTopicsRequest,
)

DEAD = "a.g.dlq"


async def topics_of(calls) -> list[str]:
    """Returns the names of all topics."""
    found = (await calls.topics.ListTopics(ListTopicsRequest())).topics
    return sorted(one.topic for one in found)


async def dead(calls, member, count) -> None:
    """Makes so many dead letters."""
    await publish(calls, *[b"%d" % number for number in range(count)])
    for delivered in await member.take(count):
        await member.settle(delivered, REJECT, reason="bad")


async def state_in(calls, offset, group="h", topic=DEAD) -> str:
    """Returns how a record stands with a group."""
    request = ExplainRequest(group=group, topic=topic, partition=0, offset=offset)
    return (await calls.groups.Explain(request)).state


async def end_of(calls, topic) -> int:
    """Returns the high watermark of the first partition."""
    return (await calls.topics.GetTopic(GetTopicRequest(topic=topic))).partitions[0].high_watermark


async def test_c37_a_group_cannot_read_its_own_dead_letters():
    async with serving(partition_count=1) as calls:
        async with member_on(calls) as member:
            await dead(calls, member, 1)
        with pytest.raises(Exception) as caught:  # noqa: PT011
            await member_of(calls, topics=("a", DEAD))
        assert caught.value.code().name == "INVALID_ARGUMENT"


@pytest.mark.parametrize("outcome", [RETRY, REJECT], ids=["retry", "reject"])
async def test_c37_what_fails_in_a_dead_letter_topic_is_parked_there_once(outcome):
    clock = ManualClock()
    async with serving(partition_count=1, clock=clock) as calls, member_on(calls) as member:
        await clock.advance(1_000)
        await dead(calls, member, 3)
        async with member_on(
            calls, group="h", topics=(DEAD,), max_failures=2, retry_initial_ms=1,
            order=group_pb2.ORDER_NONE,
        ) as other:  # fmt: skip
            for _ in range(6 if outcome == RETRY else 3):  # each brings one at least
                await clock.advance(1_000)
                held = await other.delivery()
                for offset in held.offsets:
                    await other.settle(held, outcome, offset, offset + 1)
                if (states := [await state_in(calls, at) for at in range(3)]) == ["parked"] * 3:
                    break
            assert states == ["parked"] * 3
            await clock.advance(100_000)
            assert not other.deliveries
        assert await end_of(calls, DEAD) == 3, "one copy"
        assert await topics_of(calls) == ["a", DEAD], "and no other topic"
        assert len(await letters_of(calls)) == 3, "the group that failed first sees no change"


async def test_c37_redrives_that_fail_for_ever_copy_nothing():
    async with serving(partition_count=1) as calls, member_on(calls) as member:
        await dead(calls, member, 3)
        for _ in range(10):
            which = dlq.DeadLetterFilter(group="g", topic="a")
            await calls.dead_letters.StartRedrive(dlq.StartRedriveRequest(filter=which))
            for held in await member.take(3):
                await member.settle(held, REJECT, reason="still bad")
        assert await end_of(calls, DEAD) == 3
        assert {letter.redrives for letter in await letters_of(calls)} == {10}
        assert await topics_of(calls) == ["a", DEAD]
        await check_nothing_left(calls)


async def test_c37_a_copy_into_the_dead_letter_topic_itself_is_refused():
    async with serving(partition_count=1) as calls, member_on(calls) as member:
        await dead(calls, member, 1)
        which = dlq.DeadLetterFilter(group="g", topic="a")
        request = dlq.CopyDeadLettersRequest(filter=which, to_topic=DEAD)
        code, _ = await refusal(calls.dead_letters.CopyDeadLetters(request))
        assert code in {"INVALID_ARGUMENT", "FAILED_PRECONDITION"}
        assert await end_of(calls, DEAD) == 1


async def test_c37_a_dead_letter_topic_that_is_deleted_in_use_is_made_again_and_drops_nothing():
    async with serving(partition_count=1) as calls, member_on(calls) as member:
        await dead(calls, member, 2)
        await calls.topics.DeleteTopic(DeleteTopicRequest(topic=DEAD))
        await publish(calls, b"next")
        await member.settle(await member.delivery(), REJECT, reason="bad")
        [letter] = await letters_of(calls)
        assert letter.source_offset == 2
        assert await end_of(calls, DEAD) == 1
        await check_nothing_left(calls)


async def test_c37_a_name_that_another_topic_has_keeps_the_record_where_it_is_and_says_so():
    clock = ManualClock()
    async with serving(partition_count=1, clock=clock) as calls:
        async with member_on(calls, lease_ms=1_000, max_failures=1) as member:
            await publish(calls, b"m")
            await clock.advance(1_000)
            held = await member.delivery()
            await calls.topics.CreateTopic(CreateTopicRequest(topic=DEAD, partition_count=1))
            refused = await member.settle(held, REJECT, reason="bad")
            assert refused.error.reason == "TOPIC_ALREADY_EXISTS"
            assert await end_of(calls, DEAD) == 0
            for _ in range(3):
                await clock.advance(10_000)
                assert await state_in(calls, 0, "g", "a") == "leased", "slowly tried again"
            await calls.topics.DeleteTopic(DeleteTopicRequest(topic=DEAD))
            await clock.advance(10_000)
            assert await state_in(calls, 0, "g", "a") == "dead_lettered"
            assert await end_of(calls, DEAD) == 1
        [letter] = await letters_of(calls)
        assert letter.reason.startswith("lease expired")
        await check_nothing_left(calls)


@pytest.mark.slow
async def test_c37_a_topic_deleted_in_use_and_kills_leave_each_record_given_up_since_once(tmp_path):
    with BrokerProcess(tmp_path / "data") as broker:
        for round_number in range(3):
            async with calls_to(broker.address) as calls:
                if not round_number:
                    await make_topic(calls)
                member = await member_of(calls)
                await dead(calls, member, 5)
                await calls.topics.DeleteTopic(DeleteTopicRequest(topic=DEAD))
                assert not await letters_of(calls)
                await dead(calls, member, 5)
                broker.kill()
            broker.start()
            async with calls_to(broker.address) as calls:
                first = 10 * round_number + 5
                offsets = [letter.source_offset for letter in await letters_of(calls)]
                assert offsets == list(range(first, first + 5))
                assert await end_of(calls, DEAD) == 5
                await check_nothing_left(calls)
