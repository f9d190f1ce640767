"""A ProduceRequest means the same, however it is written; noise is refused and never crashes."""

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from logbroker.errors import InvalidError
from logbroker.record.batch import HEADER, Batch, BatchHeader
from logbroker.record.columns import Columns, encode_batch
from logbroker.v1.produce_service_pb2 import ProduceEntry, ProduceRequest
from logbroker.v1.stored_batch_pb2 import StoredBatch
from logbroker.wire.produce_request import Produced, entries_of, produce_entry, produce_request

BATCH = encode_batch(
    Columns([b"1", b"22"], [b"k", None]), now_ms=5, producer_id=7, producer_epoch=1, base_sequence=9
)
OTHER = encode_batch(Columns([b"x"]), now_ms=1)
FIELDS = ProduceEntry(topic="a", topic_id="id", partition=3, expected_offset=0)
PRODUCED = Produced("a", "id", 3, BATCH, 0)


def sent(*batches, fields=FIELDS):
    """Returns a request as our clients send it."""
    return produce_request(produce_entry(batch, fields.SerializeToString()) for batch in batches)


def message_of(batch):
    """Returns the batch as a message of the generated code, as another language writes it."""
    header = batch.header
    return StoredBatch(
        record_count=header.record_count,
        max_timestamp_ms=header.max_timestamp_ms,
        attributes=header.attributes,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        records_crc=header.records_crc,
        records=bytes(batch.records),
    )


def entry_of(batch):
    entry = ProduceEntry(batch=message_of(batch))
    entry.MergeFrom(FIELDS)
    return entry


def rewritten(data):
    """Returns a request as generated code writes it."""
    return ProduceRequest.FromString(bytes(data)).SerializeToString()


def test_what_our_clients_send_is_read_as_it_was_meant():
    assert entries_of(sent(BATCH, OTHER)) == [PRODUCED, PRODUCED._replace(batch=OTHER)]


def test_what_our_clients_send_is_a_plain_message_to_others():
    one, two = ProduceRequest.FromString(sent(BATCH, OTHER)).entries
    assert (one.topic, one.partition, one.expected_offset) == ("a", 3, 0)
    assert (one.batch.records, one.batch.record_count) == (BATCH.records, 2)
    assert two.batch.records == OTHER.records


def test_what_generated_code_sends_is_read_the_same():
    request = ProduceRequest(entries=[entry_of(BATCH), entry_of(OTHER)])
    assert entries_of(request.SerializeToString()) == entries_of(sent(BATCH, OTHER))


def test_entries_of_both_kinds_may_be_mixed():
    mixed = sent(BATCH) + ProduceRequest(entries=[entry_of(OTHER)]).SerializeToString()
    assert entries_of(mixed + sent(BATCH)) == entries_of(sent(BATCH, OTHER, BATCH))


def test_a_request_may_have_no_entries():
    assert entries_of(b"") == []


def test_no_expected_offset_is_not_the_offset_0():
    data = sent(BATCH, fields=ProduceEntry(topic="a"))
    assert entries_of(data) == [Produced("a", "", 0, BATCH, None)]


@given(st.randoms(use_true_random=False))
def test_fields_may_come_in_any_order_and_the_batch_in_pieces(shuffle: random.Random):
    pieces = [
        ProduceEntry(topic="a"),
        ProduceEntry(topic_id="id"),
        ProduceEntry(partition=3),
        ProduceEntry(expected_offset=0),
    ]
    for field, value in message_of(BATCH).ListFields():  # pieces of a message merge
        pieces.append(ProduceEntry(batch=StoredBatch(**{field.name: value})))
    shuffle.shuffle(pieces)
    entry = b"".join(piece.SerializeToString() for piece in pieces)
    assert len(entry) < 128
    assert entries_of(b"\x0a" + bytes([len(entry)]) + entry) == [PRODUCED]


HEADERS = st.builds(
    BatchHeader,
    *(
        st.integers(-(2**63), 2**63 - 1) if code == "q" else st.integers(0, 2**32 - 1)
        for code in "qqIIqIqIII"
    ),
    st.just(0),
)


@given(HEADERS, st.binary(max_size=300))
def test_the_short_way_reads_what_the_long_way_reads(header, records):
    header = header._replace(
        record_count=header.record_count or 1,
        offset_span=header.record_count or 1,
        records_bytes=len(records),
    )
    data = sent(Batch(header, records))
    assert entries_of(data) == entries_of(rewritten(data))
    assert entries_of(data)[0].batch == Batch(header, records)


def test_a_span_that_is_left_0_is_the_count_on_both_ways():
    data = bytearray(sent(BATCH))
    at = data.index(BATCH.header.encode_unstamped()) + 28
    assert data[at] == 0x25
    data[at + 1 : at + 5] = bytes(4)
    assert entries_of(bytes(data)) == entries_of(rewritten(data)) == [PRODUCED]


def test_a_second_batch_in_an_entry_merges_as_in_any_protobuf():
    piece = StoredBatch(producer_id=8, records=b"other")
    fields = FIELDS.SerializeToString() + ProduceEntry(batch=piece).SerializeToString()
    [found] = entries_of(produce_request([produce_entry(BATCH, fields)]))
    assert (found.batch.records, found.batch.header.producer_id) == (b"other", 8)
    assert found.batch.header.record_count == 2


def test_a_topic_that_is_not_utf8_is_refused():
    with pytest.raises(InvalidError) as raised:
        entries_of(produce_request([produce_entry(BATCH, b"\x12\x02\xff\xfe")]))
    assert raised.value.reason == "INVALID_ARGUMENT"


def outcome(data):
    try:
        return entries_of(data)
    except InvalidError as error:
        return error.reason


def check(data):
    """Asserts that bytes are refused, or read with a header that fits its records."""
    found = outcome(data)
    if isinstance(found, str):
        assert found == "INVALID_ARGUMENT"
        return
    for produced in found:
        assert produced.batch.header.records_bytes == len(produced.batch.records)
    assert found == entries_of(rewritten(data)), "and both ways read the same"


@given(st.binary(max_size=200))
@example(b"\x0a")
@example(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
def test_noise_is_read_or_refused(data):
    check(data)


@given(st.integers(0, 300), st.integers(0, 255), st.integers(0, 300))
def test_a_request_with_a_changed_byte_or_a_lost_end_is_read_or_refused(at, byte, kept):
    data = bytearray(sent(BATCH, OTHER))
    data[at % len(data)] = byte
    check(bytes(data[:kept]))


@given(st.binary(min_size=4, max_size=4), st.binary(min_size=4, max_size=4))
@example(b"\x81\x80\x80\x00", b"\x01\x00\x00\x00")
@example(b"\xcb\x80\x80\x00", b"\x01\x00\x00\x00")
def test_a_request_with_any_lengths_is_read_or_refused(length, records_length):
    data = bytearray(sent(BATCH))
    at = data.index(BATCH.header.encode_unstamped())
    data[at + 1 : at + 5] = length
    data[at + HEADER.size - 4 : at + HEADER.size] = records_length
    check(bytes(data))
