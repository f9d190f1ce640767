"""Checksums and lengths made to hold again: or no mutation would get past them."""

from crc32c import crc32c

from fuzz.samples import LENGTH, SEED
from logbroker.record.batch import CHECKED_BYTES, HEADER, LENGTH_BYTES, TAGS
from logbroker.storage.file import index_file
from logbroker.storage.file.recovery import HEADER_SHAPE

TAG_PLACES = (0, 5, 14, 23, 28, 33, 42, 47, 56, 61, 66, 71, 76)
PLAIN_AT = 43
"""Where the attributes lie, which name the codec."""


def batch(data: bytes) -> bytes:
    """Returns the bytes as a batch with sound tags, lengths and checksums; short ones as is."""
    if len(data) < HEADER.size:
        return data
    return _sound(bytearray(data))


def plain_batch(data: bytes) -> bytes:
    """Returns the same, not compressed."""
    if len(data) < HEADER.size:
        return data
    changed = bytearray(data)
    changed[PLAIN_AT] &= 0xF8
    return _sound(changed)


def segment(data: bytes) -> bytes:
    """Returns the bytes with sound checksums wherever something has the shape of a batch."""
    changed, at = bytearray(data), 0
    while match := HEADER_SHAPE.search(changed, at):
        at = match.start()
        end = at + LENGTH_BYTES + _value(changed[at + 1 : at + 5])
        if at + HEADER.size <= end <= len(changed):
            changed[at:end] = _sound(changed[at:end])
            at = end
        else:
            at += 1
    return bytes(changed)


def checkpoint(data: bytes) -> bytes:
    """Returns the first line with its checksum."""
    line = data.partition(b"\n")[0] + b"\n"
    return line + b"crc32c %08x\n" % crc32c(line)


def index_files(data: bytes) -> bytes:
    """Returns both index files with sound counts and checksums; what is too short as is."""
    if len(data) < LENGTH.size:
        return data
    length = LENGTH.unpack_from(data)[0]
    index, times = data[LENGTH.size :][:length], data[LENGTH.size :][length:]
    index, times = index_of(index), index_of(times)
    return LENGTH.pack(len(index)) + index + times


def index_of(data: bytes) -> bytes:
    """Returns one index file with a sound count and checksum; what is too short as is."""
    size, checked = index_file.HEADER.size, index_file.CHECKED_BYTES
    if len(data) < size:
        return data
    data = data[: size + (len(data) - size) // 16 * 16]
    count = (len(data) - size) // 16
    front = data[: checked - 4] + LENGTH.pack(count)
    crc = crc32c(data[size:], crc32c(front, SEED))
    return front + LENGTH.pack(crc) + data[size:]


def _sound(data: bytearray, seed: int = SEED) -> bytes:
    for place, tag in zip(TAG_PLACES, TAGS, strict=True):
        data[place] = tag
    data[1:5] = _varint(len(data) - LENGTH_BYTES)
    data[77:81] = _varint(len(data) - HEADER.size)
    data[67:71] = LENGTH.pack(crc32c(bytes(data[HEADER.size :])))
    data[72:76] = LENGTH.pack(crc32c(bytes(data[:CHECKED_BYTES]), seed))
    return bytes(data)


def _varint(value: int) -> bytes:
    return bytes((value & 127 | 128, value >> 7 & 127 | 128, value >> 14 & 127 | 128, value >> 21))


def _value(varint: bytes | bytearray) -> int:
    return sum((byte & 127) << 7 * place for place, byte in enumerate(varint))
