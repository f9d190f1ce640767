"""A ProduceRequest: entries, each a batch as a segment file has it and then some fields.

Our clients send the batch first and in exactly the stored layout, so that its records
need no copy and its header no parser. Any other order and encoding is read as well.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from google.protobuf.message import DecodeError

from logbroker.errors import InvalidError
from logbroker.record.batch import HEADER, LENGTH_BYTES, TAGS, Batch, BatchHeader, length_of
from logbroker.v1.produce_service_pb2 import ProduceEntry, ProduceRequest
from logbroker.wire.framing import varint

ENTRIES_PER_REQUEST = 1 << 14
"""Bounds what a request of many small entries costs."""

ENTRY_TAG = 0x0A
"""Field 1, length-delimited."""


class Produced(NamedTuple):
    """A request to append one batch."""

    topic: str
    topic_id: str
    partition: int
    batch: Batch
    expected_offset: int | None


def produce_entry(batch: Batch, fields: bytes) -> tuple[bytes | memoryview, ...]:
    """Returns the parts of an entry: `batch`, then `fields`, a ProduceEntry without one."""
    size = batch.header.size_bytes + len(fields)
    return b"\x0a" + varint(size), batch.header.encode_unstamped(), batch.records, fields


def produce_request(entries: Iterable[tuple[bytes | memoryview, ...]]) -> bytes:
    """Returns a serialized ProduceRequest."""
    return b"".join(chain.from_iterable(entries))


def entries_of(data: bytes) -> list[Produced]:
    """Reads a request. InvalidError for bytes that are none; the batches are not yet checked."""
    found = _entries_of(data)
    if len(found) > ENTRIES_PER_REQUEST:
        message = f"a request has at most {ENTRIES_PER_REQUEST} entries, not {len(found)}"
        raise InvalidError("INVALID_ARGUMENT", message, entry_count=len(found))
    return found


def _entries_of(data: bytes) -> list[Produced]:
    try:
        entries, view, at = [], memoryview(data), 0
        while at < len(data):
            start, end = _entry_at(data, at)
            produced = _as_stored(view, start, end)
            if produced is None:
                return [_parsed(entry) for entry in ProduceRequest.FromString(data).entries]
            entries.append(produced)
            at = end
    except DecodeError as error:
        raise InvalidError("INVALID_ARGUMENT", "the bytes are not a ProduceRequest") from error
    return entries


def _entry_at(data: bytes, at: int) -> tuple[int, int]:
    """Returns where the entry behind this tag starts and ends; nowhere if it is no entry."""
    if data[at] != ENTRY_TAG:
        return at, at
    value, shift = 0, 0
    for place in range(at + 1, min(at + 6, len(data))):
        value |= (data[place] & 127) << shift
        if data[place] < 128:
            return place + 1, place + 1 + value
        shift += 7
    return at, at


def _as_stored(data: memoryview, start: int, end: int) -> Produced | None:
    """Reads an entry that begins with a batch in the stored layout; None for any other."""
    if end > len(data) or end - start < HEADER.size:
        return None
    packed: Sequence[int] = HEADER.unpack_from(data, start)
    if packed[::2] != TAGS:
        return None
    length, *fields, _, records_length = packed[1::2]
    header = BatchHeader._make((*fields, length_of(records_length)))
    records_end = start + header.size_bytes
    is_whole = header.records_bytes >= 0 and records_end <= end
    if not is_whole or length_of(length) != header.size_bytes - LENGTH_BYTES:
        return None
    rest = _fields_of(bytes(data[records_end:end]))
    if rest is None:
        return None  # the batch is in two parts, to be merged
    if not header.offset_span:
        header = header._replace(offset_span=header.record_count)
    topic, topic_id, partition, expected_offset = rest
    batch = Batch(header, data[start + HEADER.size : records_end])
    return Produced(topic, topic_id, partition, batch, expected_offset)


@lru_cache(maxsize=4_096)
def _fields_of(data: bytes) -> tuple[str, str, int, int | None] | None:
    """Reads what stands behind a batch: the same bytes again and again."""
    fields = ProduceEntry.FromString(data)
    if fields.HasField("batch"):
        return None
    expected = fields.expected_offset if fields.HasField("expected_offset") else None
    return fields.topic, fields.topic_id, fields.partition, expected


def _parsed(fields: ProduceEntry) -> Produced:
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
    expected = fields.expected_offset if fields.HasField("expected_offset") else None
    found = Batch(header, batch.records)
    return Produced(fields.topic, fields.topic_id, fields.partition, found, expected)
