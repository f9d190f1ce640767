"""What an `.index` and a `.timeindex` file have in common: a summary and two columns. Pure.

      at  bytes  field
       0      4  magic               "LBOI": offsets, "LBTI": times
       4      4  format              1
       8      8  base_offset         of the segment
      16      8  next_offset         behind its last batch
      24      8  size_bytes          of its whole batches
      32      8  file_bytes          of its `.log` when this was written
      40      8  first_append_time_ms
      48      8  last_append_time_ms
      56      8  max_timestamp_ms
      64      4  entry_count
      68      4  crc                 CRC-32C of all other bytes, seeded as header_crc is
      72         keys                entry_count times 8 bytes, ascending
                 values              entry_count times 8 bytes, ascending

All little-endian and signed, but for the counts and the crc. An index is a hint: a file
that is missing, cut, swapped or noise does not decode, and is made anew from the log.
"""

import struct
import sys
from array import array
from typing import NamedTuple

from crc32c import crc32c

HEADER = struct.Struct("<4sIqqqqqqqII")
CRC = struct.Struct("<I")
FORMAT = 1
assert HEADER.size == 72
CHECKED_BYTES = HEADER.size - CRC.size


class Summary(NamedTuple):
    """What is known of a segment without reading it. Times are 0 where there is no batch."""

    base_offset: int
    next_offset: int
    size_bytes: int
    file_bytes: int
    first_append_time_ms: int
    last_append_time_ms: int
    max_timestamp_ms: int


class IndexFile(NamedTuple):
    """The content of one index file."""

    summary: Summary
    keys: "array[int]"
    values: "array[int]"


def encode(magic: bytes, content: IndexFile, seed: int) -> bytes:
    """Returns the bytes of the file."""
    assert len(content.keys) == len(content.values)
    front = HEADER.pack(magic, FORMAT, *content.summary, len(content.keys), 0)[:CHECKED_BYTES]
    columns = _little_endian(content.keys) + _little_endian(content.values)
    return front + CRC.pack(crc32c(columns, crc32c(front, seed))) + columns


def decode(magic: bytes, data: bytes, seed: int) -> IndexFile | None:
    """Returns the content; None if these are not the bytes of such a file, all of them."""
    if len(data) < HEADER.size:
        return None
    found, format_, *fields, count, crc = HEADER.unpack_from(data)
    columns = data[HEADER.size :]
    if (found, format_, len(columns)) != (magic, FORMAT, 16 * count):
        return None
    if crc32c(columns, crc32c(data[:CHECKED_BYTES], seed)) != crc:
        return None
    keys, values = array("q", columns[: 8 * count]), array("q", columns[8 * count :])
    if sys.byteorder == "big":
        keys.byteswap()
        values.byteswap()
    return IndexFile(Summary(*fields), keys, values)


def _little_endian(column: "array[int]") -> bytes:
    if sys.byteorder == "big":
        column = array("q", column)
        column.byteswap()
    return column.tobytes()
