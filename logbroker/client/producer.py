"""Producer: records in, receipts out, in the order they were given.

`send` costs a list entry and a receipt for each record, and nothing is sent by itself: the
records of a partition are gathered in its open batch. It goes at once when nothing of the
partition is under way, so that a lone record takes one round trip; otherwise when it is
full or has lingered, with at most `max_in_flight` batches on the way.

    bytes held = room given to batches that are not answered <= buffer_bytes
    of a partition, at most one batch is open, and it is the last
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, Self
from zlib import crc32

import structlog

from logbroker.client import batcher
from logbroker.client.batcher import FIELD_BYTES, TIMESTAMP_BYTES, Bytes, HeaderLike, Share
from logbroker.client.connection import Connection
from logbroker.client.delivery import Delivery, DeliverySettings
from logbroker.client.forks import tell_of_forks
from logbroker.client.lane import Lane
from logbroker.client.outgoing_batch import SEALED, OutgoingBatch
from logbroker.client.receipts import PendingReceipt, PendingReceipts
from logbroker.client.topics import REFRESH_MS, get_limits, get_topic
from logbroker.errors import InvalidError, LogbrokerError, NotFoundError, PreconditionError
from logbroker.limits import BATCH_BYTES_CEILING, RECORDS_PER_BATCH, SEQUENCE_WINDOW
from logbroker.record.columns import Columns, RecordLimits, encode_batch
from logbroker.record.compression import Codec
from logbroker.topic.topic import Topic

GRANT_BYTES = 16 << 10
"""Room is given to a batch in steps of this size: what many open batches hold unused."""
KEPT_FAILURES = 1_000
"""How many failed batches a producer remembers until `flush` tells of them."""
EXIT_FLUSH_MS = 5_000
"""How long the end of a `with` block that raised waits for what was not sent."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """How a producer gathers and sends. The defaults suit both lone records and bulk."""

    codec: Codec | str = Codec.NONE
    """`none`, `gzip` or `zstd`."""
    max_batch_bytes: int = 1 << 20
    """A batch of this size is full. Larger messages travel faster, up to about 1 MiB."""
    linger_ms: int = 5
    """How long a batch waits for more records while others of its partition are under way."""
    max_in_flight: int = 32
    """How many batches of a partition are under way at once; 1 without idempotence."""
    buffer_bytes: int = 64 << 20
    """Bytes of records held until they are answered; then `send` waits."""
    idempotent: bool = True
    """Whether the broker stores a batch once that was sent twice."""
    delivery_timeout_ms: int = 120_000
    """How long a record is tried, counted from its batch's first one."""

    def __post_init__(self) -> None:
        for name, low, high in (
            ("max_batch_bytes", 1, BATCH_BYTES_CEILING),
            ("linger_ms", 0, 3_600_000),
            ("max_in_flight", 1, SEQUENCE_WINDOW),
            ("buffer_bytes", GRANT_BYTES, 1 << 40),
            ("delivery_timeout_ms", 1, 1 << 40),
        ):
            if not low <= getattr(self, name) <= high:
                message = f"{name} must be {low} to {high}, not {getattr(self, name)}"
                raise InvalidError("INVALID_SETTING", message, setting=name)
        if self.codec_number is None:
            message = f"codec must be none, gzip or zstd, not {self.codec!r}"
            raise InvalidError("INVALID_SETTING", message, setting="codec")

    @property
    def codec_number(self) -> Codec | None:
        """The codec; None if there is none of this name."""
        if isinstance(self.codec, Codec):
            return self.codec
        return {codec.name.lower(): codec for codec in Codec}.get(self.codec)


class _Room(NamedTuple):
    """What a record needs in a batch."""

    size: int
    has_key: bool
    has_timestamp: bool

    def bytes_in(self, batch: OutgoingBatch) -> int:
        """Returns its bytes, and those of columns that all earlier records then need as well."""
        each = FIELD_BYTES if self.has_key and batch.keys is None else 0
        each += TIMESTAMP_BYTES if self.has_timestamp and batch.is_plain else 0
        return self.size + each * len(batch.values)


class Producer:
    """Sends records to one topic. Made by `Client.producer`; use it as a context manager."""

    def __init__(self, connection: Connection, topic: str, settings: ProducerSettings) -> None:
        codec = settings.codec_number
        assert codec is not None
        self.topic = topic
        self._connection = connection
        self._clock = connection.clock
        self._settings = settings
        self._delivery = Delivery(
            connection,
            DeliverySettings(
                codec=codec,
                max_in_flight=settings.max_in_flight,
                is_idempotent=settings.idempotent,
                delivery_timeout_ms=settings.delivery_timeout_ms,
            ),
            seal=self._seal,
            on_answered=self._take_back_room,
        )
        self._limits = RecordLimits(0, 0, 0, 0)
        self._max_batch_bytes = 0
        self._metadata: Topic | None = None
        self._fetched_ms = 0
        self._starting: asyncio.Task[None] | None = None
        self._closed_because = ""
        self._held_bytes = 0
        self._room_waiters: list[asyncio.Future[None]] = []
        self._failed: deque[OutgoingBatch] = deque(maxlen=KEPT_FAILURES)
        self._turn = 0
        self._should_yield = False
        # Batches that `send` may add to without looking further. Sealed ones have no room.
        self._full = OutgoingBatch(0)
        self._full.left = SEALED
        self._keyless = self._full
        self._keyed = [self._full]
        self._partition_count = 1
        tell_of_forks(self)

    async def send(
        self,
        value: Bytes | None,
        key: Bytes | None = None,
        headers: Sequence[HeaderLike] | None = None,
        timestamp_ms: int | None = None,
        partition: int | None = None,
    ) -> PendingReceipt:
        """Takes a record and returns its receipt, to be awaited or not.

        Waits for room in the buffer, otherwise not. InvalidError for a record that cannot be
        stored, which leaves others untouched; NotFoundError if there is no such topic.
        """
        if headers is None and timestamp_ms is None and partition is None and type(value) is bytes:
            if key is None:
                batch = self._keyless
                left = batch.left - len(value) - FIELD_BYTES
                if left >= 0:
                    batch.left = left
                    values = batch.values
                    receipt = PendingReceipt(batch, len(values))
                    values.append(value)
                    return receipt
            elif type(key) is bytes:
                count = self._partition_count
                batch = self._keyed[crc32(key) % count if count > 1 else 0]
                left = batch.left - len(value) - len(key) - 2 * FIELD_BYTES
                if left >= 0:
                    batch.left = left
                    values = batch.values
                    receipt = PendingReceipt(batch, len(values))
                    values.append(value)
                    batch.keys.append(key)  # type: ignore[union-attr]  # it is a keyed batch
                    return receipt
        return await self._send(value, key, headers, timestamp_ms, partition, None)

    async def publish(
        self,
        value: Bytes | None,
        key: Bytes | None = None,
        headers: Sequence[HeaderLike] | None = None,
        timestamp_ms: int | None = None,
        partition: int | None = None,
        expected_offset: int | None = None,
    ) -> PendingReceipt:
        """Sends a record and returns its receipt once it is stored.

        With `expected_offset`, it is stored only if this is the partition's next offset;
        else PreconditionError UNEXPECTED_OFFSET.
        """
        receipt = await self._send(value, key, headers, timestamp_ms, partition, expected_offset)
        return await receipt

    async def send_many(
        self,
        values: Sequence[Bytes | None],
        keys: Sequence[Bytes | None] | None = None,
        timestamps_ms: Sequence[int] | None = None,
        headers: Sequence[Sequence[HeaderLike] | None] | None = None,
        partition: int | None = None,
    ) -> PendingReceipts:
        """Takes many records, as columns of the same length; they must not change afterwards.

        The fastest way in. All are checked first: InvalidError means that none is sent.
        """
        await self._prepare()
        at_once = headers is None and self._at_once(values, keys, timestamps_ms, partition)
        if at_once:
            while self._held_bytes + at_once.size_bytes > max(
                self._settings.buffer_bytes, at_once.size_bytes
            ):
                await self._wait_room()
            self._send_sealed(at_once)
            await asyncio.sleep(0)
            return PendingReceipts([at_once])
        columns = batcher.checked(values, keys, timestamps_ms, headers, self._limits)
        batches = []
        for share in self._shares(columns, await self._checked_partition(partition)):
            while self._held_bytes and self._held_bytes + share.size > self._settings.buffer_bytes:
                await self._wait_room()
            batches.append(self._push(share))
            await asyncio.sleep(0)
        return PendingReceipts(batches)

    async def flush(self) -> None:
        """Returns once everything taken so far is answered.

        Raises the first error of a record whose receipt nobody has awaited; once.
        """
        self.check_open()
        await self._flush()
        failed, self._failed = self._failed, deque(maxlen=KEPT_FAILURES)
        for batch in failed:
            if batch.has_unseen_error:
                assert batch.error is not None
                raise batch.error.again()

    async def close(self) -> None:
        """Flushes, then ends the producer. Raises what `flush` raises, closed all the same."""
        if self._closed_because:
            return
        try:
            await self.flush()
        finally:
            await self._end()

    @property
    def unsent_count(self) -> int:
        """How many records are taken and not answered."""
        return self._delivery.unsent_count()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            await self.close()
        else:
            await self.abandon()

    async def abandon(self, timeout_ms: int = EXIT_FLUSH_MS) -> None:
        """Ends the producer after a bounded wait; what is left fails, and is logged."""
        if self._closed_because:
            return
        try:
            if not await self.wait_answered(timeout_ms):
                count = self.unsent_count
                log.warning("producer ended with records not sent", topic=self.topic, records=count)
        finally:
            await self._end()

    async def wait_answered(self, timeout_ms: int) -> bool:
        """Waits until all that was taken is answered; returns whether it is, in this time."""
        try:
            await self._clock.wait_for(self._flush(), timeout_ms)
        except TimeoutError:
            return not self.unsent_count
        return True

    def forked(self) -> None:
        """Refuses everything from now on: this is a child process."""
        self._refuse("this producer was made in another process; make one in this")

    async def _send(
        self,
        value: Bytes | None,
        key: Bytes | None,
        headers: Sequence[HeaderLike] | None,
        timestamp_ms: int | None,
        partition: int | None,
        expected_offset: int | None,
    ) -> PendingReceipt:
        """Does what `send` does, for every record and every state."""
        await self._prepare()
        plain_value = batcher.as_bytes(value, "value")
        plain_key = batcher.as_bytes(key, "key")
        made = batcher.as_headers(headers, self._limits)
        size = batcher.check_size(plain_value, plain_key, made, self._limits)
        place = await self._checked_partition(partition)
        if place is None and plain_key is not None:
            place = crc32(plain_key) % self._partition_count
        room = _Room(size, plain_key is not None, timestamp_ms is not None)
        while True:
            lane = self._delivery.lanes[self._turn if place is None else place]
            if batch := self._batch_with_room(lane, room, alone=expected_offset is not None):
                break
            await self._wait_room()
        batch.expected_offset = expected_offset
        now_ms = self._clock.now_ms() if timestamp_ms is not None or not batch.is_plain else 0
        receipt = PendingReceipt(
            batch, batch.add(plain_value, plain_key, made, timestamp_ms, now_ms)
        )
        if expected_offset is not None:
            self._seal(lane)
            self._delivery.look_at(lane)
        else:
            self._remember(batch, is_spread=place is None)
        if self._should_yield:
            self._should_yield = False
            await asyncio.sleep(0)
        return receipt

    def _batch_with_room(self, lane: Lane, room: "_Room", *, alone: bool) -> OutgoingBatch | None:
        """Returns the lane's open batch, made if need be, its room taken; None if there is none."""
        batch = lane.open
        if batch is not None and (alone or self._is_full(batch, room.bytes_in(batch))):
            self._seal(lane)
            self._delivery.look_at(lane)
            self._should_yield = True
            batch = None
        size = room.bytes_in(batch) if batch else room.size
        if batch is None or batch.left < size:
            grant = self._grant(batch, size)
            if self._held_bytes and self._held_bytes + grant > self._settings.buffer_bytes:
                self._delivery.hurry()
                return None
            self._held_bytes += grant
            if batch is None:
                now_ms = self._clock.monotonic_ms()
                batch = lane.open = OutgoingBatch(
                    lane.partition,
                    lingers_until_ms=now_ms + self._settings.linger_ms,
                    deadline_ms=now_ms + self._settings.delivery_timeout_ms,
                )
                self._delivery.accept(batch, lane)
            batch.left += grant
            batch.granted_bytes += grant
        batch.left -= size
        return batch

    def _grant(self, batch: OutgoingBatch | None, size: int) -> int:
        """Returns the room to add, so that `size` bytes fit, and no record over the limit does."""
        left = batch.left if batch else 0
        used = batch.granted_bytes - left if batch else 0
        step = min(GRANT_BYTES, self._limits.record_bytes, self._max_batch_bytes - used)
        return max(size, step) - left

    def _is_full(self, batch: OutgoingBatch, size: int) -> bool:
        used = batch.granted_bytes - batch.left
        return (
            used + size > self._max_batch_bytes
            or len(batch.values) >= RECORDS_PER_BATCH - GRANT_BYTES // FIELD_BYTES
        )

    def _remember(self, batch: OutgoingBatch, *, is_spread: bool) -> None:
        """Lets `send` add to this batch without looking further, where it may."""
        if self._keyless is batch and (batch.keys is not None or not batch.is_plain):
            self._keyless = self._full
        if not batch.is_plain:
            self._keyed[batch.partition] = self._full
        elif batch.keys is not None:
            self._keyed[batch.partition] = batch
        elif is_spread:
            self._keyless = batch

    def _seal(self, lane: Lane) -> None:
        """Ends the lane's open batch; keyless records go on to the next partition."""
        batch, lane.open = lane.open, None
        assert batch is not None
        self._give_back(batch.seal())
        lane.push(batch)
        if lane.partition == self._turn:
            self._turn = (self._turn + 1) % self._partition_count

    def _shares(self, columns: Columns, partition: int | None) -> list[Share]:
        most = self._max_batch_bytes
        if partition is None and columns.keys is not None and self._partition_count > 1:
            parts = batcher.spread(columns, self._turn, self._partition_count)
            self._turn = (self._turn + 1) % self._partition_count
            return [share for place, part in parts for share in batcher.cut(part, place, most)]
        if partition is not None or self._partition_count == 1:
            return list(batcher.cut(columns, partition or 0, most))
        shares = []
        for share in batcher.cut(columns, 0, most):
            shares.append(share._replace(partition=self._turn))
            self._turn = (self._turn + 1) % self._partition_count
        return shares

    def _at_once(
        self,
        values: Sequence[Bytes | None],
        keys: Sequence[Bytes | None] | None,
        timestamps_ms: Sequence[int] | None,
        partition: int | None,
    ) -> OutgoingBatch | None:
        """Returns the columns as one batch, where that is sure to be right without a closer look.

        That is: they go to one partition, and are so few bytes that no record is too large.
        """
        columns = Columns(values, keys, timestamps_ms)  # type: ignore[arg-type]  # or a TypeError
        count, largest = len(values), min(self._max_batch_bytes, self._limits.record_bytes)
        if not 0 < count <= RECORDS_PER_BATCH or self._settings.codec_number is not Codec.NONE:
            return None
        if count * len(columns.values[0] or b"") > largest:
            return None
        if any(column is not None and len(column) != count for column in columns[1:3]):
            return None
        if partition is None:
            if columns.keys is not None and self._partition_count > 1:
                return None
            partition, self._turn = self._turn, (self._turn + 1) % self._partition_count
        if not 0 <= partition < self._partition_count:
            return None
        try:
            encoded = encode_batch(columns, now_ms=self._clock.now_ms())
        except (TypeError, ValueError):
            return None  # the closer look says which record it is
        if encoded.header.records_bytes > largest:
            return None
        return OutgoingBatch.of_encoded(partition, encoded, self._deadline_ms())

    def _deadline_ms(self) -> int:
        return self._clock.monotonic_ms() + self._settings.delivery_timeout_ms

    def _push(self, share: Share) -> OutgoingBatch:
        batch = OutgoingBatch.of_columns(
            share.partition, share.columns, share.size, self._deadline_ms()
        )
        self._send_sealed(batch)
        return batch

    def _send_sealed(self, batch: OutgoingBatch) -> None:
        lane = self._delivery.lanes[batch.partition]
        if lane.open is not None:
            self._seal(lane)
        self._held_bytes += batch.granted_bytes
        self._delivery.accept(batch, lane)

    def _take_back_room(self, batch: OutgoingBatch) -> None:
        """Hears that a batch is answered."""
        self._give_back(batch.granted_bytes)
        if batch.error:
            self._failed.append(batch)
            if batch.error.reason == "PARTITION_NOT_FOUND":
                self._fetched_ms = -REFRESH_MS

    def _give_back(self, size: int) -> None:
        self._held_bytes -= size
        assert self._held_bytes >= 0
        self._wake_waiters()

    def _wake_waiters(self) -> None:
        """Lets all who wait for room look again, the first one first."""
        for waiter in self._room_waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._room_waiters.clear()

    async def _wait_room(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._room_waiters.append(waiter)
        await waiter
        self.check_open()

    async def _flush(self) -> None:
        self._delivery.hurry()
        for batch in self._delivery.unanswered():
            await batch.wait_answered()

    async def _end(self) -> None:
        self._refuse("this producer has been closed")
        await self._delivery.stop()
        self._wake_waiters()

    def _refuse(self, why: str) -> None:
        self._closed_because = why
        self._keyless = self._full
        self._keyed = [self._full] * len(self._keyed)

    def check_open(self) -> None:
        """Raises PreconditionError CLIENT_CLOSED unless the producer can be used here."""
        if self._closed_because:
            raise PreconditionError("CLIENT_CLOSED", self._closed_because)
        self._connection.check_open()

    async def _prepare(self) -> None:
        """Returns once topic and limits are known, and not too old."""
        self.check_open()
        if self._metadata is None:
            if self._starting is None:
                self._starting = asyncio.create_task(self._fetch())
            try:
                await asyncio.shield(self._starting)
            finally:
                if self._starting is not None and self._starting.done():
                    self._starting = None
        elif self._starting is None and self._is_old():
            self._starting = asyncio.create_task(self._refresh())

    def _is_old(self) -> bool:
        return self._clock.monotonic_ms() - self._fetched_ms > REFRESH_MS

    async def _fetch(self) -> None:
        topic, limits = await asyncio.gather(
            get_topic(self._connection, self.topic), get_limits(self._connection)
        )
        self._limits = limits
        self._max_batch_bytes = min(self._settings.max_batch_bytes, limits.batch_bytes - 1_024)
        self._take(topic)
        # Producers of one record each must not all begin at partition 0.
        self._turn = self._connection.random.randrange(topic.partition_count)
        self._delivery.start(topic)

    async def _refresh(self) -> None:
        assert self._metadata is not None
        try:
            topic_id = self._metadata.topic_id
            self._take(await get_topic(self._connection, self.topic, topic_id))
        except LogbrokerError as error:  # batches will meet it, and tell
            log.info("topic not refreshed", topic=self.topic, reason=error.reason)
            self._fetched_ms = self._clock.monotonic_ms()
        finally:
            self._starting = None

    def _take(self, topic: Topic) -> None:
        self._metadata = topic
        self._fetched_ms = self._clock.monotonic_ms()
        self._delivery.grow(topic)
        self._partition_count = topic.partition_count
        self._keyed += [self._full] * (topic.partition_count - len(self._keyed))

    async def _checked_partition(self, partition: int | None) -> int | None:
        """Returns the partition; NotFoundError if the topic has none of this number."""
        if partition is not None and not 0 <= partition < self._partition_count:
            if self._starting is None:
                self._starting = asyncio.create_task(self._refresh())
            await asyncio.shield(self._starting)
            if not 0 <= partition < self._partition_count:
                message = f"{self.topic} has partitions 0 to {self._partition_count - 1}"
                raise NotFoundError(
                    "PARTITION_NOT_FOUND", f"no partition {partition}: {message}",
                    topic=self.topic, partition=partition,
                )  # fmt: skip
        return partition
