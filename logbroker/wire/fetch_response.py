"""A FetchResponse: some fields, then the bytes of a file. Written and read by that layout.

What another encoder wrote means the same, and generated code reads it.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from logbroker.record.batch import Batch
from logbroker.v1.fetch_service_pb2 import FetchResponse
from logbroker.wire.stored_batches import batch_of, read_batches

FIELDS = re.compile(rb"(?:[\x10\x18\x20\x28][\x80-\xff]{0,9}[\x00-\x7f])*")
"""The four numbers, whichever are there: a tag and a varint each."""


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
    batches = read_batches(data, match.end())
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
