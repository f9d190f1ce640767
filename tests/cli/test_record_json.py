import json
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logbroker.cli.record_json import RecordDraft, draft_of_json, record_to_json
from logbroker.record.record import Header, Record

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
BYTES = st.none() | st.binary() | st.text().map(str.encode)
HEADERS = st.lists(st.builds(Header, st.text(), BYTES)).map(tuple)
BAD_LINES = {
    "not JSON": (b"{", "not JSON"),
    "not UTF-8": (b'{"value": "\xff"}', "not UTF-8"),
    "no object": (b"[1]", "must be an object"),
    "too deep": (b"[" * 200_000, "nested too deep"),
    "an unknown field": (b'{"valu": "v"}', "no field 'valu'"),
    "a value that is JSON": (b'{"value": {"a": 1}}', "value must be text or null"),
    "value twice": (b'{"value": "v", "value_base64": "dg=="}', "both value and value_base64"),
    "bad base64": (b'{"key_base64": "*"}', "key_base64 must be base64"),
    "base64 that is no text": (b'{"key_base64": 1}', "key_base64 must be base64"),
    "half a surrogate pair": (b'{"key": "\\ud800"}', "half a surrogate pair"),
    "the same in a header's name": (b'{"headers": [{"name": "\\ud800"}]}', "half a surrogate"),
    "headers as an object": (b'{"headers": {"a": "b"}}', "headers must be a list"),
    "a header without a name": (b'{"headers": [{"value": "v"}]}', "a header must be an object"),
    "a header's unknown field": (b'{"headers": [{"name": "n", "v": 1}]}', "no field 'v'"),
    "a timestamp over int64": (b'{"timestamp_ms": "9223372036854775808"}', "timestamp_ms must be"),
    "a timestamp that is none": (b'{"timestamp_ms": "now"}', "timestamp_ms must be"),
    "a timestamp with a fraction": (b'{"timestamp_ms": 1.5}', "timestamp_ms must be"),
    "a timestamp that is a truth": (b'{"timestamp_ms": true}', "timestamp_ms must be"),
    "a negative partition": (b'{"partition": -1}', "partition must be"),
}


def draft(record: Record) -> RecordDraft:
    return RecordDraft(
        record.value, record.key, record.headers, record.timestamp_ms, record.partition
    )


@given(
    st.builds(
        Record, st.integers(0, (1 << 63) - 1), INT64, BYTES, BYTES, HEADERS, st.integers(0, 9_999)
    )
)
def test_what_fetch_prints_is_what_produce_takes(record: Record) -> None:
    line = record_to_json(record)
    assert line.isascii()
    assert "\n" not in line
    assert draft_of_json(line.encode()) == draft(record)


@pytest.mark.parametrize(("key", "value"), list(product((None, b"", b"k"), (None, b"", b"v"))))
def test_c21_null_and_empty_differ(key: bytes | None, value: bytes | None) -> None:
    fields = json.loads(record_to_json(Record(0, 0, key, value, ())))
    assert fields["key"] == (key if key is None else key.decode())
    assert fields["value"] == (value if value is None else value.decode())


def test_c47_headers_are_a_list_with_base64_for_bytes() -> None:
    headers = (
        Header("k", b"1"), Header("k", b"2"), Header("K", b"3"), Header("bin", b"\xff\x00"),
        Header("empty", b""), Header("nul", None), Header("имя", b"x"),
    )  # fmt: skip
    line = record_to_json(Record(0, 0, None, None, headers))
    assert json.loads(line)["headers"][3:6] == [
        {"name": "bin", "value_base64": "/wA="},
        {"name": "empty", "value": ""},
        {"name": "nul", "value": None},
    ]
    assert draft_of_json(line.encode()).headers == headers


def test_c60_every_digit_of_an_int64_is_there_as_text() -> None:
    line = record_to_json(Record(9007199254740993, -(1 << 63), None, b"123456789012345678901", ()))
    fields = json.loads(line)
    assert fields["offset"] == "9007199254740993"
    assert fields["timestamp_ms"] == "-9223372036854775808"
    assert fields["value"] == "123456789012345678901"


def test_everything_may_be_left_out_and_numbers_may_be_numbers() -> None:
    assert draft_of_json(b"{}") == RecordDraft(None)
    assert draft_of_json(b'{"timestamp_ms": 5, "partition": 2}') == RecordDraft(
        None, timestamp_ms=5, partition=2
    )


@pytest.mark.parametrize(("line", "why"), BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_is_refused_and_the_message_says_why(line: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        draft_of_json(line)
