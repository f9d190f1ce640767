"""What a producer is answered is what generated code reads."""

import pytest

from logbroker.config import Durability
from logbroker.errors import ConflictError
from logbroker.record.receipt import Receipt
from logbroker.v1 import produce_service_pb2 as pb
from logbroker.wire.convert import receipt_of
from logbroker.wire.produce_response import produce_response
from logbroker.wire.status import error_from

RECEIPTS = [
    Receipt("a", "id", 3, 1 << 62, 1 << 20, 1 << 41, durability, duplicate)
    for durability in Durability
    for duplicate in (False, True)
] + [Receipt("t" * 200, "i" * 32, 0, 0, 1, 0, Durability.WRITTEN)]


@pytest.mark.parametrize("message", [pb.ProduceResponse, pb.PublishResponse])
def test_receipts_and_errors_come_back_in_their_order(message):
    error = ConflictError("SEQUENCE_GAP", "sequence 1 comes next, not 3", expected_sequence=1)
    answers = [*RECEIPTS, error, *RECEIPTS]
    results = message.FromString(produce_response(answers)).results
    assert [one.WhichOneof("result") for one in results] == (
        ["receipt"] * len(RECEIPTS) + ["error"] + ["receipt"] * len(RECEIPTS)
    )
    assert [receipt_of(one.receipt) for one in results if one.HasField("receipt")] == RECEIPTS * 2
    (found,) = [error_from(one.error) for one in results if one.HasField("error")]
    assert (found.reason, str(found), found.details) == (error.reason, str(error), error.details)


def test_no_answers_are_an_empty_message():
    assert produce_response([]) == b""
