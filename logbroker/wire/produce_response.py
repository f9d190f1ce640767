"""A ProduceResponse or a PublishResponse: what became of batches or records, in their order.

    response = { results tag, length, result }    result = receipt or error, tag and length first

Most of a receipt is the same for all batches of a partition: that is serialized once, and
what differs lies behind it.
"""

from collections.abc import Iterable
from functools import lru_cache

from logbroker.config import Durability
from logbroker.errors import LogbrokerError
from logbroker.record.receipt import Receipt
from logbroker.v1 import record_pb2
from logbroker.wire.convert import TO_PROTO
from logbroker.wire.framing import framed
from logbroker.wire.status import error_to_proto

RESULTS_TAG = RECEIPT_TAG = 0x0A
ERROR_TAG = 0x12


def produce_response(results: Iterable[Receipt | LogbrokerError]) -> bytes:
    """Returns a serialized ProduceResponse, or PublishResponse: they have the same fields."""
    return b"".join([framed(RESULTS_TAG, _result(result)) for result in results])


def _result(result: Receipt | LogbrokerError) -> bytes:
    if isinstance(result, LogbrokerError):
        return framed(ERROR_TAG, error_to_proto(result).SerializeToString())
    topic, topic_id, partition, base_offset, count, append_time_ms, durability, duplicate = result
    own = record_pb2.Receipt(
        base_offset=base_offset, record_count=count, append_time_ms=append_time_ms
    )
    if duplicate:
        own.duplicate = True
    place = _place(topic, topic_id, partition, durability)
    return framed(RECEIPT_TAG, place + own.SerializeToString())


@lru_cache(maxsize=4_096)
def _place(topic: str, topic_id: str, partition: int, durability: Durability) -> bytes:
    return record_pb2.Receipt(
        topic=topic, topic_id=topic_id, partition=partition, durability=TO_PROTO[durability]
    ).SerializeToString()
