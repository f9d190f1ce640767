"""Producer: records in, receipts out, in the order they were given.

`send` costs a list entry and a receipt for each record, and nothing is sent by itself: the
records of a partition are gathered in its open batch. It goes at once when nothing of the
partition is under way, so that a lone record takes one round trip; otherwise when it is
full or has lingered, with at most `max_in_flight` batches on the way.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Self
from zlib import crc32

from logbroker.client import batcher
from logbroker.client.batcher import FIELD_BYTES, Bytes, HeaderLike
from logbroker.client.connection import Connection
from logbroker.client.forks import tell_of_forks
from logbroker.client.gatherer import Gatherer, Room
from logbroker.client.logs import ClientLog
from logbroker.client.outgoing_batch import SEALED, OutgoingBatch
from logbroker.client.producer_settings import ProducerSettings
from logbroker.client.receipts import Part, Parts, PendingReceipt, PendingReceipts
from logbroker.client.topics import REFRESH_MS, get_limits, get_topic
from logbroker.errors import LogbrokerError, NotFoundError, PreconditionError
from logbroker.record.columns import Columns
from logbroker.topic.topic import Topic

KEPT_FAILURES = 1_000
"""How many failed batches a producer remembers until `flush` tells of them."""
EXIT_FLUSH_MS = 5_000
"""How long the end of a `with` block that raised waits for what was not sent."""

log = ClientLog(__name__)


class Producer:
    """Sends records to one topic. Made by `Client.producer`; use it as a context manager."""

    def __init__(self, connection: Connection, topic: str, settings: ProducerSettings) -> None:
        self.topic = topic
        self._connection = connection
        self._clock = connection.clock
        self._gatherer = Gatherer(connection, settings, self._note_failed)
        self._delivery = self._gatherer.delivery
        self._metadata: Topic | None = None
        self._fetched_ms = 0
        self._starting: asyncio.Task[None] | None = None
        self._closed_because = ""
        self._failed: deque[OutgoingBatch] = deque(maxlen=KEPT_FAILURES)
        self._publishing_count = 0
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
        self._publishing_count += 1
        try:
            return await (
                await self._send(
                    value, key, headers, timestamp_ms, partition, expected_offset, is_awaited=True
                )
            )
        finally:
            self._publishing_count -= 1

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
        Records whose keys spread over partitions share batches with those of other calls.
        """
        if not self._is_prepared():
            await self._prepare()
        batches = None
        if headers is None:
            batches = self._gatherer.at_once(values, keys, timestamps_ms, partition)
        if batches is None:
            limits = self._gatherer.limits
            columns = batcher.checked(values, keys, timestamps_ms, headers, limits)
            is_spread = partition is None and keys is not None and self._partition_count > 1
            if is_spread and not (columns.timestamps_ms or columns.headers):
                return await self._send_spread(columns)
            if partition is not None and not 0 <= partition < self._partition_count:
                await self._find_partition(partition)
            batches = self._gatherer.sealed(columns, partition)
        for batch in batches:
            while not self._gatherer.send_sealed(batch):
                await self._wait_room()
            await asyncio.sleep(0)
        return PendingReceipts([Part(batch, 0, batch.record_count) for batch in batches])

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

    async def _send_spread(self, columns: Columns) -> PendingReceipts:
        """Adds checked records to the open batches of the partitions that their keys say.

        As `send` does it for each, so that batches fill up however many partitions there are.
        """
        assert columns.keys is not None
        parts = Parts()
        for value, key in zip(columns.values, columns.keys, strict=True):
            if value is not None and key is not None:
                batch = self._keyed[crc32(key) % self._partition_count]
                left = batch.left - len(value) - len(key) - 2 * FIELD_BYTES
                if left >= 0:
                    batch.left = left
                    parts.add(batch, len(batch.values))
                    batch.values.append(value)
                    batch.keys.append(key)  # type: ignore[union-attr]  # it is a keyed batch
                    continue
            parts.add(*(await self._send(value, key, None, None, None, None)).place)
        await asyncio.sleep(0)
        return parts.pending()

    async def _send(
        self,
        value: Bytes | None,
        key: Bytes | None,
        headers: Sequence[HeaderLike] | None,
        timestamp_ms: int | None,
        partition: int | None,
        expected_offset: int | None,
        *,
        is_awaited: bool = False,
    ) -> PendingReceipt:
        """Does what `send` does, for every record and every state."""
        if not self._is_prepared():
            await self._prepare()
        plain_value = value if type(value) is bytes else batcher.as_bytes(value, "value")
        plain_key = key if type(key) is bytes else batcher.as_bytes(key, "key")
        made = batcher.as_headers(headers, self._gatherer.limits) if headers else ()
        size = batcher.check_size(plain_value, plain_key, made, self._gatherer.limits)
        place = partition
        if place is not None and not 0 <= place < self._partition_count:
            await self._find_partition(place)
        if place is None and plain_key is not None:
            place = crc32(plain_key) % self._partition_count
        room = Room(size, plain_key is not None, timestamp_ms is not None)
        is_alone = expected_offset is not None
        while True:
            lane = self._gatherer.lane(place)
            if batch := self._gatherer.batch_with_room(lane, room, alone=is_alone):
                break
            await self._wait_room()
        batch.expected_offset = expected_offset
        now_ms = self._clock.now_ms() if timestamp_ms is not None or not batch.is_plain else 0
        receipt = PendingReceipt(
            batch, batch.add(plain_value, plain_key, made, timestamp_ms, now_ms)
        )
        if is_alone:
            self._gatherer.seal(lane)
        else:
            self._remember(batch, is_spread=place is None)
        if is_awaited and self._publishing_count == 1:  # nobody adds to its batch in this turn
            self._delivery.send_now(lane)
        else:
            self._delivery.look_at(lane)
        if self._gatherer.has_filled:
            self._gatherer.has_filled = False
            await asyncio.sleep(0)
        return receipt

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

    def _note_failed(self, batch: OutgoingBatch) -> None:
        self._failed.append(batch)
        if batch.error and batch.error.reason == "PARTITION_NOT_FOUND":
            self._fetched_ms = -REFRESH_MS

    async def _wait_room(self) -> None:
        await self._gatherer.buffer.wait_given()
        self.check_open()

    async def _flush(self) -> None:
        self._delivery.hurry()
        for batch in self._delivery.unanswered():
            await batch.wait_answered()

    async def _end(self) -> None:
        self._refuse("this producer has been closed")
        await self._delivery.stop()
        self._gatherer.buffer.wake()

    def _refuse(self, why: str) -> None:
        self._closed_because = why
        self._keyless = self._full
        self._keyed = [self._full] * len(self._keyed)

    def check_open(self) -> None:
        """Raises PreconditionError CLIENT_CLOSED unless the producer can be used here."""
        if self._closed_because:
            raise PreconditionError("CLIENT_CLOSED", self._closed_because)
        self._connection.check_open()

    def _is_prepared(self) -> bool:
        """Whether topic and limits are known, and not too old."""
        self.check_open()
        return self._metadata is not None and not self._is_old()

    async def _prepare(self) -> None:
        """Returns once topic and limits are known; asks anew if they are old."""
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
        self._gatherer.start(topic, limits)
        self._take(topic)

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
        self._gatherer.grow(topic)
        self._partition_count = topic.partition_count
        self._keyed += [self._full] * (topic.partition_count - len(self._keyed))

    async def _find_partition(self, partition: int) -> None:
        """Returns if the topic has grown and has this partition now; else NotFoundError."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._refresh())
        await asyncio.shield(self._starting)
        if not 0 <= partition < self._partition_count:
            message = f"{self.topic} has partitions 0 to {self._partition_count - 1}"
            raise NotFoundError(
                "PARTITION_NOT_FOUND", f"no partition {partition}: {message}",
                topic=self.topic, partition=partition,
            )  # fmt: skip
