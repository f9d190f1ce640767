"""A ConsumeResponse or a LeaseResponse: some fields, then the bytes of a file."""

from collections.abc import Sequence

from logbroker.group.ledger import DeliveredRun
from logbroker.record.batch import Batch
from logbroker.v1.consume_service_pb2 import ConsumeResponse, Delivery, LeasedRange, LeaseResponse
from logbroker.wire.stored_batches import batch_of, read_batches

BATCHES_TAG = 0x0A
LENGTH_DELIMITED = 2


def delivery_to_proto(
    *,
    topic: str,
    topic_id: str,
    partition: int,
    token: int,
    lease_ms: int,
    runs: Sequence[DeliveredRun],
    dead_letter_topic: str,
) -> Delivery:
    """Returns the message that says what the batches are."""
    return Delivery(
        topic=topic,
        topic_id=topic_id,
        partition=partition,
        token=token,
        lease_ms=lease_ms,
        ranges=[
            LeasedRange(
                first_offset=run.first,
                end_offset=run.end,
                delivery_number=run.deliveries,
                failures=run.failures,
                redrives=run.redrives,
            )
            for run in runs
        ],
        dead_letter_topic=dead_letter_topic,
    )


def consume_response(fields: ConsumeResponse, batches: bytes) -> bytes:
    """Returns a serialized ConsumeResponse: the batches lie behind its fields as they are."""
    return fields.SerializeToString() + batches


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


def lease_response(delivery: Delivery, batches: bytes) -> bytes:
    """Returns a serialized LeaseResponse."""
    return LeaseResponse(delivery=delivery).SerializeToString() + batches


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
