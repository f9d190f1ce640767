"""Batches one after the other in bytes, each of them checked. Pure.

Both checksums are verified here whenever bytes are read, so this is written for speed:
a batch costs less than two microseconds besides its checksums.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from crc32c import crc32c

from logbroker.errors import LogbrokerError
from logbroker.record.batch import (
    CHECKED_BYTES,
    HEADER,
    LENGTH_BYTES,
    PADDED,
    PADDING,
    BatchHeader,
)

FRONT = struct.Struct("<BIBqBqBIBIBq24xBIBIBI")
"""A header without what reading does not need; both lengths as they lie there."""
HEADER_BYTES = HEADER.size
assert FRONT.size == HEADER_BYTES
UNCHECKED_TAGS = (0x0A, 0x5D, 0x7A)
"""The first one, and those that header_crc is not of."""

Buffer = bytes | memoryview


class Walked(NamedTuple):
    """One sound batch: where it lies, and what an index wants to know."""

    position: int
    end: int
    base_offset: int
    next_offset: int
    append_time_ms: int
    max_timestamp_ms: int


class Found(NamedTuple):
    """A run of whole batches in a buffer: from `start` to `end`, none if they are equal."""

    start: int
    end: int
    next_offset: int


def walk(data: Buffer, seed: int, at: int, offset: int) -> Iterator[Walked]:
    """Yields the sound batches from `at` on; the first one is at `offset`, the rest follow.

    Ends where there is no whole and sound batch with the offset that is due.
    """
    unpack, size = FRONT.unpack_from, len(data)
    with memoryview(data) as view:
        while at + HEADER_BYTES <= size:
            (
                tag, length, _, base_offset, _, append_time_ms, _, record_count, _, offset_span,
                _, max_timestamp_ms, _, records_crc, crc_tag, header_crc, last_tag, records_length,
            ) = unpack(view, at)  # fmt: skip
            if base_offset != offset or (tag, crc_tag, last_tag) != UNCHECKED_TAGS:
                return
            if length & PADDING != PADDED or records_length & PADDING != PADDED:
                return
            end = (
                at + LENGTH_BYTES + (length & 0x7F) + (length >> 1 & 0x3F80)
                + (length >> 2 & 0x1FC000) + (length >> 3 & 0xFE00000)
            )  # fmt: skip
            records_end = (
                at + HEADER_BYTES + (records_length & 0x7F) + (records_length >> 1 & 0x3F80)
                + (records_length >> 2 & 0x1FC000) + (records_length >> 3 & 0xFE00000)
            )  # fmt: skip
            if end != records_end or end > size or not 1 <= record_count <= offset_span:
                return
            if crc32c(view[at : at + CHECKED_BYTES], seed) != header_crc:
                return
            if crc32c(view[at + HEADER_BYTES : end]) != records_crc:
                return
            offset = base_offset + offset_span
            yield Walked(at, end, base_offset, offset, append_time_ms, max_timestamp_ms)
            at = end


def size_needed(data: Buffer, seed: int, at: int, least: int) -> int:
    """Returns how many bytes a buffer must have to hold the batch at `at`; 0 if it is unsound.

    Where not even its header is whole: `least` more than that.
    """
    if len(data) - at < HEADER_BYTES:
        return at + HEADER_BYTES + least
    try:
        return at + BatchHeader.decode(data, seed, at).size_bytes
    except LogbrokerError:
        return 0


def find_run(
    data: Buffer, seed: int, first_offset: int, offset: int, high_watermark: int, max_bytes: int
) -> Found:
    """Returns the run that begins with the batch of `offset`; the first one is whole always.

    `first_offset` is that of the batch at the buffer's beginning. The run ends before
    `high_watermark`, before it would be over `max_bytes`, and before what is not sound.
    """
    start = end = 0
    next_offset = first_offset
    for position, after, base_offset, following, _, _ in walk(data, seed, 0, first_offset):
        if following <= offset:
            start = end = after
            next_offset = following
            continue
        if base_offset >= high_watermark or (end > start and after - start > max_bytes):
            break
        start = start if end > start else position
        end, next_offset = after, following
    return Found(start, end, next_offset)
