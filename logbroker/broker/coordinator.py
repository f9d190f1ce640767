"""Decides, journals, applies: how topics change.

No `await` lies between a decision and its application. An event that the journal refuses
is not applied; an answer waits until its event is durable. If that fails, the catalog is
what the journal is known to hold. Files take several steps: see `Changes`.
"""

import secrets
from collections.abc import Awaitable, Sequence
from dataclasses import replace

import structlog

from logbroker.broker.changes import Changes
from logbroker.broker.partitions import Partitions
from logbroker.broker.producer_ids import ProducerIds
from logbroker.clock import Clock
from logbroker.config import LogConfig
from logbroker.errors import LogbrokerError, UnavailableError
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
        producer_ids: ProducerIds,
        clock: Clock,
        defaults: LogConfig,
    ) -> None:
        self.catalog = catalog
        self._journal = journal
        self.has_failed = journal.has_failed
        self._engine = engine
        self._partitions = partitions
        self._producer_ids = producer_ids
        self._clock = clock
        self._defaults = defaults
        self._changes = Changes()
        self._failures: dict[tuple[str, str], str] = {}

    @classmethod
    async def open(
        cls,
        engine: Engine,
        partitions: Partitions,
        producer_ids: ProducerIds,
        clock: Clock,
        defaults: LogConfig,
    ) -> "Coordinator":
        """Replays the journal, opens all partitions, finishes deletions a stop interrupted."""
        journal = await Journal.open(engine, CATALOG_TOPIC, clock)
        catalog = TopicCatalog()
        catalog.restore([events.decode(event) for event in await journal.replay()])
        catalog.find_damaged(engine.partitions())
        for name in sorted(catalog.damaged_topics):
            log.error("topic damaged: files without settings", topic=name)
        coordinator = cls(catalog, journal, engine, partitions, producer_ids, clock, defaults)
        await coordinator.erase_deleted()
        await coordinator.open_missing()
        return coordinator

    async def erase_deleted(self) -> None:
        """Removes what is left of deleted topics: at the start, or after an error."""
        for topic in self.catalog.deleted():
            erasing = self._changes.run(topic.topic, self._erase_if_there(topic.topic_id))
            await self._try(erasing, "deleted topic not erased", topic)

    async def open_missing(self) -> None:
        """Opens the partitions that should be open and are not: at the start, or after an error.

        One that cannot be opened is logged and does not hold up the others.
        """
        for topic in self.catalog.topics():
            if not self._partitions.has_all(topic):
                opening = self._changes.run(topic.topic, self._open_if_there(topic.topic_id))
                await self._try(opening, "topic not opened", topic)

    async def create(self, name: str, partition_count: int, settings: TopicSettings) -> Topic:
        """Creates a topic; see `TopicCatalog.decide_create` for what may go wrong.

        Its partitions are open when anyone is told of it, or told that it exists.
        """
        return await self._changes.run(name, self._create(name, partition_count, settings))

    async def create_dead_letter_topic(
        self, name: str, source: Topic, group: str, settings: TopicSettings
    ) -> Topic:
        """Creates the topic for what `group` fails at in `source`, as `create` does."""
        count = source.partition_count
        making = self._create(name, count, settings, source=source, source_group=group)
        return await self._changes.run(name, making)

    async def update(self, name: str, topic_id: str, settings: TopicSettings) -> Topic:
        """Changes settings and returns the topic as it is then."""
        return await self._changes.run(name, self._update(name, topic_id, settings))

    async def grow(self, name: str, topic_id: str, partition_count: int) -> Topic:
        """Adds partitions and returns the topic as it is then."""
        return await self._changes.run(name, self._grow(name, topic_id, partition_count))

    async def delete(self, name: str, topic_id: str) -> None:
        """Deletes a topic and returns when its files are gone.

        UnavailableError where the topic is gone and files are not; they are removed later.
        """
        await self._changes.run(name, self._delete(name, topic_id))

    async def close(self) -> None:
        """Finishes what is under way, and shortens the journal if that is worth it."""
        await self._changes.wait_done()
        await self._snapshot()

    async def _create(
        self,
        name: str,
        partition_count: int,
        settings: TopicSettings,
        *,
        source: Topic | None = None,
        source_group: str = "",
    ) -> Topic:
        now_ms = self._clock.now_ms()
        topic_id = secrets.token_hex(TOPIC_ID_BYTES)
        decided = self.catalog.decide_create(
            name,
            partition_count,
            settings,
            defaults=self._defaults,
            topic_id=topic_id,
            now_ms=now_ms,
            source=source,
            source_group=source_group,
        )
        await self._commit(decided)
        topic = self.catalog.get(name, topic_id)
        try:
            await self._partitions.open(topic)
        except LogbrokerError:
            await self._undo(topic)
            raise
        return topic

    async def _update(self, name: str, topic_id: str, settings: TopicSettings) -> Topic:
        await self._commit(self.catalog.decide_update(name, topic_id, settings))
        topic = self.catalog.get(name, topic_id)
        await self._partitions.open(topic)
        return topic

    async def _grow(self, name: str, topic_id: str, partition_count: int) -> Topic:
        self.catalog.decide_grow(name, topic_id, partition_count)
        topic = self.catalog.get(name, topic_id)
        # first the partitions, which nobody can name yet: if that fails nothing has happened
        await self._partitions.open(replace(topic, partition_count=partition_count))
        await self._commit(self.catalog.decide_grow(name, topic_id, partition_count))
        return self.catalog.get(name, topic_id)

    async def _delete(self, name: str, topic_id: str) -> None:
        topic = self.catalog.get(name, topic_id)
        await self._commit(self.catalog.decide_delete(name, topic_id))
        try:
            await self._erase(topic)
        except LogbrokerError as error:
            message = f"topic {name!r} is deleted; its files could not be removed yet: {error}"
            details = {**error.details, "topic": name}
            raise UnavailableError("STORAGE_FAILED", message, **details) from error

    async def _open_if_there(self, topic_id: str) -> None:
        for topic in self.catalog.topics():
            if topic.topic_id == topic_id:
                await self._partitions.open(topic)

    async def _commit(self, decided: Sequence[TopicEvent]) -> None:
        if not decided:
            return
        durable = self._journal.append([events.encode(event) for event in decided])
        for event in decided:
            self.catalog.apply(event)
        try:
            await durable
        except LogbrokerError:
            replayed = await self._journal.replay()
            self.catalog.restore([events.decode(event) for event in replayed])
            raise
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
        await self._try(self._delete(topic.topic, topic.topic_id), "creation not undone", topic)

    async def _try(self, step: Awaitable[None], failed: str, topic: Topic) -> None:
        """Takes a step that may fail now, and that a later moment or start takes again.

        However often that is, the same failure is logged once.
        """
        try:
            await step
        except LogbrokerError as error:
            if self._failures.get((topic.topic_id, failed)) != str(error):
                log.error(failed, topic=topic.topic, reason=error.reason, error=str(error))
            self._failures[topic.topic_id, failed] = str(error)
        else:
            self._failures.pop((topic.topic_id, failed), None)

    async def _erase_if_there(self, topic_id: str) -> None:
        for topic in self.catalog.deleted():
            if topic.topic_id == topic_id:
                await self._erase(topic)

    async def _erase(self, topic: Topic) -> None:
        found = [one for one in self._engine.partitions() if one.topic_id == topic.topic_id]
        # the engine knows no topic id of a damaged one, and growth may have left one too many
        for partition in sorted({*found, *topic.partitions()}):
            await self._partitions.delete(partition)
        self.catalog.find_damaged(self._engine.partitions())
        await self._producer_ids.forget(topic.topic_id)
        await self._commit([TopicErased(topic.topic_id)])
