"""Limits, checks, sequence, expected offset, append."""

import asyncio
from asyncio import Future
from collections import Counter
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from logbroker.broker.partitions import Partition, Partitions
from logbroker.clock import Clock
from logbroker.config import LimitsConfig
from logbroker.errors import InvalidError, LogbrokerError, UnavailableError
from logbroker.limits import RECORDS_PER_BATCH
from logbroker.record.batch import Batch, BatchHeader
from logbroker.record.columns import Columns, RecordLimits, check_batch, encode_batch
from logbroker.record.partitioner import partition_of
from logbroker.record.receipt import Receipt
from logbroker.record.record import Header
from logbroker.topic.catalog import TopicCatalog
from logbroker.topic.producers import OWN_PRODUCER_ID, Stored

DUPLICATE_CHECK_MS = 1_000
"""How often one who waits for a repeated batch to be durable looks if it still may be."""


PUBLISH_RECORDS = 10_000
"""The most records of one `publish`: each gets its receipt, and the answer stays under 4 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRecord:
    """A record by itself, as `publish` takes it."""

    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[Header, ...] = ()
    timestamp_ms: int | None = None
    partition: int | None = None


class Appending:
    """A batch that was taken: a future of its receipt, without the cost of a second future."""

    __slots__ = ("_partition", "future")

    def __init__(self, partition: Partition, future: "Future[Batch] | Future[Receipt]") -> None:
        self._partition = partition
        self.future = future
        """Done when the receipt is true, or never will be."""

    def done(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self.future.done()

    async def wait_done(self) -> None:
        """Returns once it is done, whatever became of it."""
        if not self.future.done():
            with suppress(LogbrokerError):
                await self.future

    def abandon(self) -> None:
        """Says that nobody will ask what became of it."""
        self.future.add_done_callback(lambda done: done.cancelled() or done.exception())

    def receipt(self) -> Receipt:
        """Returns the receipt once it is done; raises what became of the batch instead."""
        result = self.future.result()
        if isinstance(result, Receipt):
            return result
        return _receipt_of(self._partition, result.header.base_offset, result.header)

    def __await__(self) -> Generator[Any, None, Receipt]:
        yield from self.future.__await__()
        return self.receipt()


class Produce:
    """Appends batches, and lists of records."""

    def __init__(
        self, catalog: TopicCatalog, partitions: Partitions, limits: LimitsConfig, clock: Clock
    ) -> None:
        self._catalog = catalog
        self._partitions = partitions
        self._clock = clock
        self._limits = RecordLimits(
            limits.record_bytes, limits.batch_bytes, limits.header_count, limits.header_bytes
        )
        self._turn = 0
        self.counts: Counter[str] = Counter()

    def produce(
        self,
        topic: str,
        topic_id: str,
        partition: int,
        batch: Batch,
        expected_offset: int | None = None,
    ) -> "Appending":
        """Takes a batch now; awaited, it gives the receipt once that is true.

        It is done already where nothing is to be waited for. Raises at once for what may not
        be appended; nothing is changed then.
        """
        _, partition_id = self._catalog.partition(topic, topic_id, partition)
        found = self._partitions.get(partition_id)
        header = batch.header
        if expected_offset is not None and expected_offset < 0:
            message = f"expected_offset is {expected_offset}; it must be at least 0"
            raise InvalidError("INVALID_OFFSET", message, expected_offset=expected_offset)
        _check_header(header)
        check_batch(batch, self._limits)
        if header.producer_id:
            stored = found.producers.check(header)
            if stored is not None:
                self.counts["duplicate_batches"] += 1
                return Appending(found, asyncio.ensure_future(self._wait_stored(found, stored)))
        base_offset = found.log.bounds().next_offset
        appended = found.log.append(batch, expected_offset=expected_offset)
        now_ms = self._clock.now_ms()
        if header.producer_id:
            found.producers.apply(BatchHeader(base_offset, now_ms, *header[2:]))
        found.note_unsaved(header.size_bytes, now_ms)
        self.counts["batches"] += 1
        self.counts["records"] += header.record_count
        self.counts["bytes"] += header.size_bytes
        return Appending(found, appended)

    async def publish(
        self,
        topic: str,
        topic_id: str,
        records: list[NewRecord],
        partition: int | None = None,
        expected_offset: int | None = None,
    ) -> list[Receipt | LogbrokerError]:
        """Appends records, one batch for each partition; returns what became of each.

        All are checked before any is stored. Raises the error where nothing was stored.
        """
        found = self._catalog.get(topic, topic_id)
        if not records:
            raise InvalidError("INVALID_ARGUMENT", "there are no records to publish")
        if len(records) > PUBLISH_RECORDS:
            message = f"{len(records)} records are over {PUBLISH_RECORDS}; use Produce for more"
            raise InvalidError("INVALID_ARGUMENT", message, record_count=len(records))
        places = self._places(found.partition_count, records, partition)
        for place in places:
            self._catalog.partition(topic, topic_id, place)
        if expected_offset is not None and len(places) > 1:
            message = f"expected_offset is of one partition; the records go to {sorted(places)}"
            raise InvalidError("INVALID_ARGUMENT", message)
        now_ms = self._clock.now_ms()
        batches = {
            place: self._encoded([records[index] for index in indexes], now_ms)
            for place, indexes in places.items()
        }
        for batch in batches.values():
            check_batch(batch, self._limits)
        under_way: dict[int, Appending | LogbrokerError] = {}
        for place, batch in batches.items():
            try:
                under_way[place] = self.produce(
                    topic, found.topic_id, place, batch, expected_offset
                )
            except LogbrokerError as error:
                under_way[place] = error
        results: list[Receipt | LogbrokerError | None] = [None] * len(records)
        errors = []
        for place, outcome in under_way.items():
            try:
                if isinstance(outcome, LogbrokerError):
                    raise outcome
                receipt = await outcome
            except LogbrokerError as error:
                errors.append(error)
                for index in places[place]:
                    results[index] = error
                continue
            for number, index in enumerate(places[place]):
                offset = receipt.base_offset + number
                results[index] = receipt._replace(base_offset=offset, record_count=1)
        if len(errors) == len(under_way):
            raise errors[0]
        return [result for result in results if result is not None]

    def _places(
        self, partition_count: int, records: list[NewRecord], partition: int | None
    ) -> dict[int, list[int]]:
        """Returns for each partition the indexes of the records that go there."""
        self._turn += 1
        places: dict[int, list[int]] = {}
        for index, record in enumerate(records):
            if record.partition is not None:
                place = record.partition
            elif partition is not None:
                place = partition
            elif record.key is not None:
                place = partition_of(record.key, partition_count)
            else:
                place = self._turn % partition_count
            places.setdefault(place, []).append(index)
        return places

    def _encoded(self, records: list[NewRecord], now_ms: int) -> Batch:
        timestamps = None
        if any(record.timestamp_ms is not None for record in records):
            timestamps = [
                now_ms if record.timestamp_ms is None else record.timestamp_ms for record in records
            ]
        columns = Columns(
            [record.value for record in records],
            [record.key for record in records],
            timestamps,
            [(index, record.headers) for index, record in enumerate(records) if record.headers],
        )
        return encode_batch(columns, now_ms=now_ms)

    async def _wait_stored(self, partition: Partition, stored: Stored) -> Receipt:
        """Returns the receipt of a repeated batch, once the first one's is true."""
        last = stored.base_offset + stored.record_count - 1
        while partition.log.bounds().high_watermark <= last:
            if failure := partition.log.stats().failure:
                message = f"{partition.id} failed before the batch was on disk; outcome unknown"
                raise UnavailableError(failure, message, topic=partition.id.topic)
            try:
                await self._clock.wait_for(partition.log.wait_beyond(last), DUPLICATE_CHECK_MS)
            except TimeoutError:
                continue
        receipt = _receipt_of(partition, stored.base_offset, stored)
        return receipt._replace(duplicate=True)


def _check_header(header: BatchHeader) -> None:
    if not 1 <= header.record_count <= RECORDS_PER_BATCH:
        message = f"record_count must be 1 to {RECORDS_PER_BATCH}, not {header.record_count}"
        raise InvalidError("BAD_BATCH", message, record_count=header.record_count)
    if header.offset_span != header.record_count:
        message = f"offset_span is {header.offset_span} for {header.record_count} records"
        raise InvalidError("BAD_BATCH", message, offset_span=header.offset_span)
    if not 0 <= header.producer_id < OWN_PRODUCER_ID:
        message = f"producer_id must be at least 0 and one given out, not {header.producer_id}"
        raise InvalidError("INVALID_ARGUMENT", message, producer_id=header.producer_id)


def _receipt_of(partition: Partition, base_offset: int, stored: BatchHeader | Stored) -> Receipt:
    return Receipt(
        partition.id.topic,
        partition.id.topic_id,
        partition.id.partition,
        base_offset,
        stored.record_count,
        stored.append_time_ms,
        partition.topic.settings.durability,
    )
