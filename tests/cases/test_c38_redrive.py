"""C38: a redrive gives back to the group exactly what it failed at, and as it was."""

import pytest
from broker.brokers import records_of
from server.calls import serving
from server.members import REJECT, RETRY, member_on, publish

from cases.grouped import check_nothing_left, letters_of, settle_each
from logbroker.storage.memory import MemoryEngine
from logbroker.testing.clock import ManualClock
from logbroker.v1 import dead_letter_service_pb2 as dlq
from logbroker.v1 import group_pb2
from logbroker.v1.produce_service_pb2 import PublishRequest
from logbroker.v1.record_pb2 import Record
from logbroker.v1.records_pb2 import Header
from logbroker.v1.topic_pb2 import TopicSettings
from logbroker.v1.topic_service_pb2 import CreateTopicRequest, GetTopicRequest, UpdateTopicRequest

DAY_MS = 60_000
"""A short one: housekeeping works through it."""
COUNT = 10
KEY = group_pb2.ORDER_KEY


def record_of(topic: str, number: int) -> Record:
    """A record with everything a record can have."""
    headers = [
        Header(name="twice", value=b"\x00\xff"),
        Header(name="twice", value=b""),
        Header(name="null"),
        Header(name="trace", value=b"%d" % number),
    ]
    key = [b"\xff\x00", b"", b"k"][number % 3]
    value = b"\x00\x80" + topic.encode() + b"%d" % number
    return Record(value=value, key=key, headers=headers, timestamp_ms=1_000 + number)


async def start_redrive(calls, **fields):
    which = dlq.DeadLetterFilter(**{"group": "g", **fields})
    return (await calls.dead_letters.StartRedrive(dlq.StartRedriveRequest(filter=which))).redrive


async def test_c38_each_dead_letter_goes_back_to_its_topic_as_it_was():
    async with serving(topic="", partition_count=2) as calls:
        sent: dict[str, list[Record]] = {}
        for topic in ("a", "b"):
            await calls.topics.CreateTopic(CreateTopicRequest(topic=topic, partition_count=2))
            sent[topic] = [record_of(topic, number) for number in range(COUNT)]
            for number, record in enumerate(sent[topic]):
                await calls.produce.Publish(
                    PublishRequest(topic=topic, partition=number % 2, records=[record])
                )
        async with member_on(calls, topics=("a", "b"), order=KEY, max_failures=2) as member:
            count = 0
            while count < 2 * COUNT:
                delivered = await member.delivery()
                count += len(delivered.records)
                await settle_each(member, delivered, REJECT)
            for topic in ("a", "b"):
                letters = await letters_of(calls, topic=topic)
                assert len(letters) == COUNT, "one copy of each"
                for letter in letters:
                    original = sent[topic][letter.source_offset * 2 + letter.partition]
                    shown = await calls.dead_letters.GetDeadLetter(
                        dlq.GetDeadLetterRequest(
                            group="g", topic=topic, partition=letter.partition,
                            offset=letter.offset,
                        )
                    )  # fmt: skip
                    assert (shown.value, letter.key) == (original.value, original.key)
                    assert list(shown.headers) == list(original.headers)
                    assert letter.timestamp_ms == original.timestamp_ms
                started = await start_redrive(calls, topic=topic)
                assert started.selected_count == COUNT
            came: dict[str, list[bytes]] = {"a": [], "b": []}
            while sum(map(len, came.values())) < 2 * COUNT:
                delivered = await member.delivery()
                told = delivered.delivery
                assert told.dead_letter_topic == f"{told.topic}.g.dlq"
                assert {(one.failures, one.redrives) for one in told.ranges} == {(0, 1)}
                came[told.topic] += delivered.values
                await settle_each(member, delivered)
            for topic, values in came.items():
                assert sorted(values) == sorted(record.value for record in sent[topic])
                for partition in range(2):
                    of_partition = sent[topic][partition::2]
                    for key in {record.key for record in of_partition}:
                        in_order = [record.value for record in of_partition if record.key == key]
                        assert [value for value in values if value in in_order] == in_order
                assert not await letters_of(calls, topic=topic), "all are resolved"
        await check_nothing_left(calls)


async def test_c38_a_record_that_times_out_and_is_retried_is_one_dead_letter():
    clock = ManualClock()
    async with (
        serving(partition_count=1, clock=clock) as calls,
        member_on(calls, lease_ms=2_000, max_failures=1) as member,
    ):
        await publish(calls, b"m")
        await clock.advance(1_000)
        held = await member.delivery()
        await clock.advance(2_001)
        await member.until(lambda: member.taken_back)
        for outcome in (RETRY, REJECT):
            assert (await member.settle(held, outcome)).error.reason == "LEASE_LOST"
        [letter] = await letters_of(calls)
        assert letter.failures == 1
        found = await calls.topics.GetTopic(GetTopicRequest(topic="a.g.dlq"))
        assert [one.high_watermark for one in found.partitions] == [1]


async def test_c38_after_a_redrive_attempts_begin_anew_and_there_is_no_bounce():
    clock = ManualClock()
    async with (
        serving(partition_count=1, clock=clock) as calls,
        member_on(calls, max_failures=3, retry_initial_ms=1, order=KEY) as member,
    ):
        await publish(calls, b"m")
        for redrives in range(3):
            for failures in range(3):
                await clock.advance(1_000)
                held = await member.delivery()
                [told] = held.delivery.ranges
                assert (told.failures, told.redrives) == (failures, redrives)
                await member.settle(held, RETRY, reason=f"{redrives}/{failures}")
            [letter] = await letters_of(calls)
            assert letter.redrives == redrives
            await start_redrive(calls, topic="a")
        found = await calls.topics.GetTopic(GetTopicRequest(topic="a.g.dlq"))
        assert [one.high_watermark for one in found.partitions] == [1], "one copy, for good"


async def test_c38_a_dead_letter_that_failed_again_says_why_it_failed_last():
    clock = ManualClock()
    engine = MemoryEngine(clock)
    async with (
        serving(partition_count=1, engine=engine, clock=clock) as calls,
        member_on(calls, order=KEY, max_failures=2, retry_initial_ms=1) as member,
    ):
        await publish(calls, b"m", b"other", keys=[b"k", b"l"])
        for at, reason in enumerate(("first", "second", "third")):
            await clock.advance(1_000)
            for failures in range(2):
                held = await member.delivery()
                if at == failures == 0:
                    await member.settle(held, REJECT, 1, 2, reason="never again")
                offset = held.offsets[0]
                await member.settle(held, RETRY, offset, offset + 1, reason=f"{reason} {failures}")
                await clock.advance(1_000)
            failed_ms = clock.now_ms() - 1_000
            [letter] = await letters_of(calls, key=b"k")
            told = (letter.reason, letter.failures, letter.redrives, letter.last_failure_ms)
            assert told == (f"{reason} 1", 2, at, failed_ms)
            await start_redrive(calls, topic="a", reason_contains=reason)
            [letter] = await letters_of(calls, reason_contains=reason)
            assert letter.redrives == at + 1, "and until it fails again, or is resolved"
        held = await member.delivery()
        await member.settle(held)
    for resolved in ({0: "third 1", 1: "never again"}, {0: "third 1", 1: "never again"}):
        engine = engine.reopened()
        async with serving(topic="", engine=engine, clock=clock) as calls:
            which = dlq.DeadLetterFilter(group="g", topic="a")
            request = dlq.ListDeadLettersRequest(filter=which, with_resolved=True)
            found = (await calls.dead_letters.ListDeadLetters(request)).dead_letters
            assert {one.source_offset: one.reason for one in found} == resolved
            assert {one.source_offset: one.redrives for one in found} == {0: 3, 1: 0}
            stored = await records_of(calls.broker, "a.g.dlq")
            reasons = [h.value for r in stored for h in r.headers if h.name.endswith("-reason")]
            assert sorted(reasons) == [b"first 1", b"never again"], "as written"


@pytest.mark.parametrize("limit", [1, 3])
async def test_c38_limit_and_filter_are_exact(limit):
    async with serving(partition_count=1) as calls, member_on(calls, order=KEY) as member:
        await publish(calls, *(b"%d" % at for at in range(6)), keys=[b"x", b"y"] * 3)
        for _ in range(6):
            if not (held := await member.delivery()):
                break
            for offset in held.offsets:
                reason = "timeout" if offset % 2 else "bad"
                await member.settle(held, REJECT, offset, offset + 1, reason=reason)
            if len(await letters_of(calls)) == 6:
                break
        started = await start_redrive(calls, topic="a", reason_contains="time", limit=limit)
        assert started.selected_count == limit
        came: list[bytes] = []
        while len(came) < limit:
            held = await member.delivery()
            came += held.values
            await settle_each(member, held)
        assert came == [b"1", b"3", b"5"][:limit], "oldest first"
        left = sorted(letter.source_offset for letter in await letters_of(calls))
        assert left == sorted({0, 1, 2, 3, 4, 5} - {int(value) for value in came})


async def test_c38_the_age_of_a_dead_letter_counts_from_its_dead_lettering():
    clock = ManualClock()
    async with serving(topic="", clock=clock) as calls:
        settings = TopicSettings(retention_ms=DAY_MS)
        await calls.topics.CreateTopic(
            CreateTopicRequest(topic="a", partition_count=1, settings=settings)
        )
        record = Record(value=b"old", timestamp_ms=clock.now_ms() - 2 * DAY_MS)
        await calls.produce.Publish(PublishRequest(topic="a", records=[record]))
        async with member_on(calls) as member:
            await clock.advance(1_000)
            await member.settle(await member.delivery(), REJECT)
            topic = "a.g.dlq"
            changed = TopicSettings(retention_ms=14 * DAY_MS)
            await calls.topics.UpdateTopic(UpdateTopicRequest(topic=topic, settings=changed))
            await clock.advance(13 * DAY_MS)
            await publish(calls, b"new")  # what is active is not removed
            [letter] = await letters_of(calls)
            assert letter.timestamp_ms == record.timestamp_ms, "kept as data"
            await start_redrive(calls, topic="a")
            await member.until(lambda: b"old" in [v for d in member.deliveries for v in d.values])
