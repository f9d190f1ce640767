"""DeadLetterService over gRPC: what a group failed at, and the way back to it alone."""

import asyncio

import pytest

from logbroker.broker import dead_letter_view
from logbroker.storage.memory import MemoryEngine
from logbroker.testing.clock import ManualClock
from logbroker.v1 import consume_service_pb2, group_pb2
from logbroker.v1 import dead_letter_service_pb2 as pb
from logbroker.v1.group_service_pb2 import GetGroupRequest
from logbroker.v1.produce_service_pb2 import PublishRequest
from logbroker.v1.record_pb2 import Record
from logbroker.v1.records_pb2 import Header
from logbroker.v1.topic_service_pb2 import (
    CreateTopicRequest,
    DeleteTopicRequest,
    GetTopicRequest,
    TrimTopicRequest,
)

from .calls import ending, refusal, serving, until, until_no_stream
from .members import ACK, REJECT, member_of, member_on, publish

NONE = group_pb2.ORDER_NONE


def filter_of(**fields):
    return pb.DeadLetterFilter(**{"group": "g", "topic": "a", **fields})


async def letters(calls, **fields):
    request = pb.ListDeadLettersRequest(filter=filter_of(**fields), with_resolved=True)
    return (await calls.dead_letters.ListDeadLetters(request)).dead_letters


async def redrive(calls, rate=0, dry_run=False, **fields):
    request = pb.StartRedriveRequest(
        filter=filter_of(**fields), records_per_second=rate, dry_run=dry_run
    )
    return (await calls.dead_letters.StartRedrive(request)).redrive


async def find(calls, redrive_id):
    request = pb.GetRedriveRequest(redrive_id=redrive_id)
    return (await calls.dead_letters.GetRedrive(request)).redrive


async def dead(calls, member, count, reason="bad", **fields):
    """Publishes so many records and lets the member reject them."""
    await publish(calls, *(b"%d" % number for number in range(count)), **fields)
    for delivered in await member.take(count):
        await member.settle(delivered, REJECT, reason=reason)


async def test_a_dead_letter_tells_where_it_came_from_and_keeps_all_it_had():
    clock = ManualClock()
    async with serving(partition_count=1, clock=clock) as calls, member_on(calls) as member:
        headers = [Header(name="x", value=b"\x00"), Header(name="x"), Header(name="y", value=b"")]
        record = Record(value=b"\xff\x00", key=b"", headers=headers, timestamp_ms=12)
        await calls.produce.Publish(PublishRequest(topic="a", records=[record]))
        await clock.advance(5_000)
        await member.settle(await member.delivery(), REJECT, reason="bad")
        [letter] = await letters(calls)
        assert (letter.dead_letter_topic, letter.state, letter.reason) == (
            "a.g.dlq",
            "parked",
            "bad",
        )
        assert (letter.source_topic, letter.source_offset, letter.timestamp_ms) == ("a", 0, 12)
        assert letter.dead_lettered_ms == letter.source_append_time_ms + 5_000
        request = pb.GetDeadLetterRequest(group="g", topic="a", offset=letter.offset)
        shown = await calls.dead_letters.GetDeadLetter(request)
        assert (shown.value, shown.dead_letter.key) == (b"\xff\x00", b"")
        assert list(shown.headers) == headers


async def test_a_redrive_brings_it_back_as_a_record_of_its_topic_with_fresh_failures():
    async with (
        serving(partition_count=1) as calls,
        member_on(calls) as member,
        member_on(calls, group="other") as other,
    ):
        await dead(calls, member, 3)
        for delivered in await other.take(3):
            await other.settle(delivered)
        started = await redrive(calls)
        assert started.selected_count == 3
        again = await member.delivery()
        told = again.delivery
        assert (told.topic, told.dead_letter_topic) == ("a", "a.g.dlq")
        assert again.values == [b"0", b"1", b"2"]
        assert [(each.redrives, each.failures) for each in told.ranges] == [(1, 0)]
        await member.settle(again, ACK, 0, 2)
        await member.settle(again, REJECT, 2, 3, reason="still bad")
        assert [letter.state for letter in await letters(calls)] == ["resolved"] * 2 + ["parked"]
        ended = await find(calls, started.redrive_id)
        counts = (ended.redriven_count, ended.resolved_count, ended.parked_again_count)
        assert (ended.state, counts) == ("done", (3, 2, 1))
        assert not other.deliveries
        found = await calls.groups.GetGroup(GetGroupRequest(group="g"))
        assert [each.parked_count for each in found.dead_letters] == [1]


@pytest.mark.parametrize(
    "fields, count",
    [
        ({}, 6),
        ({"limit": 2}, 2),
        ({"first_offset": 2, "end_offset": 5}, 3),
        ({"reason_contains": "time"}, 3),
        ({"key": b"odd"}, 2),
        ({"key": b"odd", "limit": 1}, 1),
        ({"partition": 1}, 0),
        ({"until_ms": 5}, 0),
        ({"from_ms": 5}, 6),
    ],
)
async def test_a_redrive_is_about_exactly_what_its_filter_and_limit_say(fields, count):
    async with serving(partition_count=2) as calls, member_on(calls) as member:
        await dead(calls, member, 3, reason="timeout", keys=[b"even", b"odd", b"even"])
        await dead(calls, member, 3, reason="bad", keys=[b"even", b"odd", b"even"])
        assert (await redrive(calls, dry_run=True, **fields)).selected_count == count
        started = await redrive(calls, **fields)
        assert started.selected_count == count
        if count:
            await member.take(count)
        ended = await find(calls, started.redrive_id)
        assert (ended.state, ended.redriven_count) == ("done", count)


async def test_a_redrive_with_a_rate_takes_its_time_survives_a_restart_and_is_cancelled():
    clock = ManualClock()
    engine = MemoryEngine(clock)
    async with serving(partition_count=1, engine=engine, clock=clock) as calls:
        member = await member_of(calls, order=NONE)
        await dead(calls, member, 50)
        started = await redrive(calls, rate=10)
        refused = calls.dead_letters.StartRedrive(pb.StartRedriveRequest(filter=filter_of()))
        assert await refusal(refused) == ("ABORTED", "REDRIVE_RUNNING")
        await clock.advance(1_000)
        before = await find(calls, started.redrive_id)
        assert (before.state, 10 <= before.redriven_count <= 12) == ("running", True)
        await member.leave()
    async with serving(topic="", engine=engine.reopened(), clock=clock) as calls:
        await clock.advance(1_000)
        later = await find(calls, started.redrive_id)
        assert before.redriven_count + 10 <= later.redriven_count <= before.redriven_count + 12
        request = pb.CancelRedriveRequest(redrive_id=started.redrive_id)
        await calls.dead_letters.CancelRedrive(request)
        await clock.advance(1_000)
        ended = await find(calls, started.redrive_id)
        assert (ended.state, ended.redriven_count) == ("cancelled", later.redriven_count)
        listed = await calls.dead_letters.ListRedrives(pb.ListRedrivesRequest(group="g"))
        assert [each.redrive_id for each in listed.redrives] == [started.redrive_id]


async def test_resolved_dead_letters_are_not_delivered_and_copies_leave_them_parked():
    async with serving(partition_count=1) as calls, member_on(calls) as member:
        await calls.topics.CreateTopic(CreateTopicRequest(topic="b"))
        await dead(calls, member, 4, keys=[b"k"] * 4)
        copy = pb.CopyDeadLettersRequest(filter=filter_of(limit=3), to_topic="b")
        assert (await calls.dead_letters.CopyDeadLetters(copy)).count == 3
        async with member_on(calls, group="h", topics=["b"]) as reader:
            assert (await reader.delivery()).values == [b"0", b"1", b"2"]
        resolve = pb.ResolveDeadLettersRequest(filter=filter_of(end_offset=3))
        assert (await calls.dead_letters.ResolveDeadLetters(resolve)).count == 3
        assert (await redrive(calls)).selected_count == 1
        assert (await member.delivery()).values == [b"3"]
        copy = pb.CopyDeadLettersRequest(filter=filter_of(), to_topic="a.g.dlq")
        call = calls.dead_letters.CopyDeadLetters(copy)
        assert await refusal(call) == ("INVALID_ARGUMENT", "INVALID_ARGUMENT")


async def test_a_filter_that_can_mean_nothing_is_refused_and_says_why():
    async with serving(partition_count=1) as calls, member_on(calls) as member:
        await dead(calls, member, 1)
        for fields, expected in [
            ({"partition": 7}, ("NOT_FOUND", "PARTITION_NOT_FOUND")),
            ({"topic": "a.g.dlq"}, ("NOT_FOUND", "TOPIC_NOT_FOUND")),
            ({"topic": ""}, ("INVALID_ARGUMENT", "INVALID_ARGUMENT")),
            ({"group": ""}, ("NOT_FOUND", "GROUP_NOT_FOUND")),
            ({"group": "h"}, ("NOT_FOUND", "GROUP_NOT_FOUND")),
            ({"first_offset": 5, "end_offset": 4}, ("INVALID_ARGUMENT", "INVALID_ARGUMENT")),
            ({"limit": -1}, ("INVALID_ARGUMENT", "INVALID_ARGUMENT")),
        ]:
            for request in (
                pb.ListDeadLettersRequest(filter=filter_of(**fields)),
                pb.StartRedriveRequest(filter=filter_of(**fields)),
                pb.ResolveDeadLettersRequest(filter=filter_of(**fields)),
            ):
                name = type(request).__name__.removesuffix("Request")
                assert await refusal(getattr(calls.dead_letters, name)(request)) == expected, name
        request = pb.ListDeadLettersRequest(filter=filter_of(topic="a.g.dlq"))
        _, _, message = await ending(calls.dead_letters.ListDeadLetters(request))
        assert "name that topic" in message
        for token in ("x", "0", "0:x", "-1:0", "0:-1", "1:2:3"):
            request = pb.ListDeadLettersRequest(filter=filter_of(), page_token=token)
            call = calls.dead_letters.ListDeadLetters(request)
            assert await refusal(call) == ("INVALID_ARGUMENT", "INVALID_ARGUMENT"), token


async def test_a_dry_run_counts_also_while_a_redrive_of_the_same_records_runs():
    async with serving(partition_count=1) as calls, member_on(calls) as member:
        await dead(calls, member, 10)
        await redrive(calls, rate=0.001)
        await until(lambda: calls.broker.dead_letters.list_redrives("g")[0].redrive.redriven == 1)
        assert (await redrive(calls, dry_run=True)).selected_count == 9


async def test_a_redrive_by_mistake_is_taken_back_but_for_what_members_hold():
    async with serving(partition_count=1) as calls:
        async with member_on(calls) as member:
            await dead(calls, member, 5)
        await redrive(calls, limit=4)
        await until(lambda: calls.broker.dead_letters.list_redrives("g")[0].redrive.state == "done")
        async with member_on(calls, limits=1) as member:
            held = await member.delivery()
            assert held.values == [b"0"]
            resolve = pb.ResolveDeadLettersRequest(filter=filter_of())
            assert (await calls.dead_letters.ResolveDeadLetters(resolve)).count == 4
            states = [letter.state for letter in await letters(calls)]
            assert states == ["leased", *["resolved"] * 4]
            result = await member.settle(held)
            assert not result.HasField("error")
        assert {letter.state for letter in await letters(calls)} == {"resolved"}


async def test_a_redrive_of_nothing_is_done_at_once():
    async with serving(partition_count=1) as calls, member_on(calls) as member:
        await dead(calls, member, 3)
        started = await redrive(calls, reason_contains="of another kind")
        await until(lambda: calls.broker.dead_letters.list_redrives("g")[0].redrive.state == "done")
        ended = await find(calls, started.redrive_id)
        assert (ended.selected_count, ended.redriven_count) == (0, 0)


async def test_what_somebody_published_among_dead_letters_is_seen_and_moved_as_they_are():
    async with serving(partition_count=1) as calls, member_on(calls) as member:
        await dead(calls, member, 1)
        await publish(calls, b"mine", topic="a.g.dlq")
        own, foreign = await letters(calls)
        assert (own.source_topic, foreign.source_topic, foreign.state) == ("a", "", "parked")
        assert "no group failed at it" in foreign.reason
        assert (await redrive(calls)).selected_count == 2
        assert [v for d in await member.take(2) for v in d.values] == [b"0", b"mine"]


async def test_a_page_ends_where_enough_was_looked_at_and_the_next_one_goes_on(monkeypatch):
    monkeypatch.setattr(dead_letter_view, "SCANNED_AT_ONCE", 10)
    async with serving(partition_count=2) as calls, member_on(calls) as member:
        for number in range(30):
            await dead(calls, member, 1, reason=f"reason {number}", partition=number % 2)
        found, token, pages = [], "", 0
        while not pages or token:
            request = pb.ListDeadLettersRequest(
                filter=filter_of(reason_contains="reason 2"), page_size=4, page_token=token
            )
            page = await calls.dead_letters.ListDeadLetters(request)
            found += [letter.reason for letter in page.dead_letters]
            token, pages = page.next_page_token, pages + 1
        assert sorted(found) == sorted(f"reason {at}" for at in (2, *range(20, 30)))
        assert pages > 4


async def test_dead_letters_are_listed_in_pages():
    async with serving(partition_count=1) as calls, member_on(calls) as member:
        await dead(calls, member, 5)
        token, found = "", []
        while not found or token:
            request = pb.ListDeadLettersRequest(filter=filter_of(), page_size=2, page_token=token)
            page = await calls.dead_letters.ListDeadLetters(request)
            token = page.next_page_token
            found.append([letter.offset for letter in page.dead_letters])
        assert found == [[0, 1], [2, 3], [4]]


async def test_what_fails_in_a_dead_letter_topic_stays_parked_there():
    async with serving(partition_count=1) as calls, member_on(calls) as member:
        await dead(calls, member, 1)
        async with member_on(calls, group="h", topics=["a.g.dlq"]) as reader:
            await reader.settle(await reader.delivery(), REJECT, reason="no")
            topics = {topic.topic for topic in calls.broker.list_topics(0, "")[0]}
            assert topics == {"a", "a.g.dlq"}
            [told] = await calls.broker.groups.progress("h")
            assert told.progress.parked == 1
        own = await member_of_own_dead_letters(calls)
        assert await refusal(own) == ("INVALID_ARGUMENT", "INVALID_ARGUMENT")


async def member_of_own_dead_letters(calls):
    call = calls.consume.Consume()
    opening = consume_service_pb2.OpenConsume(group="g", topics=["a.g.dlq"])
    await call.write(consume_service_pb2.ConsumeRequest(open=opening))
    return call


async def test_a_dead_letter_topic_that_is_deleted_is_made_again():
    async with serving(partition_count=2) as calls, member_on(calls) as member:
        await dead(calls, member, 2)
        await calls.topics.DeleteTopic(DeleteTopicRequest(topic="a.g.dlq"))
        async with member_on(calls, client_id="later"):
            await member.until(lambda: len(member.assignments) == 2)
        await member.until(lambda: len(member.assignments) == 3)
        await dead(calls, member, 1, reason="again")
        assert [letter.reason for letter in await letters(calls)] == ["again"]
        await redrive(calls)
        assert (await member.delivery()).values == [b"0"]


class BusyEngine(MemoryEngine):
    """Opening a dead-letter topic takes it some turns of the loop."""

    async def open(self, partition, config):
        for _ in range(2_000 if partition.topic.endswith(".dlq") else 0):
            await asyncio.sleep(0)
        return await super().open(partition, config)


@pytest.mark.parametrize("how", ["reject", "vanish"])
async def test_members_that_need_a_dead_letter_topic_while_it_is_being_made_get_it_too(how):
    engine = BusyEngine(ManualClock())
    async with serving(partition_count=1, engine=engine) as calls:
        await publish(calls, *(b"%d" % number for number in range(10)))
        members = [await member_of(calls, order=NONE, max_failures=1, limits=1) for _ in range(10)]
        for member, held in [(each, await each.delivery()) for each in members]:
            if how == "vanish":
                member.vanish()
                continue
            one = consume_service_pb2.Settlement(
                token=held.token, first_offset=held.offsets[0], end_offset=held.offsets[0] + 1,
                outcome=REJECT,
            )  # fmt: skip
            settle = consume_service_pb2.Settlements(settlements=[one])
            await member.call.write(consume_service_pb2.ConsumeRequest(settle=settle))
        if how == "reject":
            for member in members:
                await member.until(lambda member=member: member.settled)
                assert not member.settled[0].HasField("error"), member.settled
                await member.leave()
        await until_no_stream(calls)
        [progress] = (await calls.groups.GetGroup(GetGroupRequest(group="g"))).progress
        assert (progress.lag, progress.leased_count) == (0, 0)
        assert len(await letters(calls)) == 10
        assert [one for one in calls.logs if one["log_level"] == "warning"] == []


async def test_dead_letters_outlive_the_retention_of_their_source_and_a_restart():
    engine = MemoryEngine(ManualClock())
    async with serving(partition_count=1, engine=engine) as calls, member_on(calls) as member:
        await dead(calls, member, 2)
        await calls.topics.TrimTopic(TrimTopicRequest(topic="a", partition=0, offset=2))
    async with (
        serving(topic="", engine=engine.reopened()) as calls,
        member_on(calls) as member,
    ):
        assert len(await letters(calls)) == 2
        topic = await calls.topics.GetTopic(GetTopicRequest(topic="a.g.dlq"))
        assert topic.topic.settings.retention_ms == 0
        await redrive(calls)
        assert (await member.delivery()).values == [b"0", b"1"]
        await until(lambda: calls.broker.stats().error_counts == {})
