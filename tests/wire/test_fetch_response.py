"""A FetchResponse of spliced bytes is what generated code would have written."""

import pytest
from google.protobuf.message import DecodeError

from logbroker.record.columns import Columns, encode_batch
from logbroker.v1.fetch_service_pb2 import FetchResponse
from logbroker.v1.stored_batch_pb2 import Segment
from logbroker.wire.fetch_response import fetch_response, read_fetch_response

BOUNDS = {"high_watermark": 9, "log_start_offset": 1, "next_offset": 5, "start_offset": 3}


def test_a_run_of_stored_batches_is_the_batches_field():
    batches = [
        encode_batch(Columns([b"x"] * count), now_ms=1).stamped(base_offset=count, append_time_ms=7)
        for count in (1, 2, 300)
    ]
    run = b"".join(batch.encode(seed=5) for batch in batches)
    response = FetchResponse.FromString(fetch_response(run, **BOUNDS))
    assert [found.record_count for found in response.batches] == [1, 2, 300]
    assert [found.records for found in response.batches] == [batch.records for batch in batches]
    assert response.batches == Segment.FromString(run).batches
    assert {name: getattr(response, name) for name in BOUNDS} == BOUNDS


def test_without_batches_it_only_tells_how_things_are():
    response = FetchResponse.FromString(fetch_response(b"", **BOUNDS))
    assert (len(response.batches), response.high_watermark) == (0, 9)
    assert fetch_response(b"", **dict.fromkeys(BOUNDS, 0)) == b""


def test_the_fields_leave_the_room_that_is_kept_for_them():
    fields = fetch_response(b"", **dict.fromkeys(BOUNDS, 2**63 - 1))
    assert len(fields) < 1_024


BATCHES = [
    encode_batch(Columns([b"x" * count]), now_ms=1).stamped(base_offset=count, append_time_ms=-7)
    for count in (0, 1, 300, 70_000)
]
LAID_OUT = fetch_response(b"".join(batch.encode(seed=5) for batch in BATCHES), **BOUNDS)
FIELDS = fetch_response(b"", **BOUNDS)
RUN = LAID_OUT[len(FIELDS) :]
OTHERS = {
    "generated code": FetchResponse.FromString(LAID_OUT).SerializeToString(),
    "the batches first": RUN + FIELDS,
    "a field we do not know": b"\x30\x01" + LAID_OUT,
    "a field we do not know, last": LAID_OUT + b"\x32\x01x",
    "a field of a batch we do not know": b"\x0a\x02\x68\x01" + LAID_OUT,
}


def test_a_response_is_read_by_its_layout_without_a_copy():
    found = read_fetch_response(LAID_OUT)
    assert found == (BATCHES, *BOUNDS.values())
    assert all(batch.records.obj is LAID_OUT for batch in found.batches)
    assert read_fetch_response(FIELDS) == ([], *BOUNDS.values())
    assert read_fetch_response(b"") == ([], 0, 0, 0, 0)
    negative = fetch_response(b"", **dict.fromkeys(BOUNDS, -1))
    assert read_fetch_response(negative) == ([], -1, -1, -1, -1)


@pytest.mark.parametrize("data", OTHERS.values(), ids=OTHERS)
def test_what_another_encoder_wrote_is_read_as_generated_code_reads_it(data):
    found, parsed = read_fetch_response(data), FetchResponse.FromString(data)
    assert found[1:] == tuple(getattr(parsed, name) for name in BOUNDS)
    assert [batch.records for batch in found.batches] == [one.records for one in parsed.batches]
    assert list(found.batches)[-len(BATCHES) :] == BATCHES


@pytest.mark.parametrize("at", [*range(len(FIELDS) + 90), len(LAID_OUT) - 1])
@pytest.mark.parametrize("bit", [1, 0x80])
def test_every_damage_is_read_as_generated_code_reads_it(at, bit):
    for data in (LAID_OUT[:at], LAID_OUT[:at] + bytes([LAID_OUT[at] ^ bit]) + LAID_OUT[at + 1 :]):
        try:
            parsed = FetchResponse.FromString(data)
        except DecodeError:
            with pytest.raises(DecodeError):
                read_fetch_response(data)
            continue
        found = read_fetch_response(data)
        assert found[1:] == tuple(getattr(parsed, name) for name in BOUNDS)
        assert [
            (batch.header.base_offset, batch.header.records_crc, batch.records)
            for batch in found.batches
        ] == [(one.base_offset, one.records_crc, one.records) for one in parsed.batches]
