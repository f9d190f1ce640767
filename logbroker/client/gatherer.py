"""Gathers records in batches, one open batch a partition, and passes on what is full.

room given to batches that are not answered = buffer.held_bytes
of a partition, at most one batch is open, and it is the last
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from logbroker.client import batcher
from logbroker.client.batcher import FIELD_BYTES, TIMESTAMP_BYTES, Bytes, Share
from logbroker.client.buffer import Buffer
from logbroker.client.connection import Connection
from logbroker.client.delivery import Delivery, DeliverySettings
from logbroker.client.lane import Lane
from logbroker.client.outgoing_batch import OutgoingBatch
from logbroker.client.producer_settings import FIRST_GRANT_BYTES, GRANT_BYTES, ProducerSettings
from logbroker.limits import RECORDS_PER_BATCH
from logbroker.record.batch import Batch
from logbroker.record.columns import Columns, RecordLimits, encode_batch
from logbroker.record.compression import Codec
from logbroker.topic.topic import Topic

AT_ONCE_BYTES = 8 << 20
"""Up to so much is encoded in one go, while nothing else runs; more goes batch by batch."""


class Room(NamedTuple):
    """What a record needs in a batch."""

    size: int
    has_key: bool
    has_timestamp: bool

    def bytes_in(self, batch: OutgoingBatch) -> int:
        """Returns its bytes, and those of columns that all earlier records then need as well."""
        each = FIELD_BYTES if self.has_key and batch.keys is None else 0
        each += TIMESTAMP_BYTES if self.has_timestamp and batch.is_plain else 0
        return self.size + each * len(batch.values)


class Gatherer:
    """The open batches of one producer, and the room for all that are not answered."""

    def __init__(
        self,
        connection: Connection,
        settings: ProducerSettings,
        on_failed: Callable[[OutgoingBatch], None],
    ) -> None:
        self._clock = connection.clock
        self._random = connection.random
        self._settings = settings
        self._codec = settings.codec_number or Codec.NONE
        self._on_failed = on_failed
        self.buffer = Buffer(settings.buffer_bytes)
        self.delivery = Delivery(
            connection,
            DeliverySettings(
                codec=self._codec,
                max_in_flight=settings.max_in_flight,
                is_idempotent=settings.idempotent,
                delivery_timeout_ms=settings.delivery_timeout_ms,
            ),
            seal=self.seal,
            on_answered=self._answered,
        )
        self.limits = RecordLimits(0, 0, 0, 0)
        """The broker's, once it has started."""
        self.partition_count = 1
        self.has_filled = False
        """A batch is full since this was last cleared: a moment to let the loop send it."""
        self._max_batch_bytes = self._first_grant = 0
        self._turn = 0

    def start(self, topic: Topic, limits: RecordLimits) -> None:
        """Begins, once topic and limits are known."""
        self.limits = limits
        self._max_batch_bytes = min(self._settings.max_batch_bytes, limits.batch_bytes - 1_024)
        self._first_grant = min(FIRST_GRANT_BYTES, limits.record_bytes, self._max_batch_bytes)
        # Producers of one record each must not all begin at partition 0.
        self._turn = self._random.randrange(topic.partition_count)
        self.grow(topic)
        self.delivery.start(topic)

    def grow(self, topic: Topic) -> None:
        """Takes on the topic's new partitions."""
        self.delivery.grow(topic)
        self.partition_count = topic.partition_count

    def lane(self, partition: int | None) -> Lane:
        """Returns a partition's lane; for None, the one whose turn it is."""
        return self.delivery.lanes[self._turn if partition is None else partition]

    def batch_with_room(self, lane: Lane, room: Room, *, alone: bool) -> OutgoingBatch | None:
        """Returns the lane's open batch, made if need be, its room taken; None if there is none.

        The delivery has to look at the lane once the record is in it.
        """
        batch = lane.open
        if batch is not None and (alone or self._is_full(batch, room.bytes_in(batch))):
            self.seal(lane)
            self.delivery.look_at(lane)
            self.has_filled = True
            batch = None
        size = room.bytes_in(batch) if batch else room.size
        if batch is None or batch.left < size:
            grant = self._grant(batch, size) if batch else max(size, self._first_grant)
            if not self.buffer.take(grant):
                self.delivery.hurry()
                return None
            if batch is None:
                now_ms = self._clock.monotonic_ms()
                batch = lane.open = OutgoingBatch(
                    lane.partition,
                    lingers_until_ms=now_ms + self._settings.linger_ms,
                    deadline_ms=now_ms + self._settings.delivery_timeout_ms,
                )
                self.delivery.accept(batch, lane)
            batch.left += grant
            batch.granted_bytes += grant
        batch.left -= size
        return batch

    def seal(self, lane: Lane) -> None:
        """Ends the lane's open batch; keyless records go on to the next partition."""
        batch, lane.open = lane.open, None
        assert batch is not None
        self.buffer.give(batch.seal())
        lane.push(batch)
        if lane.partition == self._turn:
            self._next_turn()

    def send_sealed(self, batch: OutgoingBatch) -> bool:
        """Sends a sealed batch behind the open one, if there is room, and tells whether."""
        if not self.buffer.take(batch.granted_bytes):
            self.delivery.hurry()
            return False
        lane = self.delivery.lanes[batch.partition]
        if lane.open is not None:
            self.seal(lane)
        self.delivery.accept(batch, lane)
        self.delivery.look_at(lane)
        return True

    def sealed(self, columns: Columns, partition: int | None) -> list[OutgoingBatch]:
        """Returns checked columns as sealed batches, in the order of their records."""
        return [
            OutgoingBatch.of_columns(place, share, size, self._deadline_ms())
            for place, share, size in self._shares(columns, partition)
        ]

    def at_once(
        self,
        values: Sequence[Bytes | None],
        keys: Sequence[Bytes | None] | None,
        timestamps_ms: Sequence[int] | None,
        partition: int | None,
    ) -> list[OutgoingBatch] | None:
        """Returns columns as batches, where that is sure to be right without a closer look.

        That is: no two records need go to different partitions, none is null or too large, and
        all are so few bytes that they may be encoded in one go.
        """
        columns = Columns(values, keys, timestamps_ms)  # type: ignore[arg-type]  # or a TypeError
        count = len(values)
        if not count or self._codec is not Codec.NONE:
            return None
        if any(column is not None and len(column) != count for column in columns[1:3]):
            return None
        if partition is None and keys is not None and self.partition_count > 1:
            return None
        if partition is not None and not 0 <= partition < self.partition_count:
            return None
        try:
            batches = self._encoded_whole(columns) or self._encoded_in_parts(columns)
        except (TypeError, ValueError):
            return None  # the closer look says which record it is
        deadline_ms = self._deadline_ms()
        return [
            OutgoingBatch.of_encoded(
                self._next_turn() if partition is None else partition, batch, deadline_ms
            )
            for batch in batches
        ] or None

    def _encoded_whole(self, columns: Columns) -> list[Batch]:
        """Returns one batch if all records together are not larger than one may be; or none."""
        count, largest = len(columns.values), min(self._max_batch_bytes, self.limits.record_bytes)
        if count > RECORDS_PER_BATCH or count * len(columns.values[0] or b"") > largest:
            return []
        encoded = encode_batch(columns, now_ms=self._clock.now_ms())
        return [encoded] if encoded.header.records_bytes <= largest else []

    def _encoded_in_parts(self, columns: Columns) -> list[Batch]:
        """Returns batches if no record is too large, which costs little to see; or none."""
        measured: list[Sequence[Any]] = [columns.values, columns.keys or [b""]]
        if sum(max(map(len, column)) for column in measured) > self.limits.record_bytes:
            return []
        if sum(sum(map(len, column)) for column in measured) > AT_ONCE_BYTES:
            return []
        now_ms = self._clock.now_ms()
        shares = batcher.cut(columns, 0, self._max_batch_bytes)
        return [encode_batch(share.columns, now_ms=now_ms) for share in shares]

    def _shares(self, columns: Columns, partition: int | None) -> list[Share]:
        most = self._max_batch_bytes
        if partition is not None:
            return list(batcher.cut(columns, partition, most))
        if columns.keys is None or self.partition_count == 1:
            shares = batcher.cut(columns, 0, most)
            return [share._replace(partition=self._next_turn()) for share in shares]
        parts = batcher.spread(columns, self._next_turn(), self.partition_count)
        return [share for place, part in parts for share in batcher.cut(part, place, most)]

    def _next_turn(self) -> int:
        """Returns the partition whose turn it is for records without a key."""
        turn, self._turn = self._turn, (self._turn + 1) % self.partition_count
        return turn

    def _grant(self, batch: OutgoingBatch, size: int) -> int:
        """Returns the room to add, so that `size` bytes fit, and no record over the limit does."""
        left = batch.left
        used = batch.granted_bytes - left
        step = min(max(FIRST_GRANT_BYTES, used), GRANT_BYTES)
        step = min(step, self.limits.record_bytes, self._max_batch_bytes - used)
        return max(size, step) - left

    def _is_full(self, batch: OutgoingBatch, size: int) -> bool:
        used = batch.granted_bytes - batch.left
        return (
            used + size > self._max_batch_bytes
            or len(batch.values) >= RECORDS_PER_BATCH - GRANT_BYTES // FIELD_BYTES
        )

    def _deadline_ms(self) -> int:
        return self._clock.monotonic_ms() + self._settings.delivery_timeout_ms

    def _answered(self, batch: OutgoingBatch) -> None:
        self.buffer.give(batch.granted_bytes)
        if batch.error:
            self._on_failed(batch)
