"""Producers against a real broker in memory."""

import asyncio
from contextlib import suppress

import pytest

from client.brokers import RestartableBroker, client_of_broker, send_all, values_of
from logbroker.client import Client
from logbroker.config import LimitsConfig
from logbroker.errors import (
    InvalidError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    UnavailableError,
)
from logbroker.record.partitioner import partition_of
from logbroker.record.record import Header

SMALL = LimitsConfig(record_bytes=1_000, batch_bytes=70_000)


async def test_records_are_stored_in_the_order_they_were_sent():
    async with client_of_broker() as client, client.producer("t", max_batch_bytes=200) as producer:
        values = [b"%d" % number for number in range(1_000)]
        receipts = [await producer.send(value) for value in values]
        offsets = [(await receipt).offset for receipt in receipts]
        assert offsets == list(range(1_000))
        assert await values_of(client) == values


async def test_everything_of_a_record_comes_back():
    headers = [("k", b"1"), ("k", None), ("K", b"")]
    async with client_of_broker() as client, client.producer("t", codec="zstd") as producer:
        await producer.publish(None, b"", headers, 1_234)
        await producer.publish(bytearray(b"v"), memoryview(b"k"))
        await producer.publish(b"v")
        first, second, third = [record async for record in client.reader("t")]
        assert (first.key, first.value, first.timestamp_ms) == (b"", None, 1_234)
        assert first.headers == tuple(Header(*header) for header in headers)
        assert (second.key, second.value) == (b"k", b"v")
        assert (third.key, third.value, third.headers) == (None, b"v", ())


@pytest.mark.parametrize("kinds", ["vkv", "kvk", "vtv", "tkt", "hvk", "kkth"])
async def test_records_of_all_kinds_share_a_batch(kinds):
    options = {
        "v": {},
        "k": {"key": b"key"},
        "t": {"timestamp_ms": 77},
        "h": {"headers": [("h", b"x")]},
    }
    async with client_of_broker() as client, client.producer("t") as producer:
        for number, kind in enumerate(kinds):
            await producer.send(b"%d" % number, **options[kind])
        await producer.flush()
        records = [record async for record in client.reader("t")]
        assert [record.value for record in records] == [b"%d" % n for n in range(len(kinds))]
        for record, kind in zip(records, kinds, strict=True):
            assert record.key == (b"key" if kind == "k" else None)
            assert (record.timestamp_ms == 77) == (kind == "t")
            assert bool(record.headers) == (kind == "h")


async def test_keys_go_to_their_partition_and_an_explicit_one_wins():
    async with client_of_broker(12) as client, client.producer("t") as producer:
        keys = [b"", b"a", b"\xff\xfe", *(b"key-%d" % number for number in range(100))]
        for key in keys:
            receipt = await producer.send(b"v", key)
            assert receipt.partition == partition_of(key, 12)
            assert (await producer.send(b"v", key, partition=3)).partition == 3
        many = await (await producer.send_many([b"v"] * len(keys), keys))
        assert {each.partition for each in many} == {partition_of(key, 12) for key in keys}


async def test_records_without_a_key_are_spread_batch_by_batch():
    async with client_of_broker(3) as client, client.producer("t") as producer:
        partitions = [(await producer.publish(b"v")).partition for _ in range(9)]
        assert sorted(partitions) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


async def test_a_record_over_the_limit_is_refused_before_anything_is_sent():
    async with client_of_broker(limits=SMALL) as client, client.producer("t") as producer:
        before = await producer.send(b"a")
        with pytest.raises(InvalidError) as caught:
            await producer.send(b"v" * 1_001)
        assert caught.value.reason == "RECORD_TOO_LARGE"
        with pytest.raises(InvalidError, match="record 1 "):
            await producer.send_many([b"x", b"v" * 1_001])
        with pytest.raises(InvalidError, match="encode text first"):
            await producer.send("text")
        await producer.send(b"v" * 1_000)
        await before
        await producer.flush()
        assert await values_of(client) == [b"a", b"v" * 1_000]


async def test_batches_never_pass_the_brokers_limit():
    async with client_of_broker(limits=SMALL) as client:
        async with client.producer("t", max_batch_bytes=1 << 20) as producer:
            for number in range(3_000):
                await producer.send(b"v" * (number % 120), b"k" if number % 3 else None)
            await producer.send_many([b"v" * 990] * 300)
            for number in range(300):
                await producer.send(b"", headers=[("h", b"x" * (number % 50))], timestamp_ms=number)
        assert len(await values_of(client)) == 3_600


async def test_send_waits_for_room_and_goes_on_when_there_is():
    async with client_of_broker() as client:
        async with client.producer("t", buffer_bytes=32 << 10, max_batch_bytes=4_000) as producer:
            await send_all(producer, [b"v" * 1_000] * 500)
            await asyncio.gather(*(send_all(producer, [b"w" * 700] * 50) for _ in range(10)))
            assert producer._gatherer.buffer.held_bytes == 0
        assert len(await values_of(client)) == 1_000


async def test_an_expected_offset_is_kept_by_one_of_two_who_race():
    async with client_of_broker() as client, client.producer("t") as producer:
        await producer.publish(b"0", expected_offset=0)
        results = await asyncio.gather(
            *(producer.publish(b"1", expected_offset=1) for _ in range(3)), return_exceptions=True
        )
        assert [type(result).__name__ for result in results].count("PendingReceipt") == 1
        refused = [result for result in results if isinstance(result, PreconditionError)]
        assert [error.reason for error in refused] == ["UNEXPECTED_OFFSET"] * 2
        await producer.publish(b"2")
        assert await values_of(client) == [b"0", b"1", b"2"]


async def test_flush_raises_what_nobody_awaited_once():
    async with client_of_broker() as client:
        producer = client.producer("t")
        await producer.publish(b"a")
        await client.admin.delete_topic("t")
        await producer.send(b"b")
        with pytest.raises(NotFoundError):
            await producer.flush()
        await producer.flush()
        receipt = await producer.send(b"c")
        with pytest.raises(NotFoundError):
            await receipt
        await producer.close()


async def test_a_topic_made_anew_is_another_topic():
    async with client_of_broker() as client:
        producer = client.producer("t")
        await producer.publish(b"old")
        await client.admin.delete_topic("t")
        await client.admin.create_topic("t")
        with pytest.raises(PreconditionError) as caught:
            await producer.publish(b"old too")
        assert caught.value.reason == "TOPIC_RECREATED"
        await producer.abandon()
        assert await values_of(client) == []


async def test_a_topic_that_is_not_there_is_an_error_and_can_come_later():
    async with client_of_broker() as client, client.producer("later") as producer:
        with pytest.raises(NotFoundError):
            await producer.send(b"v")
        await client.admin.create_topic("later")
        await producer.publish(b"v")
        assert await values_of(client, "later") == [b"v"]


async def test_new_partitions_are_found_when_they_are_named():
    async with client_of_broker() as client, client.producer("t") as producer:
        await producer.publish(b"v")
        with pytest.raises(NotFoundError, match="no partition 2"):
            await producer.publish(b"v", partition=2)
        await client.admin.grow_topic("t", 3)
        assert (await producer.publish(b"v", partition=2)).partition == 2
        assert (await producer.publish(b"v", b"a")).partition == partition_of(b"a", 3)


async def test_a_closed_producer_and_a_closed_client_refuse():
    async with client_of_broker() as client:
        async with client.producer("t") as producer:
            await producer.send(b"v")
        with pytest.raises(PreconditionError) as caught:
            await producer.send(b"v")
        assert caught.value.reason == "CLIENT_CLOSED"
        other = client.producer("t")
        await other.send(b"w")
        await client.close()
        with pytest.raises(PreconditionError):
            await other.send(b"v")
        with pytest.raises(PreconditionError):
            client.producer("t")


async def test_closing_the_client_sends_what_its_producers_hold():
    async with RestartableBroker() as broker:
        async with Client(broker.address) as client:
            await client.admin.create_topic("t")
            producer = client.producer("t")
            for _ in range(100):
                await producer.send(b"v")
        async with Client(broker.address) as client:
            assert len(await values_of(client)) == 100


async def test_a_block_that_raises_still_sends_what_it_took():
    async with client_of_broker() as client:
        with suppress(ZeroDivisionError):
            async with client.producer("t") as producer:
                await producer.send(b"v")
                raise ZeroDivisionError
        assert await values_of(client) == [b"v"]


@pytest.mark.parametrize("idempotent", [True, False])
async def test_a_producer_lives_through_restarts_of_the_broker(idempotent):
    async with RestartableBroker() as broker, Client(broker.address) as client:
        await client.admin.create_topic("t")
        async with client.producer("t", idempotent=idempotent, max_batch_bytes=500) as producer:
            values = [b"%d" % number for number in range(300)]
            receipts = [await producer.send(value) for value in values[:100]]
            await receipts[0]
            await broker.stop()
            receipts += [await producer.send(value) for value in values[100:200]]
            await broker.start()
            receipts += [await producer.send(value) for value in values[200:]]
            for receipt in receipts:
                await receipt
            found = await values_of(client)
            assert list(dict.fromkeys(found)) == values
            assert len(found) == 300 or not idempotent


async def test_nothing_sent_is_unreachable_and_no_doubt():
    async with RestartableBroker() as broker, Client(broker.address, timeout_ms=1_500) as client:
        await client.admin.create_topic("t")
        producer = client.producer("t", delivery_timeout_ms=1_500)
        await producer.publish(b"v")
        await broker.stop()
        await asyncio.sleep(0.05)  # until the connection is known to be lost
        receipt = await producer.send(b"w")
        with pytest.raises((UnavailableError, OutcomeUnknownError)):
            await receipt
        await broker.start()
        await producer.publish(b"x")
        await producer.close()
        assert (await values_of(client))[-1] == b"x"


async def test_cancelling_who_sends_or_waits_loses_and_doubles_nothing():
    async with client_of_broker() as client, client.producer("t", max_batch_bytes=300) as producer:

        async def send_and_wait(number: int) -> None:
            await (await producer.send(b"%d" % number))

        tasks = [asyncio.create_task(send_and_wait(number)) for number in range(500)]
        for _ in range(3):
            await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await producer.flush()
        found = await values_of(client)
        assert len(found) == len(set(found))
        assert {b"%d" % number for number in range(1, 500, 2)} <= set(found)


@pytest.mark.parametrize(
    "options",
    [{"codec": "lz4"}, {"linger_ms": -1}, {"max_in_flight": 65}, {"max_batch_bytes": 0}],
)
async def test_settings_out_of_range_are_refused(options):
    client = Client()
    with pytest.raises(InvalidError) as caught:
        client.producer("t", **options)
    assert caught.value.reason == "INVALID_SETTING"


async def test_what_comes_while_requests_are_under_way_goes_in_few():
    async with client_of_broker() as client, client.producer("t") as producer:
        await producer.publish(b"0")
        delivery, sizes = producer._delivery, []
        add_request = delivery._under_way.add_request
        delivery._under_way.add_request = lambda request: (
            sizes.append(len(request)), add_request(request)
        )  # fmt: skip
        pending = [await producer.send_many([b"%d" % number]) for number in range(1, 30)]
        for each in pending:
            await each
        assert sum(sizes) == 29
        assert len(sizes) < 15
        assert await values_of(client) == [b"%d" % number for number in range(30)]


async def test_records_published_together_share_a_batch():
    async with client_of_broker() as client, client.producer("t") as producer:
        await producer.publish(b"0")
        for _ in range(3):
            await asyncio.gather(*(producer.publish(b"v") for _ in range(100)))
        assert len(await values_of(client)) == 301
        batches = [batch async for batch in client.reader("t").batches()]
        assert len(batches) <= 7


async def test_cancelling_who_publishes_ends_no_stream():
    async with client_of_broker() as client, client.producer("t") as producer:
        await producer.publish(b"0")
        for number in range(1, 20):
            task = asyncio.create_task(producer.publish(b"%d" % number))
            await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await producer.flush()
        assert producer._delivery._attempt == 0
        assert await values_of(client) == [b"%d" % number for number in range(20)]
