"""The stored batch: the unit that is produced, stored and fetched.

      at  tag  bytes  field
       0   0A      4  length of what follows   a varint, padded: always 4 bytes
       5   09      8  base_offset              stamped by the broker
      14   11      8  append_time_ms           stamped by the broker
      23   1D      4  record_count             at least 1
      28   25      4  offset_span              offsets it covers: record_count, or more
      33   29      8  max_timestamp_ms
      42   35      4  attributes               bits 0-2: codec
      47   39      8  producer_id              0: none
      56   45      4  producer_epoch
      61   4D      4  base_sequence
      66   55      4  records_crc              CRC-32C of the records, by the producer
      71   5D      4  header_crc               CRC-32C of bytes 0 to 71, seeded, by the broker
      76   7A      4  length of the records    a varint, padded
      81              records                  as the producer sent them

The seed of header_crc is the CRC-32C of topic id and partition: a batch that lies in
the wrong file, or inside a record of another topic, is not a batch.

Read as protobuf this is one element of `repeated StoredBatch batches = 1`, so a run of
batches is a Segment, and the larger part of a FetchResponse. Every field is always
written, little-endian. tests/golden/batch_v1.hex pins these bytes.
"""

import struct
from typing import NamedTuple, Self

from crc32c import crc32c

from logbroker.errors import DataLossError
from logbroker.limits import LENGTH_BYTES_CEILING
from logbroker.record.compression import Codec

LAYOUT = {  # the table above: tag -> struct code
    0x0A: "I", 0x09: "q", 0x11: "q", 0x1D: "I", 0x25: "I", 0x29: "q", 0x35: "I",
    0x39: "q", 0x45: "I", 0x4D: "I", 0x55: "I", 0x5D: "I", 0x7A: "I",
}  # fmt: skip
HEADER = struct.Struct("<" + "".join(f"B{code}" for code in LAYOUT.values()))
HEADER_CRC = struct.Struct("<BI")
PADDING, PADDED = 0x80808080, 0x00808080
"""Of a length in 4 bytes: the bits that are no part of the value, and what they must be."""
TAGS = tuple(LAYOUT)
LENGTH_BYTES = 5
"""The first tag and length, which the length does not count."""
CHECKED_BYTES = 71
"""What header_crc is of."""
CODEC_BITS = 0b111
assert HEADER.size == 81


class BatchHeader(NamedTuple):
    """The constant-size front of a batch, without its checksum of itself."""

    base_offset: int
    append_time_ms: int
    record_count: int
    offset_span: int
    max_timestamp_ms: int
    attributes: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_crc: int
    records_bytes: int

    @property
    def next_offset(self) -> int:
        """The offset right after the last record."""
        return self.base_offset + self.offset_span

    @property
    def size_bytes(self) -> int:
        """Of the whole batch in a file, header and records."""
        return HEADER.size + self.records_bytes

    @property
    def codec(self) -> Codec:
        """How the records are compressed; ValueError for a codec there is not."""
        number = self.attributes & CODEC_BITS
        return Codec(number) if number else Codec.NONE

    def encode(self, seed: int) -> bytes:
        """Returns the 81 bytes. `seed` is the partition's (`PartitionId.seed`)."""
        packed = self.encode_unstamped()
        crc = crc32c(packed[:CHECKED_BYTES], seed)
        end = CHECKED_BYTES + HEADER_CRC.size
        return packed[:CHECKED_BYTES] + HEADER_CRC.pack(0x5D, crc) + packed[end:]

    def encode_unstamped(self) -> bytes:
        """Returns the 81 bytes as a producer sends them: without what the broker stamps."""
        assert 1 <= self.record_count <= self.offset_span
        return HEADER.pack(
            0x0A, _padded(HEADER.size + self.records_bytes - LENGTH_BYTES),
            0x09, self.base_offset, 0x11, self.append_time_ms, 0x1D, self.record_count,
            0x25, self.offset_span, 0x29, self.max_timestamp_ms, 0x35, self.attributes,
            0x39, self.producer_id, 0x45, self.producer_epoch, 0x4D, self.base_sequence,
            0x55, self.records_crc, 0x5D, 0, 0x7A, _padded(self.records_bytes),
        )  # fmt: skip

    @classmethod
    def decode(cls, data: bytes | memoryview, seed: int, at: int = 0) -> Self:
        """Reads the header at `at`; raises DataLossError if no whole, valid one is there."""
        if len(data) - at < HEADER.size:
            raise DataLossError("DAMAGED_BATCH", f"the header at byte {at} is cut", position=at)
        packed = HEADER.unpack_from(data, at)
        length, *fields, header_crc, records_length = packed[1::2]
        if packed[::2] != TAGS or crc32c(data[at : at + CHECKED_BYTES], seed) != header_crc:
            raise DataLossError("DAMAGED_BATCH", f"no header at byte {at}", position=at)
        header = cls._make((*fields, length_of(records_length)))
        is_whole = length_of(length) == header.size_bytes - LENGTH_BYTES
        if not (is_whole and 1 <= header.record_count <= header.offset_span):
            raise DataLossError("DAMAGED_BATCH", f"no sound header at byte {at}", position=at)
        return header


class Batch(NamedTuple):
    """A header and the records it is about, as serialized (and perhaps compressed)."""

    header: BatchHeader
    records: bytes | memoryview

    @classmethod
    def unstamped(
        cls,
        records: bytes,
        *,
        record_count: int,
        max_timestamp_ms: int = 0,
        codec: Codec = Codec.NONE,
        producer_id: int = 0,
        producer_epoch: int = 0,
        base_sequence: int = 0,
    ) -> Self:
        """Returns what a producer sends: the broker's fields are 0."""
        header = BatchHeader(
            0, 0, record_count, record_count, max_timestamp_ms, codec,
            producer_id, producer_epoch, base_sequence, crc32c(records), len(records),
        )  # fmt: skip
        return cls(header, records)

    def stamped(self, *, base_offset: int, append_time_ms: int) -> Self:
        """Returns the batch with the broker's two fields; the records are not touched."""
        header = self.header._replace(base_offset=base_offset, append_time_ms=append_time_ms)
        return self._replace(header=header)

    def encode(self, seed: int) -> bytes:
        """Returns the bytes as a segment file has them."""
        return b"".join((self.header.encode(seed), self.records))

    @classmethod
    def decode(cls, data: bytes | memoryview, seed: int, at: int = 0) -> Self:
        """Reads the whole batch at `at`; DataLossError unless both checksums hold."""
        header = BatchHeader.decode(data, seed, at)
        records = data[at + HEADER.size : at + header.size_bytes]
        if len(records) != header.records_bytes or crc32c(records) != header.records_crc:
            message = f"the records of offset {header.base_offset} are damaged"
            raise DataLossError("DAMAGED_BATCH", message, position=at)
        return cls(header, records)


def length_of(padded: int) -> int:
    """Returns the value of a padded varint that was read as a number; -1 where it is none."""
    if padded & PADDING != PADDED:
        return -1
    return padded & 0x7F | padded >> 1 & 0x3F80 | padded >> 2 & 0x1FC000 | padded >> 3 & 0xFE00000


def _padded(value: int) -> int:
    assert 0 <= value < LENGTH_BYTES_CEILING
    return (
        value & 0x7F
        | value << 1 & 0x7F00
        | value << 2 & 0x7F0000
        | value << 3 & 0x7F000000
        | PADDED
    )
