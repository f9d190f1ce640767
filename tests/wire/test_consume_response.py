"""A ConsumeResponse is read by its layout as generated code reads it."""

import pytest
from google.protobuf.message import DecodeError

from logbroker.group.ledger import DeliveredRun
from logbroker.record.columns import Columns, encode_batch
from logbroker.v1 import consume_service_pb2 as pb
from logbroker.v1.group_pb2 import TopicPartition
from logbroker.wire.consume_response import delivery_fields, read_consume_response

BATCHES = [
    encode_batch(Columns([b"x" * count]), now_ms=1).stamped(base_offset=count, append_time_ms=-7)
    for count in (0, 1, 300, 70_000)
]
RUN = b"".join(batch.encode(seed=5) for batch in BATCHES)
FIELDS = pb.ConsumeResponse(
    delivery=pb.Delivery(
        topic="t" * 200,
        token=1 << 60,
        ranges=[pb.LeasedRange(first_offset=3, end_offset=9, delivery_number=1)],
    ),
    taken_back=[pb.TakenBack(token=7, first_offset=1, end_offset=2)],
    settled=[pb.SettleResult(committed_offset=number) for number in range(30)],
    caught_up=[TopicPartition(topic="t", partition=3)],
)
LAID_OUT = FIELDS.SerializeToString() + RUN
AT = len(LAID_OUT) - len(RUN)
OTHERS = {
    "generated code": pb.ConsumeResponse.FromString(LAID_OUT).SerializeToString(),
    "the batches first": RUN + LAID_OUT[:AT],
    "a field we do not know": b"\x70\x01" + LAID_OUT,
    "a field we do not know, with a long tag": b"\x82\x01\x01x" + LAID_OUT,
    "a field we do not know, last": LAID_OUT + b"\x72\x01x",
    "a field of a batch we do not know": b"\x0a\x02\x68\x01" + LAID_OUT,
}


def test_a_response_is_read_without_a_copy_of_its_records():
    fields, batches = read_consume_response(LAID_OUT)
    assert fields == FIELDS
    assert batches == BATCHES
    assert all(batch.records.obj is LAID_OUT for batch in batches)
    assert read_consume_response(b"") == (pb.ConsumeResponse(), [])
    assert read_consume_response(LAID_OUT[:AT]) == (FIELDS, [])


@pytest.mark.parametrize("dead_letter_topic", ["", "t.g.dlq"])
def test_a_delivery_says_all_that_its_batches_are(dead_letter_topic):
    ranges = [(3, 9, 1, 0, 0), (10, 11, 4, 3, 0), (12, 1 << 62, 2, 0, 1)]
    fields, batches = read_consume_response(
        delivery_fields(
            topic="t" * 200, topic_id="6f1c", partition=7, token=1 << 60, lease_ms=30_000,
            runs=[DeliveredRun(*one) for one in ranges], dead_letter_topic=dead_letter_topic,
        )
        + RUN
    )  # fmt: skip
    delivery = fields.delivery
    assert batches == BATCHES
    assert (delivery.topic, delivery.topic_id, delivery.partition) == ("t" * 200, "6f1c", 7)
    assert (delivery.token, delivery.lease_ms) == (1 << 60, 30_000)
    assert delivery.dead_letter_topic == dead_letter_topic
    assert [
        (one.first_offset, one.end_offset, one.delivery_number, one.failures, one.redrives)
        for one in delivery.ranges
    ] == ranges


@pytest.mark.parametrize("data", OTHERS.values(), ids=OTHERS)
def test_what_another_encoder_wrote_is_read_as_generated_code_reads_it(data):
    assert_read_as_generated_code_does(data)


@pytest.mark.parametrize("at", [*range(AT + 90), len(LAID_OUT) - 1])
@pytest.mark.parametrize("bit", [1, 0x80])
def test_every_damage_is_read_as_generated_code_reads_it(at, bit):
    for data in (LAID_OUT[:at], LAID_OUT[:at] + bytes([LAID_OUT[at] ^ bit]) + LAID_OUT[at + 1 :]):
        assert_read_as_generated_code_does(data)


def assert_read_as_generated_code_does(data):
    try:
        parsed = pb.ConsumeResponse.FromString(data)
    except DecodeError:
        with pytest.raises(DecodeError):
            read_consume_response(data)
        return
    fields, batches = read_consume_response(data)
    assert [
        (batch.header.base_offset, batch.header.records_crc, batch.records) for batch in batches
    ] == [(one.base_offset, one.records_crc, one.records) for one in parsed.batches]
    del parsed.batches[:], fields.batches[:]
    assert fields == parsed
