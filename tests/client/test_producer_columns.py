"""Columns of records: how a producer cuts, spreads and bounds them."""

import pytest

from client.brokers import RestartableBroker, client_of_broker, values_of
from logbroker.client import Client
from logbroker.client.delivery import REQUEST_BYTES, STREAM_BYTES
from logbroker.config import LimitsConfig
from logbroker.errors import InvalidError

SMALL = LimitsConfig(record_bytes=1_000, batch_bytes=70_000)


async def test_columns_are_stored_as_they_were_given():
    async with client_of_broker() as client, client.producer("t", max_batch_bytes=100) as producer:
        values = [b"%d" % number if number % 5 else None for number in range(100)]
        keys = [b"k%d" % number if number % 3 else None for number in range(100)]
        headers = [[("n", b"%d" % number)] if number % 7 == 0 else None for number in range(100)]
        receipts = await (await producer.send_many(values, keys, list(range(100)), headers))
        assert sum(receipt.record_count for receipt in receipts) == 100
        assert len(receipts) > 1
        records = [record async for record in client.reader("t")]
        assert [record.value for record in records] == values
        assert [record.key for record in records] == keys
        assert [record.timestamp_ms for record in records] == list(range(100))
        assert [len(record.headers) for record in records] == [1 if row else 0 for row in headers]
        assert await (await producer.send_many([])) == []


@pytest.mark.parametrize("is_last_null", [False, True])
async def test_columns_larger_than_a_batch_are_cut_and_keep_their_order(is_last_null):
    async with client_of_broker(limits=SMALL) as client, client.producer("t") as producer:
        values = [b"%d" % number + b"v" * (number % 900) for number in range(1_000)]
        values += [None] if is_last_null else [b""]
        keys = [b"%d" % number for number in range(1_001)]
        receipts = await (await producer.send_many(values, keys, list(range(1_001))))
        assert len(receipts) > 5
        records = [record async for record in client.reader("t")]
        assert [record.value for record in records] == values
        assert [record.key for record in records] == keys
        assert [record.timestamp_ms for record in records] == list(range(1_001))


async def test_no_record_of_columns_is_sent_if_one_is_too_large_or_no_bytes():
    async with client_of_broker(limits=SMALL) as client, client.producer("t") as producer:
        for wrong in (b"v" * 1_001, "text"):
            with pytest.raises(InvalidError):
                await producer.send_many([b"v" * 900] * 200 + [wrong])
        with pytest.raises(InvalidError, match="record 7 "):
            await producer.send_many([b"v" * 900] * 8, [b"k"] * 7 + [b"k" * 101])
        await producer.send_many([b"v" * 900] * 8, [bytearray(b"k" * 100)] * 8)
        await producer.flush()
        assert len(await values_of(client)) == 8


async def test_columns_whose_keys_spread_come_to_their_partitions_in_order():
    async with (
        client_of_broker(12) as client,
        client.producer("t", max_batch_bytes=500) as producer,
    ):
        values = [b"%d" % number if number % 7 else None for number in range(900)]
        keys = [b"%d" % (number % 50) if number % 11 else None for number in range(900)]
        pending = [
            await producer.send_many(values[at : at + 300], keys[at : at + 300])
            for at in (0, 300, 600)
        ]
        await producer.flush()
        found = {(one.partition, one.offset): one async for one in client.reader("t")}
        for number, each in enumerate(pending):
            receipts = await each
            mine = [
                found[receipt.partition, receipt.base_offset + index]
                for receipt in receipts
                for index in range(receipt.record_count)
            ]
            sent = zip(values, keys, strict=True)
            at = 300 * number
            assert sorted((one.key or b"", one.value or b"") for one in mine) == sorted(
                (key or b"", value or b"") for value, key in list(sent)[at : at + 300]
            )
        for key in {key for key in keys if key is not None}:
            in_order = [found[place].value for place in sorted(found) if found[place].key == key]
            assert in_order == [
                value for value, own in zip(values, keys, strict=True) if own == key
            ]


async def test_columns_whose_keys_spread_share_batches_while_they_wait():
    async with RestartableBroker() as broker, Client(broker.address) as client:
        await client.admin.create_topic("t", 12)
        async with client.producer("t") as producer:
            await producer.publish(b"0")
            await broker.stop()
            keys = [b"%d" % number for number in range(100)]
            pending = [await producer.send_many(keys, keys) for _ in range(20)]
            await broker.start()
            for each in pending:
                assert len(await each) == 12
            batches = [batch async for batch in client.reader("t").batches()]
            assert sum(batch.record_count for batch in batches) == 2_001
            assert len(batches) <= 1 + 2 * 12


async def test_all_partitions_together_have_a_bound_of_what_is_under_way():
    async with client_of_broker(12) as client, client.producer("t") as producer:
        await producer.publish(b"0")
        delivery, sizes = producer._delivery, []
        begin = delivery._send_request
        delivery._send_request = lambda writer: (
            begin(writer), sizes.append(delivery._under_way.size_bytes)
        )  # fmt: skip
        pending = [await producer.send_many([b"v" * 1_000_000]) for _ in range(48)]
        for each in pending:
            await each
        assert 0 < max(sizes) < STREAM_BYTES + REQUEST_BYTES
