"""A ProduceRequest: a batch as a segment file has it, then some fields.

Our clients send the batch first and in exactly the stored layout, so that its records
need no copy and its header no parser. Any other order and encoding is read as well.
"""

from collections.abc import Sequence
from typing import NamedTuple

from google.protobuf.message import DecodeError

from logbroker.errors import InvalidError
from logbroker.record.batch import HEADER, LENGTH_BYTES, TAGS, Batch, BatchHeader
from logbroker.v1.produce_service_pb2 import ProduceRequest


class Produced(NamedTuple):
    """A request to append one batch."""

    topic: str
    topic_id: str
    partition: int
    batch: Batch
    expected_offset: int | None


def produce_request(batch: Batch, fields: bytes) -> bytes:
    """Returns a serialized ProduceRequest: `batch`, then `fields`, serialized without one."""
    return batch.header.encode(0) + batch.records + fields


def produced_of(data: bytes) -> Produced:
    """Reads a request. InvalidError for bytes that are none; the batch is not yet checked."""
    try:
        if batch := _as_stored(data):
            fields = ProduceRequest.FromString(data[batch.header.size_bytes :])
            if not fields.HasField("batch"):
                return _produced(fields, batch)
        fields = ProduceRequest.FromString(data)
    except DecodeError as error:
        raise InvalidError("INVALID_ARGUMENT", "the bytes are not a ProduceRequest") from error
    return _produced(fields, _parsed(fields))


def _produced(fields: ProduceRequest, batch: Batch) -> Produced:
    expected = fields.expected_offset if fields.HasField("expected_offset") else None
    return Produced(fields.topic, fields.topic_id, fields.partition, batch, expected)


def _as_stored(data: bytes) -> Batch | None:
    """Returns the batch at the front where it has the stored layout."""
    if len(data) < HEADER.size:
        return None
    packed: Sequence[int] = HEADER.unpack_from(data)
    if packed[::2] != TAGS:
        return None
    length, *fields, _, records_length = packed[1::2]
    header = BatchHeader._make((*fields, _padded(records_length)))
    is_whole = header.records_bytes >= 0 and len(data) >= header.size_bytes
    if not is_whole or _padded(length) != header.size_bytes - LENGTH_BYTES:
        return None
    if not header.offset_span:
        header = header._replace(offset_span=header.record_count)
    return Batch(header, data[HEADER.size : header.size_bytes])


def _padded(varint: object) -> int:
    """Returns the value of a varint in 4 bytes; -1 where it has fewer or more."""
    assert isinstance(varint, bytes)
    one, two, three, four = varint
    is_padded = one & two & three & 128 and four < 128
    return one & 127 | (two & 127) << 7 | (three & 127) << 14 | four << 21 if is_padded else -1


def _parsed(fields: ProduceRequest) -> Batch:
    if not fields.HasField("batch"):
        raise InvalidError("INVALID_ARGUMENT", "the request has no batch")
    batch = fields.batch
    header = BatchHeader(
        batch.base_offset,
        batch.append_time_ms,
        batch.record_count,
        batch.offset_span or batch.record_count,
        batch.max_timestamp_ms,
        batch.attributes,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.records_crc,
        len(batch.records),
    )
    return Batch(header, batch.records)
