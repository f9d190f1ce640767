"""What a segment holds after a crash, or after worse. Pure.

A tail with no valid batch behind it is torn: the last segment of a log is cut there.
Damage with a valid batch behind it is reported and read around, and the file stays as
it is. Zeros at the end are preallocated room. In a sealed segment nothing is cut: a
bad tail is damage up to the next segment.
"""

import re
import struct
from collections.abc import Callable
from typing import NamedTuple

from crc32c import crc32c

from logbroker.errors import DataLossError
from logbroker.record.batch import HEADER, LAYOUT, BatchHeader
from logbroker.storage.file.walk import Buffer, Walked, walk

SHAPE = b"".join(b"\\x%02x.{%d}" % (tag, struct.calcsize(code)) for tag, code in LAYOUT.items())
HEADER_SHAPE = re.compile(SHAPE, re.DOTALL)
"""Where a header may be; its checksum decides."""
ZEROS_STEP_BYTES = 1 << 16


class Damage(NamedTuple):
    """Bytes that are not batches, with a batch behind them."""

    offset: int
    """The first that is lost."""
    next_offset: int
    """The next good one."""
    position: int
    next_position: int


class Scan(NamedTuple):
    """What was found."""

    next_offset: int
    end: int
    """Of the last valid batch."""
    torn_bytes: int
    """Behind it, without the zeros at the end."""
    damage: tuple[Damage, ...]


def scan(
    data: Buffer, base_offset: int, seed: int, note: Callable[[Walked], None] | None = None
) -> Scan:
    """Walks the batches of a segment, and over whatever lies between them.

    `note` is told of each sound batch, in order.
    """
    offset, at = base_offset, 0
    damage: list[Damage] = []
    while True:
        for walked in walk(data, seed, at, offset):
            at, offset = walked.end, walked.next_offset
            if note:
                note(walked)
        found = _next_batch(data, at, offset, seed)
        if found is None:
            return Scan(offset, at, _torn_bytes(data, at), tuple(damage))
        start, header = found
        damage.append(Damage(offset, header.base_offset, at, start))
        at, offset = start, header.base_offset


def _next_batch(data: Buffer, at: int, offset: int, seed: int) -> tuple[int, BatchHeader] | None:
    """Returns the first valid batch at or behind `at` with offsets not below `offset`."""
    with memoryview(data) as view:
        while match := HEADER_SHAPE.search(data, at):
            at = match.start()
            try:
                header = BatchHeader.decode(view, seed, at)
            except DataLossError:
                at += 1
                continue
            end = at + header.size_bytes
            if header.base_offset >= offset and end <= len(view):
                with view[at + HEADER.size : end] as records:
                    if crc32c(records) == header.records_crc:
                        return at, header
            at = end  # a valid header owns its extent, whatever it may contain
    return None


def _torn_bytes(data: Buffer, at: int) -> int:
    """Returns how many bytes there are behind `at`, up to the last that is not zero."""
    with memoryview(data) as view:
        end = len(view)
        while end > at:
            start = max(end - ZEROS_STEP_BYTES, at)
            if kept := bytes(view[start:end]).rstrip(b"\0"):
                return start + len(kept) - at
            end = start
    return 0
