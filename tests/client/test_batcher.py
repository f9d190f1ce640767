"""What a record takes, what may not be sent, where columns are cut."""

import pytest

from logbroker.client import batcher
from logbroker.errors import InvalidError
from logbroker.record.columns import Columns, RecordLimits, encode_columns
from logbroker.record.partitioner import partition_of
from logbroker.record.record import Header

LIMITS = RecordLimits(record_bytes=100, batch_bytes=1_000, header_count=2, header_bytes=20)


def test_any_bytes_are_taken_and_text_is_not():
    assert batcher.as_bytes(bytearray(b"a"), "value") == b"a"
    assert batcher.as_bytes(memoryview(b"ab")[1:], "value") == b"b"
    assert batcher.as_bytes(None, "key") is None
    for wrong in ("text", 3, ["a"]):
        with pytest.raises(InvalidError, match="must be bytes") as caught:
            batcher.as_bytes(wrong, "key")
        assert caught.value.reason == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    "headers, reason",
    [
        ([("a", b"1"), ("b", None), ("c", b"")], "TOO_MANY_HEADERS"),
        ([("a", b"x" * 20)], "HEADER_TOO_LARGE"),
        ([("a", "text")], "INVALID_ARGUMENT"),
        ([(b"a", b"1")], "INVALID_ARGUMENT"),
    ],
)
def test_headers_over_a_limit_or_of_a_wrong_type_are_refused(headers, reason):
    with pytest.raises(InvalidError) as caught:
        batcher.as_headers(headers, LIMITS)
    assert caught.value.reason == reason


def test_a_record_at_the_limit_is_taken_and_one_over_it_is_refused():
    assert batcher.check_size(b"v" * 60, b"k" * 30, [Header("name", b"value!")], LIMITS) >= 100
    with pytest.raises(InvalidError, match="the record has 101 bytes") as caught:
        batcher.check_size(b"v" * 61, b"k" * 30, [Header("name", b"value!")], LIMITS)
    assert caught.value.reason == "RECORD_TOO_LARGE"


def test_the_first_record_of_many_that_is_too_large_is_named():
    values = [b"v" * 100, b"v" * 101, b"v" * 200]
    with pytest.raises(InvalidError) as caught:
        batcher.checked(values, None, None, None, LIMITS)
    assert caught.value.details["record"] == "1"
    assert batcher.checked(values[:1], [b""], None, None, LIMITS).values == values[:1]


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(InvalidError, match="1 keys for 2 values"):
        batcher.checked([b"a", b"b"], [b"k"], None, None, LIMITS)


COLUMNS = {
    "values alone": Columns([b"v" * (n % 90) for n in range(500)]),
    "with keys": Columns([b"v" * 9] * 500, [b"k" * (n % 30) for n in range(500)]),
    "nulls": Columns([None, b""] * 250, [b"k", None] * 250),
    "timestamps": Columns([b""] * 500, None, list(range(500))),
    "headers": Columns([b"v"] * 500, None, None, [(n, [Header("a", b"b")]) for n in range(500)]),
}


@pytest.mark.parametrize("columns", COLUMNS.values(), ids=COLUMNS)
def test_shares_are_all_the_records_in_order_and_never_over_the_bytes(columns):
    shares = list(batcher.cut(columns, 3, 1_000))
    assert {share.partition for share in shares} == {3}
    assert len(shares) > 1
    assert [v for share in shares for v in share.columns.values] == columns.values
    assert all(len(encode_columns(share.columns)) <= share.size <= 1_000 for share in shares)
    if columns.keys:
        assert [k for share in shares for k in share.columns.keys] == columns.keys
    if columns.timestamps_ms:
        assert [t for share in shares for t in share.columns.timestamps_ms] == list(range(500))
    if columns.headers:
        assert sum(len(share.columns.headers) for share in shares) == 500
        assert all(share.columns.headers[0][0] == 0 for share in shares)


def test_a_record_larger_than_a_share_has_one_of_its_own():
    shares = list(batcher.cut(Columns([b"a", b"b" * 99, b"c"]), 0, 20))
    assert [share.columns.values for share in shares] == [[b"a"], [b"b" * 99], [b"c"]]


def test_keys_go_where_the_partitioner_says_and_null_keys_together():
    keys = [b"a", None, b"b", b"", None, b"a"]
    values = [b"%d" % number for number in range(6)]
    headers = [(4, (Header("h", b""),)), (5, (Header("i", b""),))]
    parts = dict(batcher.spread(Columns(values, keys, None, headers), 2, 3))
    found = {}
    for partition, part in parts.items():
        rows = dict(part.headers)
        for index, (value, key) in enumerate(zip(part.values, part.keys, strict=True)):
            found[value] = (partition, key, rows.get(index))
    for index, key in enumerate(keys):
        place = 2 if key is None else partition_of(key, 3)
        assert found[values[index]] == (place, key, dict(headers).get(index))
