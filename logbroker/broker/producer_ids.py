"""Gives out producer ids, and saves the tables of who wrote what."""

import secrets

import structlog

from logbroker.broker.partitions import Partition, Partitions
from logbroker.clock import Clock
from logbroker.errors import LogbrokerError
from logbroker.storage.engine import Engine
from logbroker.storage.journal import Journal
from logbroker.topic import producer_registry
from logbroker.topic.names import PRODUCERS_TOPIC
from logbroker.topic.producer_registry import (
    ProducerEvent,
    ProducerRegistry,
    TableSaved,
    TopicForgotten,
)

ID_BITS = 62
"""Ids are drawn, not counted: one that was given out twice, because damage took the journal,
would have a producer's records answered as another's duplicates, and stored never."""

SAVE_AFTER_BYTES = 64 << 20
"""How much of a partition is read again after a kill, at most, to rebuild its table."""
LOOK_MS = 1_000
"""How often to look which tables are to be saved..."""
LOOKS = 4
"""... and at least so often in the time after which retention may remove what was written."""

TABLES_PER_BATCH = 50

log = structlog.get_logger()


class ProducerIds:
    """The registry of producers and its journal."""

    def __init__(self, registry: ProducerRegistry, journal: Journal, clock: Clock) -> None:
        self.registry = registry
        self._journal = journal
        self._clock = clock
        self._is_behind = False
        """Tables could not be saved, perhaps for want of room: retention does not wait for that."""
        self.has_failed = journal.has_failed

    @classmethod
    async def open(cls, engine: Engine, clock: Clock) -> "ProducerIds":
        """Replays the journal."""
        journal = await Journal.open(engine, PRODUCERS_TOPIC, clock)
        registry = ProducerRegistry()
        for event in await journal.replay():
            registry.apply(producer_registry.decode(event))
        return cls(registry, journal, clock)

    async def create(self) -> int:
        """Returns an id that nobody has. 0 stands for no producer."""
        return 1 + secrets.randbits(ID_BITS)

    async def save(self, partitions: list[Partition]) -> None:
        """Saves the tables of these partitions, as far as their logs can be read."""
        saved: list[ProducerEvent] = []
        sizes, now_ms = [], self._clock.now_ms()
        for partition in partitions:
            _, offset, next_offset = partition.log.bounds()
            rows = partition.producers.rows_below(offset)
            if offset != self.registry.saved_offset(partition.id):
                saved.append(
                    TableSaved(partition.id.topic_id, partition.id.partition, offset, rows)
                )
            left = offset < next_offset  # a byte stands for what is not durable yet
            sizes.append((partition, max(partition.unsaved_bytes - left, 0)))
        for at in range(0, len(saved), TABLES_PER_BATCH):
            await self._commit(saved[at : at + TABLES_PER_BATCH])
        for partition, size in sizes:
            partition.unsaved_bytes -= size
            partition.unsaved_since_ms = now_ms

    async def keep_saved(self, partitions: Partitions) -> None:
        """Saves tables of much that is new, and before retention takes what they are made of.

        Else a kill would make the broker forget producers whose batches are gone, and store a
        batch of theirs a second time that is still in doubt. Until it is cancelled.
        """
        while True:
            times = (found.topic.settings.retention_ms // LOOKS for found in partitions.all())
            shortest_ms = min((time for time in times if time), default=LOOK_MS)
            await self._clock.wait_until(self._clock.monotonic_ms() + min(shortest_ms, LOOK_MS))
            await self.save_due(partitions)

    async def save_due(self, partitions: Partitions) -> None:
        """Saves what retention may come to soon, and much that is new."""
        now_ms = self._clock.now_ms()
        await self._try_save([found for found in partitions.all() if _is_due(found, now_ms)])

    async def save_before_trim(self, partition: Partition, offset: int) -> None:
        """Saves what a trim to this offset would remove, if it can: it goes all the same."""
        if len(partition.producers) and self.registry.saved_offset(partition.id) < offset:
            await self._try_save([partition])

    async def _try_save(self, partitions: list[Partition]) -> None:
        try:
            await self.save(partitions)
        except LogbrokerError as error:
            self._is_behind = True
            log.warning("producers not saved", reason=error.reason, error=str(error))
        else:
            self._is_behind = False

    def needed_from(self, partition: Partition) -> int | None:
        """Returns from where on its log tells of producers what no table does that can be saved."""
        if self._is_behind or not partition.unsaved_bytes or not partition.producers:
            return None
        return self.registry.saved_offset(partition.id)

    async def forget(self, topic_id: str) -> None:
        """Drops the tables of an erased topic, if there are any."""
        if self.registry.knows(topic_id):
            await self._commit([TopicForgotten(topic_id)])

    async def _commit(self, decided: list[ProducerEvent]) -> None:
        durable = self._journal.append([producer_registry.encode(event) for event in decided])
        for event in decided:
            self.registry.apply(event)
        await durable
        if self._journal.wants_snapshot:
            try:
                events = [producer_registry.encode(e) for e in self.registry.snapshot()]
                await self._journal.snapshot(events)
            except LogbrokerError as error:
                log.warning("journal not shortened", journal=PRODUCERS_TOPIC, reason=error.reason)


def _is_due(partition: Partition, now_ms: int) -> bool:
    """Returns whether its table is to be saved now."""
    size, settings = partition.unsaved_bytes, partition.topic.settings
    if not size:
        return False
    is_much = size >= SAVE_AFTER_BYTES or 0 < settings.retention_bytes <= 2 * size
    age_ms = now_ms - partition.unsaved_since_ms
    return is_much or 0 < settings.retention_ms <= 2 * age_ms
