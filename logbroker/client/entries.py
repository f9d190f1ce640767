"""The entries of requests: batches with topic, partition, producer and sequence. Pure."""

from logbroker.client.lane import Lane
from logbroker.client.outgoing_batch import OutgoingBatch
from logbroker.record.batch import Batch, BatchHeader
from logbroker.topic.topic import Topic
from logbroker.v1.produce_service_pb2 import ProduceEntry
from logbroker.wire.produce_request import produce_entry


class Entries:
    """Makes the entries of one producer. What is the same for all of a partition is made once."""

    def __init__(self, *, is_idempotent: bool) -> None:
        self.topic: Topic | None = None
        """Known before the first entry, and always the same incarnation."""
        self._is_idempotent = is_idempotent
        self._fields: dict[int, bytes] = {}

    def of(self, batch: OutgoingBatch, lane: Lane) -> tuple[bytes | memoryview, ...]:
        """Returns the parts of the entry of a batch that the lane has just started."""
        if batch.expected_offset is not None:
            fields = self._fields_of(lane.partition, batch.expected_offset)
        elif lane.partition in self._fields:
            fields = self._fields[lane.partition]
        else:
            fields = self._fields[lane.partition] = self._fields_of(lane.partition, None)
        return produce_entry(self._stamped(batch, lane), fields)

    def _stamped(self, batch: OutgoingBatch, lane: Lane) -> Batch:
        assert batch.encoded is not None
        assert batch.sequence is not None
        assert lane.identity is not None
        if not self._is_idempotent:
            return batch.encoded
        header, records = batch.encoded
        stamped = BatchHeader(*header[:6], *lane.identity, batch.sequence, *header[9:])
        return Batch(stamped, records)

    def _fields_of(self, partition: int, expected_offset: int | None) -> bytes:
        assert self.topic is not None
        return ProduceEntry(
            topic=self.topic.topic,
            topic_id=self.topic.topic_id,
            partition=partition,
            expected_offset=expected_offset,
        ).SerializeToString()
