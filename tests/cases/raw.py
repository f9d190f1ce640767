"""Calls as any gRPC client makes them, with the generated code alone."""

from collections.abc import Sequence

from crc32c import crc32c

from logbroker.v1 import produce_service_pb2 as pb
from logbroker.v1.records_pb2 import Header, RecordHeaders, Records
from logbroker.v1.stored_batch_pb2 import StoredBatch


def produce_request(
    topic: str,
    values: Sequence[bytes],
    *,
    partition: int = 0,
    headers: Sequence[tuple[str, bytes | None]] = (),
    producer_id: int = 0,
    base_sequence: int = 0,
) -> pb.ProduceRequest:
    """Returns a request to append one batch; `headers` are those of its first record."""
    columns = Records(values=values)
    if headers:
        made = [Header(name=name, value=value) for name, value in headers]
        columns.headers.append(RecordHeaders(record=0, headers=made))
    records = columns.SerializeToString()
    batch = StoredBatch(
        record_count=len(values),
        max_timestamp_ms=1,
        producer_id=producer_id,
        base_sequence=base_sequence,
        records_crc=crc32c(records),
        records=records,
    )
    return pb.ProduceRequest(
        entries=[pb.ProduceEntry(topic=topic, partition=partition, batch=batch)]
    )
