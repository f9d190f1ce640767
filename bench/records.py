"""The records that are sent: random bytes with keys, made before anything is measured."""

import os
from functools import cache
from typing import NamedTuple

from logbroker.record.columns import Columns, encode_batch

SETS = 8
"""Different batches of one shape that take turns: nobody's data is always in the cache."""
FIELDS_BYTES = 40
"""What stands beside a batch in a request: the topic, its id, tags and lengths."""


class Shape(NamedTuple):
    """Records of this many bytes, this many a batch."""

    record_bytes: int
    record_count: int

    def __str__(self) -> str:
        return f"{self.record_bytes:,} B x {self.record_count:,}"


class Records(NamedTuple):
    """The columns of one batch."""

    values: list[bytes]
    keys: list[bytes]


@cache
def records_of(shape: Shape) -> list[Records]:
    """Returns batches of this shape."""
    return [
        Records(
            [os.urandom(shape.record_bytes) for _ in range(shape.record_count)],
            [b"key-%06d" % number for number in range(shape.record_count)],
        )
        for _ in range(SETS)
    ]


@cache
def request_bytes(shape: Shape) -> int:
    """Returns the size of the message that such a batch is sent as."""
    return stored_bytes(shape) + FIELDS_BYTES


@cache
def stored_bytes(shape: Shape) -> int:
    """Returns the size of such a batch in a file."""
    return encode_batch(Columns(*records_of(shape)[0]), now_ms=0).header.size_bytes
