"""What becomes of a record that a group gave up, and who is there to take one."""

import pytest

from logbroker.broker.dead_letter_view import DeadLetterFilter
from logbroker.errors import NotFoundError
from logbroker.group.record_state import Cause
from logbroker.group.settings import GroupSettings, Order
from logbroker.testing.clock import ManualClock
from logbroker.topic.topic import TopicSettings

from .brokers import batch_of, broker_on, topic_on
from .grouped import delivered, member_on, settle
from .letters import StubbornEngine, reject

LETTERS = DeadLetterFilter(group="g", topic="a")


async def test_a_dead_letter_says_where_it_lies_and_how_it_stands_there():
    async with topic_on(partition_count=2) as broker:
        for _ in range(2):  # so that offsets differ
            await broker.produce("a", "", 1, batch_of(b"0", b"1", b"2"))
        async with member_on(broker) as member:
            token, *_ = await delivered(broker, member)
            await settle(broker, member, Cause.REJECT, token, 2, 3, reason="bad")
            await settle(broker, member, Cause.REJECT, token, 0, 1, reason="worse")
            await settle(broker, member, Cause.ACKNOWLEDGE, token, 1, 2)
            found = await broker.groups.explain("g", "a", 1, 0)
            assert found.state == "dead_lettered"
            assert found.details == {
                "dead_letter_topic": "a.g.dlq",
                "dead_letter_partition": 1,
                "dead_letter_offset": 1,
                "dead_letter_state": "parked",
                "reason": "worse",
            }
            assert all(word in found.message for word in ("a.g.dlq", "offset 1", "worse"))
            assert (await broker.groups.explain("g", "a", 1, 1)).state == "settled"
            other = await broker.groups.explain("g", "a", 1, 2)
            assert other.details["dead_letter_offset"] == 0
            there = await broker.groups.explain("g", "a.g.dlq", 1, 0)
            assert there.state == "parked"
            assert (there.details["source_topic"], there.details["source_offset"]) == ("a", 2)
            assert "bad" in there.message
            await broker.dead_letters.resolve(LETTERS)
            done = await broker.groups.explain("g", "a", 1, 0)
            assert (done.state, done.details["dead_letter_state"]) == ("settled", "resolved")


async def test_a_dead_letter_that_is_not_written_yet_is_one_and_so_is_one_of_many():
    clock = ManualClock()
    engine = StubbornEngine(clock)
    async with topic_on(engine, clock) as broker:
        await broker.produce("a", "", 0, batch_of(*[b"v"] * 2_000))
        async with member_on(broker, max_records=5_000) as member:
            for _ in range(2):
                token, first, end = await delivered(broker, member)
                await settle(broker, member, Cause.REJECT, token, first, end)
                if end == 2_000:
                    break
            engine.refused.add("a.g.dlq")
            await broker.produce("a", "", 0, batch_of(b"last"))
            await reject(broker, member, 2_000, 2_001)
            last = await broker.groups.explain("g", "a", 0, 2_000)
            assert (last.state, last.details) == ("dead_lettered", {})
            for offset in (0, 1, 1_999):
                found = await broker.groups.explain("g", "a", 0, offset)
                assert found.details["dead_letter_offset"] == offset
    async with broker_on(engine.reopened(), clock) as broker:
        assert (await broker.groups.explain("g", "a", 0, 2_000)).state == "dead_lettered"


@pytest.mark.parametrize("order", list(Order))
async def test_nobody_is_there_where_no_member_reads_the_topic(order):
    async with topic_on() as broker:
        await broker.create_topic("b", 1, TopicSettings())
        await broker.produce("a", "", 0, batch_of(b"0", b"1"))
        settings = GroupSettings(order=order)
        async with member_on(broker, settings=settings) as member:
            assert (await broker.groups.explain("g", "a", 0, 1)).state in (
                "available",
                "key_unknown",
            )
            token, *_ = await delivered(broker, member)
            await settle(broker, member, Cause.RELEASE, token, 0, 2)
        async with member_on(broker, topics=("b",)):  # which is another one
            assert (await broker.groups.explain("g", "a", 0, 1)).state == "no_member"
            told = {one.topic: one.waits_for for one in await broker.groups.progress("g")}
            assert told == {"a": "no_member", "b": ""}
        with pytest.raises(NotFoundError):
            await broker.groups.explain("h", "a", 0, 0)
