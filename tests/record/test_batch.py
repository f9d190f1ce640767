"""The stored batch: its bytes, as a struct and as protobuf."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logbroker.errors import DataLossError
from logbroker.record.batch import HEADER, Batch, BatchHeader
from logbroker.record.columns import decode_records
from logbroker.record.compression import Codec
from logbroker.record.partition_id import PartitionId
from logbroker.record.record import Header, Record
from logbroker.v1.fetch_service_pb2 import FetchResponse
from logbroker.v1.stored_batch_pb2 import Segment

SEED = PartitionId("orders", "6f1c", 0).seed
GOLDEN = bytes.fromhex(Path("tests/golden/batch_v1.hex").read_text())


def test_the_golden_batch_is_read_as_it_was_written():
    batch = Batch.decode(GOLDEN, SEED)
    assert batch.encode(SEED) == GOLDEN
    assert batch.header[:10] == (
        1_000, 1_700_000_000_009, 3, 3, 1_700_000_000_003, 0, 77, 2, 5, batch.header.records_crc,
    )  # fmt: skip
    headers = (Header("a", b"1"), Header("a", None), Header("", b""))
    assert decode_records(batch) == [
        Record(1_000, 1_700_000_000_001, b"k", b"hello", ()),
        Record(1_001, 1_700_000_000_003, None, None, headers),
        Record(1_002, 1_700_000_000_002, b"", b"", ()),
    ]


def test_some_fields_and_then_file_bytes_are_a_fetch_response():
    batches = [
        Batch.unstamped(b"v" * size, record_count=1).stamped(base_offset=size, append_time_ms=-1)
        for size in (0, 1, 300)
    ]
    file = b"".join(batch.encode(seed=7) for batch in batches)
    response = FetchResponse.FromString(FetchResponse(high_watermark=9).SerializeToString() + file)
    assert response.high_watermark == 9
    assert response.batches == Segment.FromString(file).batches
    assert [stored.records for stored in response.batches] == [batch.records for batch in batches]
    assert [stored.base_offset for stored in response.batches] == [0, 1, 300]


int64, uint32 = st.integers(-(1 << 63), (1 << 63) - 1), st.integers(0, (1 << 32) - 1)


@given(
    st.tuples(int64, int64, st.integers(1, 1 << 20), int64, uint32, int64, uint32, uint32),
    st.binary(max_size=300),
    uint32,
)
def test_a_batch_comes_back_as_it_was(fields, records, seed):
    base, time, count, latest, attributes, producer, epoch, sequence = fields
    made = Batch.unstamped(
        records,
        record_count=count,
        max_timestamp_ms=latest,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
    ).stamped(base_offset=base, append_time_ms=time)
    made = made._replace(header=made.header._replace(attributes=attributes))
    assert Batch.decode(made.encode(seed), seed) == made
    [stored] = Segment.FromString(made.encode(seed)).batches
    assert (stored.base_offset, stored.record_count, stored.attributes) == (base, count, attributes)
    assert stored.records == records


def test_no_flipped_bit_and_no_cut_is_taken_for_the_batch():
    for at in range(len(GOLDEN)):
        for bit in range(8):
            bad = GOLDEN[:at] + bytes([GOLDEN[at] ^ 1 << bit]) + GOLDEN[at + 1 :]
            with pytest.raises(DataLossError):
                Batch.decode(bad, SEED)
        with pytest.raises(DataLossError):
            Batch.decode(GOLDEN[:at], SEED)


def test_a_batch_of_another_partition_is_not_a_batch():
    with pytest.raises(DataLossError):
        Batch.decode(GOLDEN, PartitionId("orders", "6f1c", 1).seed)


def test_stamping_does_not_touch_the_records():
    batch = Batch.unstamped(b"v", record_count=2, codec=Codec.ZSTD)
    stamped = batch.stamped(base_offset=5, append_time_ms=6)
    assert stamped.records is batch.records
    assert stamped.header[2:] == batch.header[2:]
    assert (stamped.header.next_offset, stamped.header.size_bytes) == (7, HEADER.size + 1)
    assert stamped.header.codec is Codec.ZSTD


def test_a_header_can_be_read_anywhere_in_a_file():
    data = b"x" * 9 + GOLDEN + b"y" * 9
    assert BatchHeader.decode(memoryview(data), SEED, 9).base_offset == 1_000
