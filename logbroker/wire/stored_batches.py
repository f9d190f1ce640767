"""The `batches` field of an answer: read by the layout that a file gives them.

What another encoder wrote means the same, and generated code reads it.
"""

from logbroker.record.batch import HEADER, LENGTH_BYTES, TAGS, Batch, BatchHeader, length_of
from logbroker.v1.stored_batch_pb2 import StoredBatch


def read_batches(data: bytes, at: int) -> list[Batch] | None:
    """Returns the batches from `at` to the end; None where they are not laid out as in a file.

    Nothing in them is checked. Their records are views of `data`.
    """
    unpack, size, view = HEADER.unpack_from, len(data), memoryview(data)
    batches = []
    while at + HEADER.size <= size:
        packed = unpack(data, at)
        length, *fields, _, records_length = packed[1::2]
        start, end = at + HEADER.size, at + LENGTH_BYTES + length_of(length)
        is_whole = start <= end <= size and end - start == length_of(records_length)
        if packed[::2] != TAGS or not is_whole:
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
