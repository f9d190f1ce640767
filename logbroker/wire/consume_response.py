"""A ConsumeResponse or a LeaseResponse: some fields, then the bytes of a file."""

from collections.abc import Sequence

from logbroker.group.ledger import DeliveredRun
from logbroker.v1.consume_service_pb2 import ConsumeResponse, Delivery, LeasedRange, LeaseResponse


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


def lease_response(delivery: Delivery, batches: bytes) -> bytes:
    """Returns a serialized LeaseResponse."""
    return LeaseResponse(delivery=delivery).SerializeToString() + batches
