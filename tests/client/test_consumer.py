"""Consumers against a scripted group: what is handed out, settled, dropped."""

import asyncio
import pickle
import sqlite3
from contextlib import suppress
from random import Random

import grpc
import pytest

from client.fake_group import TOPIC_ID, fake_group, stored, take, values
from logbroker.client import Client
from logbroker.errors import (
    ConflictError,
    InvalidError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    UnavailableError,
)
from logbroker.group.dead_letter import DeadLetter, with_dead_letter
from logbroker.record.record import Header, Record
from logbroker.testing.clock import ManualClock
from logbroker.v1 import consume_service_pb2 as pb
from logbroker.v1 import group_pb2


async def test_records_come_with_what_the_group_knows_of_them():
    async with fake_group() as (group, client), client.consumer("g", "t") as consumer:
        member = await group.member()
        numbers = {"delivery_number": 3, "failures": 2, "redrives": 1}
        ranges = [pb.LeasedRange(first_offset=7, end_offset=8, **numbers)]
        member.deliver(7, [b"v"], keys=[b"k"], partition=2, ranges=ranges)
        record = await anext(consumer)
        assert isinstance(record, Record)
        assert (record.offset, record.key, record.value, record.partition) == (7, b"k", b"v", 2)
        assert (record.delivery_number, record.failures, record.redrives) == (3, 2, 1)
        assert (record.topic, record.stable_id) == ("t", (TOPIC_ID, 2, 7))
        assert not record.lease_lost
        assert "delivery_number=3" in repr(record)
        assert pickle.loads(pickle.dumps(record)) == Record(*record[:6])


async def test_the_broker_is_told_who_comes_and_how_much_it_takes():
    async with fake_group() as (group, client):
        options = {"order": "partition", "client_id": "c", "instance_id": "i"}
        limits = {"max_outstanding_records": 5, "max_outstanding_bytes": 99}
        async with client.consumer("g", ["t", "u", "t"], **options, **limits) as consumer:
            member = await group.member()
            opening = member.opening
            assert (opening.group, list(opening.topics)) == ("g", ["t", "u"])
            assert (opening.client_id, opening.instance_id) == ("c", "i")
            assert opening.settings == group_pb2.GroupSettings(order=group_pb2.ORDER_PARTITION)
            assert opening.limits.max_outstanding_records == 5
            consumer.set_limits(0, 7)
            request = await member.requests.get()
            assert request.limits.HasField("max_outstanding_records")
            assert request.limits.max_outstanding_bytes == 7


async def test_in_partition_order_nothing_behind_a_retry_is_handed_out_before_it_is_through():
    async with fake_group() as (group, client), client.consumer("g", "t") as consumer:
        member = await group.member()
        member.confirms.clear()
        member.deliver(0, values(3))
        member.deliver(3, values(2, 3), token=2)
        member.deliver(0, values(1), token=3, partition=1)
        record = await anext(consumer)
        pending = consumer.retry(record, reason="no")
        other = await anext(consumer)
        assert (other.partition, other.offset) == (1, 0)
        member.take_back(1, 1, 3)
        member.take_back(2, 3, 5)
        member.confirms.set()
        await pending
        member.deliver(0, values(5), token=4)
        assert [record.offset for record in await take(consumer, 5)] == [0, 1, 2, 3, 4]


async def test_what_is_taken_back_is_not_handed_out():
    async with fake_group() as (group, client), client.consumer("g", "t") as consumer:
        member = await group.member()
        member.deliver(0, values(10))
        member.deliver(10, values(10, 10), token=2)
        first, second = await take(consumer, 2)
        member.take_back(1, 1, 4)
        member.take_back(1, 6, 7)
        member.take_back(2, 12, 20)
        member.deliver(90, values(1, 90), token=3)
        await consumer.acknowledge(first)  # what came before the answer is known then
        offsets = [record.offset for record in await take(consumer, 8)]
        assert offsets == [4, 5, 7, 8, 9, 10, 11, 90]
        assert not first.lease_lost
        assert second.lease_lost


async def test_after_a_lost_connection_it_joins_again_and_hands_out_nothing_it_lost():
    async with (
        fake_group() as (group, client),
        client.consumer("g", "t", auto_settle=False) as consumer,
    ):
        member = await group.member()
        member.confirms.clear()
        member.deliver(0, values(3))
        record = await anext(consumer)
        sent = consumer.acknowledge(record)
        await member.was_asked.wait()
        member.end()
        again = await group.member()
        again.deliver(0, values(1), token=9)
        assert (await anext(consumer)).run.lease.token == 9
        with pytest.raises(OutcomeUnknownError):
            await sent
        with pytest.raises(ConflictError):
            await consumer.acknowledge(record)
        assert consumer.stats().joined_count == 2


async def test_what_the_broker_refuses_for_good_is_raised():
    async with fake_group() as (group, client):
        group.error = grpc.StatusCode.NOT_FOUND, "no such topic"
        with pytest.raises(NotFoundError):
            async with client.consumer("g", "t"):
                pass


async def test_a_fenced_member_joins_again_and_one_that_was_replaced_does_not():
    async with (
        fake_group() as (group, client),
        client.consumer("g", "t") as free,
        client.consumer("g", "t", instance_id="i") as replaced,
    ):
        members = [await group.member(), await group.member()]
        for member in members:
            member.fence()
        with pytest.raises(ConflictError):
            await anext(replaced)
        again = await group.member()
        again.deliver(0, values(1))
        assert (await anext(free)).offset == 0


async def test_nobody_there_is_told_after_the_time():
    async with Client("127.0.0.1:1", timeout_ms=200) as client:
        with pytest.raises(UnavailableError):
            async with client.consumer("g", "t"):
                pass


async def test_cancelled_waits_lose_nothing():
    async with (
        fake_group(group_pb2.ORDER_NONE) as (group, client),
        client.consumer("g", "t") as consumer,
    ):
        member = await group.member()
        random, got = Random(7), []

        async def flow():
            for first in range(0, 500, 5):
                member.deliver(first, values(5, first), token=first + 1)
                await asyncio.sleep(0)

        flowing = asyncio.create_task(flow())
        while len(got) < 500:
            waiting = asyncio.create_task(anext(consumer))
            for _ in range(random.randrange(4)):
                await asyncio.sleep(0)
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                got.append((await waiting).offset)
        await flowing
        assert got == list(range(500))
        await consumer.commit()
        assert sorted(member.settled()) == list(range(500))


async def test_a_paused_partition_waits_and_others_go_on():
    async with (
        fake_group(group_pb2.ORDER_NONE) as (group, client),
        client.consumer("g", "t") as consumer,
    ):
        member = await group.member()
        member.deliver(0, values(3))
        member.deliver(0, values(2), token=2, partition=1)
        assert (await anext(consumer)).offset == 0
        consumer.pause("t", 0)
        assert [one.partition for one in await take(consumer, 2)] == [1, 1]
        consumer.resume("t", 0)
        assert [one.offset for one in await take(consumer, 2)] == [1, 2]
        assert consumer.positions() == {("t", 0): 1, ("t", 1): 2}


async def test_without_following_it_ends_when_the_group_has_caught_up():
    async with fake_group() as (group, client):
        consumer = client.consumer("g", "t", follow=False)
        consumer._partitions = {("t", 0)}
        async with consumer:
            member = await group.member()
            partitions = [group_pb2.TopicPartition(topic="t", partition=n) for n in range(2)]
            member.send(assignment=pb.Assignment(partitions=partitions))
            member.deliver(0, values(3))
            member.catch_up(0)
            member.deliver(0, values(1), token=2, partition=1)
            member.catch_up(1)
            assert len([record async for record in consumer]) == 4
            assert consumer.assignment == (("t", 0), ("t", 1))


async def test_leases_are_extended_while_records_are_asked_for_and_not_for_ever():
    clock = ManualClock()
    async with (
        fake_group(group_pb2.ORDER_NONE, 3_000, clock=clock) as (group, client),
        client.consumer("g", "t", max_processing_ms=5_000) as consumer,
    ):
        member = await group.member()
        member.deliver(0, values(2))
        member.deliver(9, values(2, 9), token=2)
        await consumer.acknowledge(await anext(consumer))  # both deliveries are there then
        for _ in range(4):
            await clock.advance(1_000)
            extensions = (await member.wait_for("extend")).extend.extensions
            assert [one.token for one in extensions] == [1, 2]
        for _ in range(5):
            await clock.advance(1_000)
        assert await member.wait_settled(2, pb.OUTCOME_RELEASE) == [9, 10]


async def test_a_redriven_record_comes_as_it_was():
    async with fake_group() as (group, client), client.consumer("g", "t") as consumer:
        member = await group.member()
        letter = DeadLetter("t", "old-id", 0, 41, 500, "g", 5, 600, 700, "no luck")
        own = (Header("h", b"1"),)
        batch = stored(3, [b"v"], headers=[(0, with_dead_letter(own, letter))])
        ranges = [pb.LeasedRange(first_offset=3, end_offset=4, delivery_number=1, redrives=1)]
        member.deliver(3, [b"v"], ranges=ranges, batches=[batch], dead_letter_topic="t.g.dlq")
        record = await anext(consumer)
        assert (record.offset, record.headers, record.topic) == (41, own, "t")
        assert record.stable_id == ("old-id", 0, 41)
        assert record.dead_letter == letter
        await consumer.acknowledge(record)
        assert member.settled() == [3]
        assert consumer.positions() == {}


async def test_damaged_records_are_rejected_and_others_go_on():
    async with fake_group() as (group, client), client.consumer("g", "t") as consumer:
        member = await group.member()
        bad = stored(0, values(2))
        bad.records_crc ^= 1
        ranges = [pb.LeasedRange(first_offset=0, end_offset=4, delivery_number=1)]
        member.deliver(0, values(4), ranges=ranges, batches=[bad, stored(2, values(2, 2))])
        assert [one.offset for one in await take(consumer, 2)] == [2, 3]
        assert await member.wait_settled(2, pb.OUTCOME_REJECT) == [0, 1]


async def test_what_is_wrong_is_refused_and_a_closed_consumer_says_so():
    async with fake_group() as (_, client):
        for wrong in ({"order": "no"}, {"settle": "no"}, {"max_outstanding_records": -1}):
            with pytest.raises(InvalidError):
                client.consumer("g", "t", **wrong)
        with pytest.raises(InvalidError):
            client.consumer("g", [])
        consumer = client.consumer("g", "t")
        await consumer.close()
        with pytest.raises(PreconditionError):
            await anext(consumer)


async def test_the_consumed_once_pattern_applies_a_record_once_however_often_it_comes():
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE consumed (stable_id TEXT PRIMARY KEY)")
    database.execute("CREATE TABLE total (amount INTEGER)")
    database.execute("INSERT INTO total VALUES (0)")
    async with fake_group() as (group, client), client.consumer("g", "t") as consumer:
        member = await group.member()
        member.deliver(0, values(3))
        member.deliver(0, values(4), token=2)
        for record in await take(consumer, 7):
            with database:
                insert = "INSERT INTO consumed VALUES (?) ON CONFLICT DO NOTHING"
                if database.execute(insert, [str(record.stable_id)]).rowcount:
                    add = "UPDATE total SET amount = amount + ?"
                    database.execute(add, [int(record.value)])
    assert database.execute("SELECT amount FROM total").fetchone() == (6,)
    database.close()
