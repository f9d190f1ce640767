"""Which batch of a partition goes next, and what an answer means."""

import pytest

from logbroker.client.lane import SEQUENCES, Identity, Lane
from logbroker.client.outgoing_batch import OutgoingBatch
from logbroker.config import Durability
from logbroker.errors import (
    ConflictError,
    ExhaustedError,
    InvalidError,
    LogbrokerError,
    OutcomeUnknownError,
    UnavailableError,
)
from logbroker.record.columns import Columns
from logbroker.record.receipt import Receipt

GAP = ConflictError("SEQUENCE_GAP", "gap")
FULL = ExhaustedError("DISK_FULL", "full")
FAILED = UnavailableError("STORAGE_FAILED", "failed")
WRONG = InvalidError("BAD_BATCH", "wrong")
TOO_LARGE = InvalidError("RECORD_TOO_LARGE", "large")
NOBODY_THERE = UnavailableError("UNREACHABLE", "nobody")


def batch_of(count: int = 10) -> OutgoingBatch:
    return OutgoingBatch.of_columns(0, Columns([b"v"] * count), 100, 0)


def lane_with(count: int, *, max_under_way: int = 5) -> tuple[Lane, list[OutgoingBatch]]:
    lane = Lane(0, max_under_way=max_under_way, is_idempotent=True)
    batches = [batch_of() for _ in range(count)]
    for batch in batches:
        lane.push(batch)
    lane.follow(Identity(7, 0))
    return lane, batches


def start_all(lane: Lane) -> list[OutgoingBatch]:
    started = []
    while lane.may_go(now_ms=0):
        started.append(lane.start())
    return started


def receipt(offset: int = 0) -> Receipt:
    return Receipt("t", "id", 0, offset, 10, 1, Durability.SYNCED)


def test_batches_go_in_order_up_to_the_limit_with_sequences_that_follow():
    lane, batches = lane_with(4, max_under_way=3)
    assert start_all(lane) == batches[:3]
    assert [batch.sequence for batch in batches] == [0, 10, 20, None]
    lane.answer(batches[0], receipt())
    assert start_all(lane) == batches[3:]
    assert batches[3].sequence == 30


def test_sequences_wrap_at_32_bits():
    lane, batches = lane_with(2)
    lane._next_sequence = SEQUENCES - 10
    start_all(lane)
    assert [batch.sequence for batch in batches] == [SEQUENCES - 10, 0]


def test_what_can_pass_goes_again_from_there_with_the_same_sequences():
    lane, batches = lane_with(3)
    start_all(lane)
    assert lane.answer(batches[0], FULL)
    assert not lane.may_go(now_ms=0)
    lane.answer(batches[1], GAP)
    assert not lane.may_go(now_ms=0)
    lane.answer(batches[2], GAP)
    assert start_all(lane) == batches
    assert [batch.sequence for batch in batches] == [0, 10, 20]
    assert lane.identity == Identity(7, 0)


def test_a_gap_at_the_first_unresolved_batch_asks_for_a_new_producer_id():
    lane, batches = lane_with(3)
    start_all(lane)
    lane.answer(batches[0], receipt())
    lane.answer(batches[1], GAP)
    lane.answer(batches[2], GAP)
    assert lane.identity is None
    lane.follow(Identity(8, 0))
    assert start_all(lane) == batches[1:]
    assert [batch.sequence for batch in batches[1:]] == [0, 10]


def test_later_batches_are_numbered_anew_when_one_surely_failed():
    lane, batches = lane_with(3)
    start_all(lane)
    lane.answer(batches[0], TOO_LARGE)
    assert batches[0].error is TOO_LARGE
    lane.answer(batches[1], GAP)
    lane.answer(batches[2], GAP)
    assert lane.identity == Identity(7, 0)
    assert start_all(lane) == batches[1:]
    assert [batch.sequence for batch in batches[1:]] == [0, 10]


def test_a_lost_connection_sends_the_same_batches_again():
    lane, batches = lane_with(3, max_under_way=2)
    start_all(lane)
    lane.lose_connection()
    assert [batch.in_doubt for batch in batches] == [True, True, False]
    assert start_all(lane) == batches[:2]
    assert [batch.sequence for batch in batches] == [0, 10, None]


def test_batches_in_doubt_keep_their_sequences_when_an_earlier_one_fails():
    lane, batches = lane_with(2)
    start_all(lane)
    lane.lose_connection()
    lane.start()
    lane.answer(batches[0], TOO_LARGE)
    assert start_all(lane) == [batches[1]]
    assert batches[1].sequence == 10
    lane.answer(batches[1], GAP)  # it was not stored, then
    assert lane.identity is None


def test_sequences_that_the_broker_contradicts_are_given_up():
    for error in (WRONG, ConflictError("SEQUENCE_TOO_OLD", "old")):
        lane, batches = lane_with(2)
        lane.start()
        lane.answer(batches[0], error)
        assert lane.identity is None
        assert batches[0].error is error


@pytest.mark.parametrize(
    "happens, kind",
    [
        ([], UnavailableError),
        (["start"], OutcomeUnknownError),
        (["start", "lose"], OutcomeUnknownError),
        (["start", FULL], ExhaustedError),
        (["start", FAILED], OutcomeUnknownError),
        (["start", "lose", "start", FULL], OutcomeUnknownError),
    ],
)
def test_what_is_given_up_failed_only_if_it_surely_is_not_stored(happens, kind):
    lane, (batch,) = lane_with(1)
    for event in happens:
        match event:
            case "start":
                lane.start()
            case "lose":
                lane.lose_connection()
            case LogbrokerError():
                lane.answer(batch, event)
    lane.give_up(batch, NOBODY_THERE)
    assert isinstance(batch.error, kind)


def test_an_answer_that_comes_after_the_batch_was_given_up_changes_nothing():
    lane, batches = lane_with(2)
    lane.start()
    lane.give_up(batches[0], NOBODY_THERE)
    assert not lane.may_go(now_ms=0)
    lane.answer(batches[0], receipt())
    assert isinstance(batches[0].error, OutcomeUnknownError)
    assert start_all(lane) == batches[1:]
    assert batches[1].sequence == 10


def test_an_open_batch_goes_when_nothing_is_under_way_or_its_linger_is_over():
    lane, batches = lane_with(1)
    lane.open = OutgoingBatch(0, lingers_until_ms=100)
    start_all(lane)
    assert not lane.may_go(now_ms=99)
    assert lane.may_go(now_ms=100)
    lane.answer(batches[0], receipt())
    assert lane.may_go(now_ms=0)


def test_a_batch_with_an_expected_offset_goes_alone():
    lane, batches = lane_with(3)
    batches[1].expected_offset = 10
    assert start_all(lane) == batches[:1]
    lane.answer(batches[0], receipt())
    assert start_all(lane) == batches[1:2]
    lane.answer(batches[1], receipt(10))
    assert start_all(lane) == batches[2:]


def test_without_idempotence_batches_carry_no_sequences():
    lane = Lane(0, max_under_way=1, is_idempotent=False)
    first, second = batch_of(), batch_of()
    lane.push(first)
    lane.push(second)
    assert start_all(lane) == [first]
    lane.answer(first, FULL)
    assert start_all(lane) == [first]
    lane.answer(first, TOO_LARGE)
    assert start_all(lane) == [second]
    assert second.sequence == 0


def test_what_waits_is_counted_until_it_goes_and_again_when_it_comes_back():
    lane, batches = lane_with(3, max_under_way=2)
    lane.open = OutgoingBatch(0)
    lane.open.granted_bytes, lane.open.left = 50, 20
    assert lane.waiting_bytes == 330
    start_all(lane)
    assert lane.waiting_bytes == 130
    lane.answer(batches[0], receipt())
    assert lane.waiting_bytes == 130
    lane.lose_connection()
    assert lane.waiting_bytes == 230
