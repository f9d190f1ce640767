"""Batches as they were read: trimmed, decoded when asked for."""

import pytest

from logbroker.client.record_batch import RecordBatch, RecordCursor, check_records
from logbroker.errors import DataLossError
from logbroker.record.batch import Batch
from logbroker.record.columns import Columns, encode_batch
from logbroker.record.compression import Codec
from logbroker.record.record import Header
from logbroker.v1.records_pb2 import Records
from logbroker.wire.fetch_response import read_fetch_response

NINE = [(key, value) for key in (None, b"", b"k") for value in (None, b"", b"v")]


def stored(columns: Columns, codec: Codec = Codec.NONE, base_offset: int = 100) -> Batch:
    batch = encode_batch(columns, now_ms=7, codec=codec)
    return batch.stamped(base_offset=base_offset, append_time_ms=8)


@pytest.mark.parametrize("codec", Codec)
def test_all_pairs_of_null_and_empty_come_back(codec):
    columns = Columns([value for _, value in NINE], [key for key, _ in NINE])
    batch = RecordBatch(stored(columns, codec), 4, 0, 1_000)
    assert [(record.key, record.value) for record in batch.records()] == NINE
    assert list(batch.values) == columns.values
    assert list(batch.keys) == columns.keys
    assert [record.offset for record in batch.records()] == list(range(100, 109))
    assert {record.partition for record in batch.records()} == {4}
    assert (batch.base_offset, batch.record_count, batch.append_time_ms) == (100, 9, 8)


def test_headers_keep_order_doubles_and_nulls():
    headers = [Header("k", b"1"), Header("k", None), Header("K", b""), Header("имя", b"\xff\x00")]
    batch = RecordBatch(stored(Columns([b"a", b"b"], None, [5, 6], [(1, headers)])), 0, 0, 1_000)
    first, second = batch.records()
    assert (first.headers, second.headers) == ((), tuple(headers))
    assert (first.timestamp_ms, second.timestamp_ms) == (5, 6)


@pytest.mark.parametrize("first, end", [(0, 103), (102, 1_000), (103, 105), (0, 1_000), (109, 110)])
def test_records_outside_the_bounds_are_trimmed(first, end):
    values = [b"%d" % offset for offset in range(100, 110)]
    headers = [(index, [Header("at", value)]) for index, value in enumerate(values)]
    columns = Columns(values, values, list(range(100, 110)), headers)
    batch = RecordBatch(stored(columns), 0, first, end)
    expected = list(range(max(first, 100), min(end, 110)))
    assert [record.offset for record in batch.records()] == expected
    assert [int(record.value) for record in batch.records()] == expected
    assert [int(record.header("at")) for record in batch.records()] == expected
    assert [record.timestamp_ms for record in batch.records()] == expected
    assert list(batch.offsets) == expected
    assert (batch.end_offset, len(batch)) == (min(end, 110), len(expected))


def test_gaps_that_compaction_left_are_kept():
    records = Records(values=[b"0", b"3", b"7"], offset_deltas=[0, 3, 7]).SerializeToString()
    batch = Batch.unstamped(records, record_count=3).stamped(base_offset=10, append_time_ms=0)
    batch = batch._replace(header=batch.header._replace(offset_span=9))
    whole = RecordBatch(batch, 0, 0, 1_000)
    assert list(whole.offsets) == [10, 13, 17]
    assert whole.end_offset == 19
    assert [record.value for record in RecordBatch(batch, 0, 11, 17).records()] == [b"3"]
    assert RecordBatch(batch, 0, 18, 1_000).records() == []


def test_a_batch_whose_checksum_does_not_hold_is_data_loss_with_the_next_good_offset():
    data = bytearray(stored(Columns([b"value"] * 3)).encode(seed=1))
    data[-1] ^= 1
    (damaged,) = read_fetch_response(bytes(data)).batches
    with pytest.raises(DataLossError) as caught:
        check_records(damaged)
    assert caught.value.details == {"offset": "100", "next_offset": "103"}


def test_records_that_cannot_be_decoded_are_data_loss():
    batch = Batch.unstamped(b"\xff\xff", record_count=2).stamped(base_offset=5, append_time_ms=0)
    with pytest.raises(DataLossError):
        RecordBatch(batch, 0, 0, 1_000).records()


def test_a_cursor_knows_what_is_left():
    cursor = RecordCursor()
    assert cursor.offset(0) is None
    cursor.begin(RecordBatch(stored(Columns([b"a", b"b", b"c"])), 0, 0, 1_000))
    assert next(cursor.records).value == b"a"
    assert (cursor.offset(0), cursor.offset(1)) == (101, None)
    rest = cursor.drop()
    assert [record.value for record in rest.records()] == [b"b", b"c"]
    assert cursor.drop() is None
