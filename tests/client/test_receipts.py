"""A receipt is awaited as often as one likes, and cancelling who awaits it changes nothing."""

import asyncio

import pytest

from logbroker.client.outgoing_batch import OutgoingBatch
from logbroker.client.receipts import Part, Parts, PendingReceipt, PendingReceipts
from logbroker.config import Durability
from logbroker.errors import ExhaustedError
from logbroker.record.columns import Columns
from logbroker.record.receipt import Receipt

STORED = Receipt("t", "id", 3, 40, 2, 5, Durability.WRITTEN, True)


def batch_of(count: int) -> OutgoingBatch:
    return OutgoingBatch.of_columns(3, Columns([b"v"] * count), 100, 0)


async def test_awaiting_gives_the_receipt_itself():
    batch = batch_of(2)
    receipt = PendingReceipt(batch, 1)
    waiting = asyncio.ensure_future(receipt.__await__() and _await(receipt))
    await asyncio.sleep(0)
    assert not receipt.done()
    batch.answer(STORED)
    assert await waiting is receipt
    assert await receipt is receipt
    assert (receipt.topic, receipt.partition, receipt.offset) == ("t", 3, 41)
    assert (receipt.append_time_ms, receipt.durability, receipt.duplicate) == (5, "written", True)


async def _await(receipt: PendingReceipt) -> PendingReceipt:
    return await receipt


async def test_a_receipt_that_is_there_is_given_without_waiting():
    batch = batch_of(1)
    batch.answer(STORED)
    with pytest.raises(StopIteration) as ended:
        next(PendingReceipt(batch, 0).__await__())
    assert ended.value.value.offset == 40


def test_a_receipt_that_is_not_there_says_so():
    receipt = PendingReceipt(batch_of(1), 0)
    with pytest.raises(asyncio.InvalidStateError):
        _ = receipt.offset
    assert receipt.error() is None
    assert "open" in repr(receipt)


async def test_cancelling_one_who_waits_leaves_the_others_waiting():
    batch = batch_of(2)
    first, second = (asyncio.ensure_future(_await(PendingReceipt(batch, n))) for n in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    batch.answer(STORED)
    assert (await second).offset == 41
    assert first.cancelled()


async def test_errors_are_unseen_until_the_owner_of_each_record_has_met_them():
    batch = batch_of(2)
    waiting = asyncio.ensure_future(_await(PendingReceipt(batch, 0)))
    await asyncio.sleep(0)
    batch.answer(ExhaustedError("DISK_FULL", "full"))
    assert batch.has_unseen_error
    with pytest.raises(ExhaustedError):
        await waiting
    assert batch.has_unseen_error
    with pytest.raises(ExhaustedError):
        await PendingReceipt(batch, 1)
    assert not batch.has_unseen_error


async def test_many_records_have_a_receipt_a_batch_and_raise_the_first_error():
    good, bad = batch_of(2), batch_of(1)
    good.answer(STORED)
    assert await PendingReceipts([Part(good, 0, 2)]) == [STORED]
    bad.answer(ExhaustedError("DISK_FULL", "full"))
    both = PendingReceipts([Part(good, 0, 2), Part(bad, 0, 1)])
    with pytest.raises(ExhaustedError):
        await both
    assert [error.reason for error in both.errors()] == ["DISK_FULL"]
    assert not bad.has_unseen_error


async def test_records_that_share_a_batch_have_a_receipt_of_their_own():
    shared, parts = batch_of(6), Parts()
    for index in (1, 2, 5):
        parts.add(shared, index)
    shared.answer(STORED._replace(record_count=6))
    receipts = await parts.pending()
    assert [(each.base_offset, each.record_count) for each in receipts] == [(41, 2), (45, 1)]


async def test_an_error_is_seen_by_the_owner_of_a_part_and_not_by_the_others():
    shared = batch_of(3)
    shared.answer(ExhaustedError("DISK_FULL", "full"))
    with pytest.raises(ExhaustedError):
        await PendingReceipts([Part(shared, 0, 2)])
    assert shared.has_unseen_error
    with pytest.raises(ExhaustedError):
        await PendingReceipts([Part(shared, 2, 3)])
    assert not shared.has_unseen_error


def test_room_that_was_not_used_comes_back_when_the_batch_is_sealed():
    batch = OutgoingBatch(0)
    batch.granted_bytes = batch.left = 100
    batch.left -= 30
    batch.add(b"v", None, (), None, 0)
    assert batch.seal() == 70
    assert batch.granted_bytes == 30


def test_columns_appear_when_the_first_record_needs_them():
    batch = OutgoingBatch(0)
    batch.add(b"a", None, (), None, 9)
    batch.add(b"b", b"k", (), None, 9)
    assert batch.is_plain
    batch.add(b"c", None, (), 5, 9)
    batch.add(b"d", None, (), None, 11)
    assert batch.keys == [None, b"k", None, None]
    assert batch._timestamps == [9, 9, 5, 11]
