"""Columns to records and back, and what must hold between them."""

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from logbroker.errors import DataLossError, InvalidError
from logbroker.record.batch import Batch
from logbroker.record.columns import (
    Columns,
    RecordLimits,
    check_batch,
    decode_records,
    encode_batch,
    first_offset_at,
    header_bytes,
    keys_and_header,
)
from logbroker.record.compression import Codec
from logbroker.record.record import Header, Record
from logbroker.v1.records_pb2 import Header as HeaderMessage
from logbroker.v1.records_pb2 import RecordHeaders, Records

LIMITS = RecordLimits(record_bytes=1_000, batch_bytes=4_000, header_count=3, header_bytes=100)

data = st.none() | st.binary(max_size=20)
header = st.builds(Header, st.text(max_size=5), data)
record = st.tuples(data, data, st.integers(-5, 1 << 50), st.lists(header, max_size=3))


@given(st.lists(record, min_size=1, max_size=12), st.sampled_from(Codec), st.booleans())
def test_records_come_back_as_they_were(rows, codec, has_keys):
    values, keys, timestamps_ms, headers = map(list, zip(*rows, strict=True))
    columns = Columns(
        values,
        keys if has_keys else None,
        timestamps_ms,
        [(index, row) for index, row in enumerate(headers) if row],
    )
    batch = encode_batch(columns, now_ms=0, codec=codec)
    check_batch(batch, LIMITS)
    assert decode_records(batch.stamped(base_offset=50, append_time_ms=1), partition=3) == [
        Record(50 + index, stamp, key if has_keys else None, value, tuple(row), 3)
        for index, (value, key, stamp, row) in enumerate(rows)
    ]


def test_null_and_empty_differ_and_null_keys_alone_take_no_room():
    batch = encode_batch(Columns([None, b""], [None, None]), now_ms=5)
    assert [found.value for found in decode_records(batch)] == [None, b""]
    assert Records.FromString(batch.records).keys == []
    mixed = encode_batch(Columns([b"", None], [b"", None]), now_ms=5)
    assert [found.key for found in decode_records(mixed)] == [b"", None]


def test_timestamps_not_given_are_the_time_of_the_call():
    batch = encode_batch(Columns([b"a", b"b"]), now_ms=77)
    assert [found.timestamp_ms for found in decode_records(batch)] == [77, 77]


def test_headers_keep_order_doubles_case_and_bytes():
    headers = [Header("k", b"1"), Header("k", b"2"), Header("K", b"\xff\0"), Header("ключ", None)]
    batch = encode_batch(Columns([b"v"], headers=[(0, headers)]), now_ms=0)
    [found] = decode_records(batch)
    assert list(found.headers) == headers
    assert (found.header("k"), found.header_values("k")) == (b"2", [b"1", b"2"])
    assert found.header("none") is None


@given(st.lists(record, min_size=1, max_size=12), st.sampled_from(Codec), st.booleans())
def test_keys_and_one_header_are_what_the_records_have(rows, codec, has_keys):
    values, keys, timestamps_ms, headers = map(list, zip(*rows, strict=True))
    columns = Columns(values, keys if has_keys else None, timestamps_ms, list(enumerate(headers)))
    batch = encode_batch(columns, now_ms=0, codec=codec).stamped(base_offset=5, append_time_ms=1)
    for name in {"", *(one.name for row in headers for one in row)}:
        assert keys_and_header(batch, name) == [
            (one.offset, one.key, one.header(name)) for one in decode_records(batch)
        ]


@given(st.lists(header, min_size=1, max_size=5))
def test_a_header_is_found_in_the_bytes_of_its_batch(headers):
    batch = encode_batch(Columns([b"v"], headers=[(0, headers)]), now_ms=0)
    assert all(header_bytes(one) in batch.records for one in headers)


def refused(batch, reason):
    with pytest.raises(InvalidError) as raised:
        check_batch(batch, LIMITS)
    assert raised.value.reason == reason, str(raised.value)


def batch_with(count=2, latest=0, **columns):
    records = Records(**columns).SerializeToString()
    return Batch.unstamped(records, record_count=count, max_timestamp_ms=latest)


VV = [b"a", b"b"]
ROW = RecordHeaders(record=0, headers=[HeaderMessage(name="n")])
CONTRADICTIONS = {
    "fewer records": batch_with(3, values=VV),
    "more records": batch_with(1, values=VV),
    "too few keys": batch_with(values=VV, keys=[b"k"]),
    "too few timestamps": batch_with(values=VV, timestamps_ms=[1]),
    "a null that is not empty": batch_with(values=VV, null_values=[0]),
    "a null beyond the end": batch_with(values=[b"", b""], null_values=[2]),
    "nulls that do not ascend": batch_with(values=[b"", b""], null_values=[1, 0]),
    "nulls twice": batch_with(values=[b"", b""], null_values=[1, 1]),
    "null keys without keys": batch_with(values=VV, null_keys=[0]),
    "headers beyond the end": batch_with(1, values=[b"a"], headers=[RecordHeaders(record=1)]),
    "headers twice": batch_with(values=VV, headers=[ROW, ROW]),
    "offset deltas": batch_with(values=VV, offset_deltas=[0, 1]),
    "another maximum": batch_with(values=VV, timestamps_ms=[1, 2], latest=3),
    "no Records": Batch.unstamped(b"\xff\xff\xff", record_count=1),
}


@pytest.mark.parametrize("batch", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_columns_that_contradict_each_other_are_refused(batch):
    refused(batch, "BAD_BATCH")


def test_codecs_and_bits_that_mean_nothing_are_refused():
    good = encode_batch(Columns(VV), now_ms=0)
    check_batch(good, LIMITS)
    for attributes in (3, 7, 8, 1 << 31):
        header_ = good.header._replace(attributes=attributes)
        refused(good._replace(header=header_), "BAD_BATCH")
    refused(good._replace(header=good.header._replace(attributes=Codec.GZIP)), "BAD_BATCH")


def test_records_are_limited_by_what_they_hold_and_not_by_their_batch():
    check_batch(encode_batch(Columns([b"v" * 990, b"v" * 990], [b"k" * 10] * 2), now_ms=0), LIMITS)
    refused(encode_batch(Columns([b"v" * 991], [b"k" * 10]), now_ms=0), "RECORD_TOO_LARGE")
    headers = [(1, [Header("n", b"v" * 50)])]
    large = encode_batch(Columns([b"a", b"v" * 950], headers=headers), now_ms=0)
    refused(large, "RECORD_TOO_LARGE")
    refused(encode_batch(Columns([b"v" * 900] * 5), now_ms=0), "BATCH_TOO_LARGE")


def test_headers_are_limited_in_number_and_in_size():
    headers = [(1, [Header("n", b"1")] * 4)]
    refused(encode_batch(Columns(VV, headers=headers), now_ms=0), "TOO_MANY_HEADERS")
    check_batch(
        encode_batch(Columns(VV, headers=[(0, [Header("n", b"v" * 99)])]), now_ms=0), LIMITS
    )
    refused(
        encode_batch(Columns(VV, headers=[(0, [Header("n", b"v" * 100)])]), now_ms=0),
        "HEADER_TOO_LARGE",
    )


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD])
def test_a_bomb_is_refused(codec):
    bomb = encode_batch(Columns([bytes(1 << 20)]), now_ms=0, codec=codec)
    assert len(bomb.records) < LIMITS.batch_bytes
    refused(bomb, "BATCH_TOO_LARGE")


def test_first_offset_at_takes_the_first_in_order():
    columns = Columns([b"v"] * 4, timestamps_ms=[100, 50, 200, 150])
    batch = encode_batch(columns, now_ms=0).stamped(base_offset=10, append_time_ms=0)
    found = [first_offset_at(batch, target) for target in (0, 100, 101, 200, 201)]
    assert found == [10, 10, 12, 12, None]
    assert [first_offset_at(batch, 0, start) for start in (11, 13, 14)] == [11, 13, None]
    assert first_offset_at(batch, 160, 13) is None
    plain = encode_batch(Columns([b"v"] * 3), now_ms=9).stamped(base_offset=10, append_time_ms=0)
    assert [first_offset_at(plain, 9), first_offset_at(plain, 9, 12)] == [10, 12]
    assert first_offset_at(plain, 10) is None


@pytest.mark.parametrize(
    "records", [b"\xff\xff", Records(values=VV, keys=[b"k"]).SerializeToString()]
)
def test_stored_records_that_cannot_be_read_name_where_to_go_on(records):
    batch = Batch.unstamped(records, record_count=2).stamped(base_offset=7, append_time_ms=0)
    assert crc32c(records) == batch.header.records_crc
    with pytest.raises(DataLossError) as raised:
        decode_records(batch)
    assert raised.value.details == {"offset": "7", "next_offset": "9"}
