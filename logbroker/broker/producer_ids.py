"""Gives out producer ids, and saves the tables of who wrote what."""

import secrets

import structlog

from logbroker.broker.partitions import Partition
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

TABLES_PER_BATCH = 50

log = structlog.get_logger()


class ProducerIds:
    """The registry of producers and its journal."""

    def __init__(self, registry: ProducerRegistry, journal: Journal) -> None:
        self.registry = registry
        self._journal = journal
        self.has_failed = journal.has_failed

    @classmethod
    async def open(cls, engine: Engine, clock: Clock) -> "ProducerIds":
        """Replays the journal."""
        journal = await Journal.open(engine, PRODUCERS_TOPIC, clock)
        registry = ProducerRegistry()
        for event in await journal.replay():
            registry.apply(producer_registry.decode(event))
        return cls(registry, journal)

    async def create(self) -> int:
        """Returns an id that nobody has. 0 stands for no producer."""
        return 1 + secrets.randbits(ID_BITS)

    async def save(self, partitions: list[Partition]) -> None:
        """Saves the tables of these partitions, as far as their logs can be read."""
        saved: list[ProducerEvent] = []
        for partition in partitions:
            offset = partition.log.bounds().high_watermark
            rows = partition.producers.rows_below(offset)
            if offset != self.registry.saved_offset(partition.id):
                saved.append(
                    TableSaved(partition.id.topic_id, partition.id.partition, offset, rows)
                )
            partition.unsaved_bytes = 0
        for at in range(0, len(saved), TABLES_PER_BATCH):
            await self._commit(saved[at : at + TABLES_PER_BATCH])

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
