"""The `batches` field of an answer: read by the layout that a file gives them.

What another encoder wrote means the same, and generated code reads it.
"""

import struct

from logbroker.record.batch import HEADER, LENGTH_BYTES, TAGS, Batch, BatchHeader
from logbroker.v1.stored_batch_pb2 import StoredBatch

READ_HEADER = struct.Struct(HEADER.format.replace("4s", "I"))
"""A batch's header, with its two lengths as numbers."""
PADDING, PADDED = 0x80808080, 0x00808080
"""Of a length in 4 bytes: the bits that are no part of the value, and what they must be."""


def read_batches(data: bytes, at: int) -> list[Batch] | None:
    """Returns the batches from `at` to the end; None where they are not laid out as in a file.

    Nothing in them is checked. Their records are views of `data`.
    """
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


def _value(length: int) -> int:
    return length & 0x7F | length >> 1 & 0x3F80 | length >> 2 & 0x1FC000 | length >> 3 & 0xFE00000
