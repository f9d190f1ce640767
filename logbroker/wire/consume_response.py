"""A ConsumeResponse or a LeaseResponse: some fields, then the bytes of a file.

Most of what says what a delivery is, is the same for all of a partition: that is serialized
once, and what differs lies behind it.
"""

from collections.abc import Sequence
from functools import lru_cache

from logbroker.group.ledger import DeliveredRun
from logbroker.record.batch import Batch
from logbroker.v1.consume_service_pb2 import ConsumeResponse, Delivery
from logbroker.wire.framing import framed
from logbroker.wire.stored_batches import batch_of, read_batches

BATCHES_TAG, DELIVERY_TAG = 0x0A, 0x12
"""Of both responses."""
LENGTH_DELIMITED = 2


def delivery_fields(
    *,
    topic: str,
    topic_id: str,
    partition: int,
    token: int,
    lease_ms: int,
    runs: Sequence[DeliveredRun],
    dead_letter_topic: str,
) -> bytes:
    """Returns the field `delivery` of a response, serialized: what the batches are."""
    own = Delivery(token=token)
    for first, end, deliveries, failures, redrives in runs:
        run = own.ranges.add(first_offset=first, end_offset=end, delivery_number=deliveries)
        if failures:
            run.failures = failures
        if redrives:
            run.redrives = redrives
    place = _place(topic, topic_id, partition, lease_ms, dead_letter_topic)
    return framed(DELIVERY_TAG, place + own.SerializeToString())


@lru_cache(maxsize=4_096)
def _place(
    topic: str, topic_id: str, partition: int, lease_ms: int, dead_letter_topic: str
) -> bytes:
    return Delivery(
        topic=topic,
        topic_id=topic_id,
        partition=partition,
        lease_ms=lease_ms,
        dead_letter_topic=dead_letter_topic,
    ).SerializeToString()


def read_consume_response(data: bytes) -> tuple[ConsumeResponse, Sequence[Batch]]:
    """Returns the fields of a serialized ConsumeResponse, and its batches, whose records are views.

    Nothing in the batches is checked. DecodeError where the bytes are no such message.
    """
    at = _fields_end(data)
    batches = None if at is None else read_batches(data, at)
    if batches is None:
        message = ConsumeResponse.FromString(data)
        return message, [batch_of(stored) for stored in message.batches]
    return ConsumeResponse.FromString(data[:at]), batches


def _fields_end(data: bytes) -> int | None:
    """Returns where the first batch begins, or the end; None where it cannot be seen so simply.

    All fields but the batches have tags of one byte, and a length.
    """
    at, size = 0, len(data)
    while at < size and (tag := data[at]) != BATCHES_TAG:
        if tag & 7 != LENGTH_DELIMITED or tag >= 0x80:
            return None
        length = shift = 0
        while True:
            at += 1
            if at >= size or shift > 28:
                return None
            length |= (data[at] & 0x7F) << shift
            shift += 7
            if data[at] < 0x80:
                break
        at += 1 + length
    return at if at <= size else None
