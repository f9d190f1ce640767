"""Gives out producer ids, and saves the tables of who wrote what."""

import asyncio
from asyncio import Future

import structlog

from logbroker.broker.partitions import Partition
from logbroker.clock import Clock
from logbroker.errors import LogbrokerError
from logbroker.storage.engine import Engine
from logbroker.storage.journal import Journal
from logbroker.topic import producer_registry
from logbroker.topic.names import PRODUCERS_TOPIC
from logbroker.topic.producer_registry import (
    IdsReserved,
    ProducerEvent,
    ProducerRegistry,
    TableSaved,
    TopicForgotten,
)

IDS_RESERVED_AT_ONCE = 1_000
"""So a start skips up to this many ids, and most calls wait for no disk."""

SAVE_AFTER_BYTES = 64 << 20
"""How much of a partition is read again after a kill, at most, to rebuild its table."""

TABLES_PER_BATCH = 50

log = structlog.get_logger()


class ProducerIds:
    """The registry of producers and its journal."""

    def __init__(self, registry: ProducerRegistry, journal: Journal) -> None:
        self.registry = registry
        self._journal = journal
        self._next_id = registry.reserved_end
        self._reservation: Future[None] = asyncio.get_running_loop().create_future()
        self._reservation.set_result(None)

    @classmethod
    async def open(cls, engine: Engine, clock: Clock) -> "ProducerIds":
        """Replays the journal."""
        journal = await Journal.open(engine, PRODUCERS_TOPIC, clock)
        registry = ProducerRegistry()
        for event in await journal.replay():
            registry.apply(producer_registry.decode(event))
        return cls(registry, journal)

    async def create(self) -> int:
        """Returns an id that was never given out, once that it was is durable."""
        producer_id = self._next_id
        self._next_id += 1
        if producer_id >= self.registry.reserved_end:
            end = producer_id + IDS_RESERVED_AT_ONCE
            self._reservation = asyncio.ensure_future(self._commit([IdsReserved(end)]))
        await asyncio.shield(self._reservation)
        return producer_id

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
