"""Decides, journals, applies: how topics change.

No `await` lies between a decision and its application, hence no locks. An event that the
journal refuses is not applied; an answer waits until its event is durable.
"""

import secrets
from collections.abc import Awaitable, Sequence

import structlog

from logbroker.broker.partitions import Partitions
from logbroker.clock import Clock
from logbroker.config import LogConfig
from logbroker.errors import LogbrokerError
from logbroker.storage.engine import Engine
from logbroker.storage.journal import Journal
from logbroker.topic import events
from logbroker.topic.catalog import TopicCatalog
from logbroker.topic.events import TopicErased, TopicEvent
from logbroker.topic.names import CATALOG_TOPIC
from logbroker.topic.topic import Topic, TopicSettings

TOPIC_ID_BYTES = 12

log = structlog.get_logger()


class Coordinator:
    """The catalog of topics, its journal, and the partitions that follow it."""

    def __init__(
        self,
        catalog: TopicCatalog,
        journal: Journal,
        engine: Engine,
        partitions: Partitions,
        clock: Clock,
        defaults: LogConfig,
    ) -> None:
        self.catalog = catalog
        self._journal = journal
        self._engine = engine
        self._partitions = partitions
        self._clock = clock
        self._defaults = defaults

    @classmethod
    async def open(
        cls, engine: Engine, partitions: Partitions, clock: Clock, defaults: LogConfig
    ) -> "Coordinator":
        """Replays the journal, opens all partitions, finishes deletions a stop interrupted."""
        journal = await Journal.open(engine, CATALOG_TOPIC, clock)
        catalog = TopicCatalog()
        for event in await journal.replay():
            catalog.apply(events.decode(event))
        catalog.find_damaged(engine.partitions())
        for name in sorted(catalog.damaged_topics):
            log.error("topic damaged: files without settings", topic=name)
        coordinator = cls(catalog, journal, engine, partitions, clock, defaults)
        for topic in catalog.deleted():
            await coordinator._try(coordinator._erase(topic), "deleted topic not erased", topic)
        await coordinator.open_missing()
        return coordinator

    async def open_missing(self) -> None:
        """Opens the partitions that should be open and are not: at the start, or after an error.

        One that cannot be opened is logged and does not hold up the others.
        """
        for topic in self.catalog.topics():
            if not self._partitions.has_all(topic):
                await self._try(self._partitions.open(topic), "topic not opened", topic)

    async def create(self, name: str, partition_count: int, settings: TopicSettings) -> Topic:
        """Creates a topic; see `TopicCatalog.decide_create` for what may go wrong.

        Its partitions are opened before anyone is told of it.
        """
        now_ms = self._clock.now_ms()
        topic_id = secrets.token_hex(TOPIC_ID_BYTES)
        decided = self.catalog.decide_create(
            name,
            partition_count,
            settings,
            defaults=self._defaults,
            topic_id=topic_id,
            now_ms=now_ms,
        )
        await self._commit(decided)
        topic = self.catalog.get(name, topic_id)
        try:
            await self._partitions.open(topic)
        except LogbrokerError:
            await self._undo(topic)
            raise
        return topic

    async def update(self, name: str, topic_id: str, settings: TopicSettings) -> Topic:
        """Changes settings and returns the topic as it is then."""
        await self._commit(self.catalog.decide_update(name, topic_id, settings))
        topic = self.catalog.get(name, topic_id)
        await self._partitions.open(topic)
        return topic

    async def grow(self, name: str, topic_id: str, partition_count: int) -> Topic:
        """Adds partitions and returns the topic as it is then."""
        await self._commit(self.catalog.decide_grow(name, topic_id, partition_count))
        topic = self.catalog.get(name, topic_id)
        await self._partitions.open(topic)
        return topic

    async def delete(self, name: str, topic_id: str) -> None:
        """Deletes a topic and returns when its files are gone."""
        topic = self.catalog.get(name, topic_id)
        await self._commit(self.catalog.decide_delete(name, topic_id))
        await self._erase(topic)

    async def close(self) -> None:
        """Shortens the journal if that is worth it."""
        await self._snapshot()

    async def _commit(self, decided: Sequence[TopicEvent]) -> None:
        if not decided:
            return
        durable = self._journal.append([events.encode(event) for event in decided])
        for event in decided:
            self.catalog.apply(event)
        await durable
        await self._snapshot()

    async def _snapshot(self) -> None:
        if not self._journal.wants_snapshot:
            return
        try:
            await self._journal.snapshot([events.encode(e) for e in self.catalog.snapshot()])
        except LogbrokerError as error:
            log.warning("journal not shortened", journal=CATALOG_TOPIC, reason=error.reason)

    async def _undo(self, topic: Topic) -> None:
        """Takes a creation back: a topic is there with all its partitions, or not at all."""
        await self._try(self.delete(topic.topic, topic.topic_id), "creation not undone", topic)

    async def _try(self, step: Awaitable[None], failed: str, topic: Topic) -> None:
        """Takes a step that may fail now, and that a later moment or start takes again."""
        try:
            await step
        except LogbrokerError as error:
            log.error(failed, topic=topic.topic, reason=error.reason, error=str(error))

    async def _erase(self, topic: Topic) -> None:
        for partition in self._engine.partitions():
            if partition.topic_id == topic.topic_id:
                await self._partitions.delete(partition)
        await self._commit([TopicErased(topic.topic_id)])
