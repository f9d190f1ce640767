"""The open partitions, and what the broker knows of each besides its log."""

from dataclasses import dataclass, field

from logbroker.errors import (
    DataLossError,
    LogbrokerError,
    NotFoundError,
    OffsetOutOfRangeError,
    UnavailableError,
)
from logbroker.record.batch import BatchHeader
from logbroker.record.partition_id import PartitionId
from logbroker.storage.engine import Engine, PartitionLog
from logbroker.topic.producer_registry import ProducerRegistry
from logbroker.topic.producers import ProducerTable
from logbroker.topic.topic import Topic

READ_BYTES = 4 << 20


@dataclass(slots=True)
class Partition:
    """One open partition."""

    id: PartitionId
    topic: Topic
    log: PartitionLog
    seed: int = field(init=False)
    """Of `id`, kept: it is asked for with every lease."""
    producers: ProducerTable = field(default_factory=ProducerTable)
    unsaved_bytes: int = 0
    """Appended since the table of producers was last saved: what a start would read again."""
    unsaved_since_ms: int = 0
    """When the first of it was appended; wall time, which is what retention goes by."""

    def __post_init__(self) -> None:
        self.seed = self.id.seed

    def note_unsaved(self, size: int, append_time_ms: int) -> None:
        """Takes note that a batch of this size is in the log and in no saved table."""
        if not self.unsaved_bytes:
            self.unsaved_since_ms = append_time_ms
        self.unsaved_bytes += size


class Partitions:
    """Open partitions by topic id and number."""

    def __init__(self, engine: Engine, registry: ProducerRegistry) -> None:
        self._engine = engine
        self._registry = registry
        self._open: dict[tuple[str, int], Partition] = {}
        self._failures: dict[tuple[str, int], LogbrokerError] = {}
        """Why those that could not be opened could not."""

    def get(self, partition: PartitionId) -> Partition:
        """Returns an open partition; NotFoundError while it is being made or deleted.

        UnavailableError (TOPIC_DAMAGED), or what may pass, where it could not be opened.
        """
        found = self._open.get(partition[1:])
        if found is None:
            if failure := self._failures.get(partition[1:]):
                raise _not_opened(partition, failure)
            raise NotFoundError(
                "PARTITION_NOT_FOUND",
                f"partition {partition} is not open",
                topic=partition.topic,
                partition=partition.partition,
            )
        return found

    def find(self, topic_id: str, partition: int) -> Partition | None:
        """Returns a partition if it is open."""
        return self._open.get((topic_id, partition))

    def all(self) -> list[Partition]:
        """Returns those that are open."""
        return list(self._open.values())

    def has_all(self, topic: Topic) -> bool:
        """Whether all partitions of a topic are open."""
        return all(partition[1:] in self._open for partition in topic.partitions())

    def is_made(self, topic: Topic) -> bool:
        """Whether each partition of a topic is open, or it is known why not."""
        ids = [partition[1:] for partition in topic.partitions()]
        return all(one in self._open or one in self._failures for one in ids)

    async def open(self, topic: Topic) -> None:
        """Opens all partitions of a topic, or gives them its new settings.

        One that cannot be opened does not hold up the others; its error is raised at the end.
        """
        failures = []
        for partition in topic.partitions():
            try:
                await self._open_one(partition, topic)
            except LogbrokerError as error:
                self._failures[partition[1:]] = error
                failures.append(error)
            else:
                self._failures.pop(partition[1:], None)
        if failures:
            raise failures[0]

    async def _open_one(self, partition: PartitionId, topic: Topic) -> None:
        log = await self._engine.open(partition, topic.settings)
        found = self._open.get(partition[1:])
        if found:
            found.topic = topic
        else:
            opened = Partition(partition, topic, log)
            await self._load_producers(opened)
            self._open[partition[1:]] = opened

    async def delete(self, partition: PartitionId) -> None:
        """Removes a partition and its bytes."""
        self._open.pop(partition[1:], None)
        self._failures.pop(partition[1:], None)
        await self._engine.delete(partition)

    async def _load_producers(self, partition: Partition) -> None:
        """Rebuilds the table: what was saved of it, and the headers of the log since then."""
        saved_offset, partition.producers = self._registry.table_of(partition.id)
        log, seed = partition.log, partition.seed
        bounds = log.bounds()
        if saved_offset > bounds.high_watermark:  # `written` records that a power cut took
            saved_offset, partition.producers = 0, ProducerTable()
        offset = max(saved_offset, bounds.log_start_offset)
        while offset < bounds.high_watermark:
            try:
                run = await log.read(offset, READ_BYTES)
            except DataLossError as error:
                offset = int(error.details["next_offset"])
                continue
            except OffsetOutOfRangeError:  # retention is at work already
                if offset >= log.bounds().log_start_offset:
                    raise
                offset = log.bounds().log_start_offset
                continue
            at = 0
            while at < len(run.batches):
                header = BatchHeader.decode(run.batches, seed, at)
                if header.base_offset >= saved_offset:  # its first records may be trimmed
                    partition.producers.apply(header)
                    partition.note_unsaved(header.size_bytes, header.append_time_ms)
                at += header.size_bytes
            offset = run.next_offset


def _not_opened(partition: PartitionId, failure: LogbrokerError) -> LogbrokerError:
    if failure.may_retry:
        return failure.again()
    return UnavailableError(
        "TOPIC_DAMAGED",
        f"partition {partition} cannot be opened: {failure}",
        topic=partition.topic,
        partition=partition.partition,
    )
