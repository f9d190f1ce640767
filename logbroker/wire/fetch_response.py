"""A FetchResponse: some fields, then the bytes of a file. Written and read by that layout.

What another encoder wrote means the same, and generated code reads it.
"""

import re
import struct
from collections.abc import Sequence
from typing import NamedTuple

from logbroker.record.batch import HEADER, LENGTH_BYTES, TAGS, Batch, BatchHeader
from logbroker.v1.fetch_service_pb2 import FetchResponse
from logbroker.v1.stored_batch_pb2 import StoredBatch

FIELDS = re.compile(rb"(?:[\x10\x18\x20\x28][\x80-\xff]{0,9}[\x00-\x7f])*")
"""The four numbers, whichever are there: a tag and a varint each."""
READ_HEADER = struct.Struct(HEADER.format.replace("4s", "I"))
"""A batch's header, with its two lengths as numbers."""
PADDING, PADDED = 0x80808080, 0x00808080
"""Of a length in 4 bytes: the bits that are no part of the value, and what they must be."""


class Response(NamedTuple):
    """A FetchResponse as it was read. Nothing in it is checked: whoever wants records does that."""

    batches: Sequence[Batch]
    """Their records are views of the response; it goes when the last of them does."""
    high_watermark: int
    log_start_offset: int
    next_offset: int
    start_offset: int


def fetch_response(
    batches: bytes | memoryview,
    *,
    high_watermark: int,
    log_start_offset: int,
    next_offset: int,
    start_offset: int,
) -> bytes:
    """Returns a serialized FetchResponse.

    The fields first, then the batches as they are: concatenated protobuf messages merge,
    and a run of file bytes is the `batches` field.
    """
    fields = FetchResponse(
        high_watermark=high_watermark,
        log_start_offset=log_start_offset,
        next_offset=next_offset,
        start_offset=start_offset,
    )
    return b"".join((fields.SerializeToString(), batches))


def read_fetch_response(data: bytes) -> Response:
    """Returns what a serialized FetchResponse says. DecodeError if it is none."""
    match = FIELDS.match(data)
    assert match
    batches = _batches(data, match.end())
    if batches is None:
        message = FetchResponse.FromString(data)
        batches = [batch_of(stored) for stored in message.batches]
    else:
        message = FetchResponse.FromString(match[0])
    return Response(
        batches,
        message.high_watermark,
        message.log_start_offset,
        message.next_offset,
        message.start_offset,
    )


def _batches(data: bytes, at: int) -> list[Batch] | None:
    """Returns the batches from `at` to the end; None where they are not laid out as in a file."""
    unpack, size, view = READ_HEADER.unpack_from, len(data), memoryview(data)
    batches = []
    while at + HEADER.size <= size:
        packed = unpack(data, at)
        length, *fields, _, records_length = packed[1::2]
        if packed[::2] != TAGS or (length & PADDING, records_length & PADDING) != (PADDED, PADDED):
            return None
        start, end = at + HEADER.size, at + LENGTH_BYTES + _value(length)
        if end > size or end - start != _value(records_length):
            return None
        batches.append(Batch(BatchHeader._make((*fields, end - start)), view[start:end]))
        at = end
    return batches if at == size else None


def _value(length: int) -> int:
    return length & 0x7F | length >> 1 & 0x3F80 | length >> 2 & 0x1FC000 | length >> 3 & 0xFE00000


def batch_of(stored: StoredBatch) -> Batch:
    """Returns the batch that a message holds; its records are not checked."""
    records = stored.records
    header = BatchHeader(
        stored.base_offset,
        stored.append_time_ms,
        stored.record_count,
        stored.offset_span,
        stored.max_timestamp_ms,
        stored.attributes,
        stored.producer_id,
        stored.producer_epoch,
        stored.base_sequence,
        stored.records_crc,
        len(records),
    )
    return Batch(header, records)
