"""Records that are published one by one: where they go, and what is told of each."""

import asyncio
import zlib

import pytest
from slow_engine import SlowEngine

from logbroker.broker.produce import NewRecord
from logbroker.errors import LogbrokerError
from logbroker.record.record import Header
from logbroker.testing.clock import ManualClock

from .brokers import SMALL, START_MS, records_of, topic_on, values_of


async def test_records_are_published_by_their_key_their_partition_or_in_turn():
    async with topic_on(partition_count=4) as broker:
        keyed = [NewRecord(key=key, value=key) for key in (b"", b"a", b"b", b"a")]
        receipts = await broker.publish("a", "", keyed)
        assert [receipt.partition for receipt in receipts] == [
            zlib.crc32(record.key) % 4 for record in keyed
        ]
        assert receipts[3].base_offset == receipts[1].base_offset + 1
        assert all(receipt.record_count == 1 for receipt in receipts)
        told = [NewRecord(key=b"a", partition=2), NewRecord(key=b"a")]
        assert [r.partition for r in await broker.publish("a", "", told, 1)] == [2, 1]
        turns = [(await broker.publish("a", "", [NewRecord(), NewRecord()])) for _ in range(8)]
        places = [[receipt.partition for receipt in turn] for turn in turns]
        assert all(one == other for one, other in places), "those of one call stay together"
        assert [places.count([number] * 2) for number in range(4)] == [2, 2, 2, 2]


async def test_a_published_record_keeps_what_it_has_and_gets_the_time_it_lacks():
    async with topic_on() as broker:
        headers = (Header("k", None), Header("k", b""))
        records = [
            NewRecord(value=None, key=b""),
            NewRecord(value=b"", headers=headers, timestamp_ms=-5),
        ]
        await broker.publish("a", "", records)
        one, two = await records_of(broker)
        assert (one.key, one.value, one.timestamp_ms, one.headers) == (b"", None, START_MS, ())
        assert (two.key, two.value, two.timestamp_ms, two.headers) == (None, b"", -5, headers)


@pytest.mark.parametrize(
    "records, more, reason",
    [
        ([], {}, "INVALID_ARGUMENT"),
        ([NewRecord(partition=0), NewRecord(partition=9)], {}, "PARTITION_NOT_FOUND"),
        ([NewRecord(partition=0), NewRecord(partition=-1)], {}, "PARTITION_NOT_FOUND"),
        ([NewRecord()], {"partition": 2}, "PARTITION_NOT_FOUND"),
        (
            [NewRecord(partition=0), NewRecord(partition=1, value=b"x" * 1_001)],
            {},
            "RECORD_TOO_LARGE",
        ),
        (
            [NewRecord(partition=0), NewRecord(partition=1)],
            {"expected_offset": 0},
            "INVALID_ARGUMENT",
        ),
        ([NewRecord(partition=0)], {"expected_offset": 5}, "UNEXPECTED_OFFSET"),
        ([NewRecord(partition=0)], {"expected_offset": -5}, "INVALID_OFFSET"),
        ([NewRecord(headers=(Header("h", b""),) * 4)], {}, "TOO_MANY_HEADERS"),
        ([NewRecord(headers=(Header("h" * 101, None),))], {}, "HEADER_TOO_LARGE"),
    ],
)
async def test_one_bad_record_and_nothing_is_stored(records, more, reason):
    async with topic_on(limits=SMALL, partition_count=2) as broker:
        with pytest.raises(LogbrokerError) as raised:
            await broker.publish("a", "", records, **more)
        assert raised.value.reason == reason
        assert broker.stats().appended_record_count == 0
        assert await values_of(broker) == []


async def test_what_fails_beside_what_is_stored_is_told_record_by_record():
    async with topic_on(SlowEngine(ManualClock()), partition_count=2) as broker:
        topic = broker.get_topic("a")
        good, bad = [await broker.engine.open(topic.partition(at), topic.settings) for at in (0, 1)]
        records = [NewRecord(partition=1), NewRecord(partition=0), NewRecord(partition=1)]
        publishing = asyncio.create_task(broker.publish("a", "", records))
        await asyncio.sleep(0)
        bad.fail()
        good.flush()
        one, two, three = await publishing
        assert [one.reason, three.reason] == ["STORAGE_FAILED"] * 2
        assert (two.partition, two.base_offset) == (0, 0)
