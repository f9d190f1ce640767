"""A FetchResponse of spliced bytes is what generated code would have written."""

from logbroker.record.columns import Columns, encode_batch
from logbroker.v1.fetch_service_pb2 import FetchResponse
from logbroker.v1.stored_batch_pb2 import Segment
from logbroker.wire.fetch_response import fetch_response

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
