"""Topics whose files are there and whose settings are lost: what lies there, and two ways out.

Only what the journal of topics does not know is touched, and only while no broker runs.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from logbroker.clock import SystemClock
from logbroker.config import LogConfig, StorageConfig
from logbroker.errors import InvalidError, NotFoundError, UnavailableError
from logbroker.group import events as group_events
from logbroker.group.group_events import InLedger
from logbroker.group.ledger_events import Moment
from logbroker.group.ledgers import Ledgers
from logbroker.record.partition_id import INTERNAL
from logbroker.storage.file import paths
from logbroker.storage.file.disk import Disk
from logbroker.storage.file.engine import FileEngine, places_in
from logbroker.storage.file.journal_file import read_events
from logbroker.storage.file.offline import no_broker_on
from logbroker.storage.journal import Journal
from logbroker.topic import events
from logbroker.topic.catalog import TopicCatalog
from logbroker.topic.events import TopicCreated, TopicEvent
from logbroker.topic.names import CATALOG_TOPIC, GROUPS_TOPIC
from logbroker.topic.topic import Topic, TopicSettings

ENDLESS = TopicSettings(retention_ms=0, retention_bytes=0)
"""Nothing of what is taken back goes before its owner has said how long it shall stay."""


class Source(NamedTuple):
    """Where the records of a dead-letter topic come from."""

    topic: str
    topic_id: str
    group: str


class LostTopic(NamedTuple):
    """What lies there of a topic that nobody remembers."""

    topic: str
    topic_ids: frozenset[str]
    """As its partitions say; more than one: of several topics that had this name."""
    partitions: tuple[int, ...]
    unreadable: tuple[int, ...]
    """Those of them whose checkpoint cannot be read."""

    @property
    def partition_count(self) -> int:
        """Returns how many it had, at least."""
        return max(self.partitions) + 1

    @property
    def missing(self) -> list[int]:
        """Returns which partitions are not there."""
        return sorted(set(range(self.partition_count)) - set(self.partitions))

    def check_can_be_taken_back(self) -> None:
        """Raises UnavailableError (TOPIC_DAMAGED) where it is not known which topic it was."""
        if len(self.topic_ids) == 1:
            return
        ids = ", ".join(sorted(self.topic_ids))
        why = (
            f"its partitions are of several topics: {ids}"
            if ids
            else "no checkpoint of it is whole"
        )
        message = f"topic {self.topic!r} cannot be taken back: {why}; put it aside"
        raise UnavailableError("TOPIC_DAMAGED", message, topic=self.topic)


def find_lost(data_dir: Path, disk: Disk) -> list[LostTopic]:
    """Returns the lost topics of a data directory, by name. Changes nothing. InvalidError."""
    if not disk.exists(data_dir / paths.TOPICS):
        message = f"{data_dir}: is no data directory of a broker"
        raise InvalidError("INVALID_ARGUMENT", message, path=str(data_dir))
    catalog = _catalog(read_events(data_dir, CATALOG_TOPIC, disk))
    known = {topic.topic for topic in (*catalog.topics(), *catalog.deleted())}
    found: dict[str, dict[int, str]] = {}
    for (topic, number), place in places_in(disk, data_dir).items():
        if topic not in known and not topic.startswith(INTERNAL):
            topic_id = place.partition.topic_id if place.partition else ""
            found.setdefault(topic, {})[number] = topic_id
    return [
        LostTopic(
            topic,
            frozenset(ids.values()) - {""},
            tuple(sorted(ids)),
            tuple(sorted(number for number, topic_id in ids.items() if not topic_id)),
        )
        for topic, ids in sorted(found.items())
    ]


async def take_back(data_dir: Path, topics: Sequence[LostTopic]) -> None:
    """Enters topics in the journal again, all of them or none.

    PreconditionError (BROKER_RUNNING); UnavailableError where it is not known which topic one was.
    """
    clock = SystemClock()
    engine = await FileEngine.start(StorageConfig(data_dir=data_dir), clock)
    try:
        journal = await Journal.open(engine, CATALOG_TOPIC, clock)
        catalog = _catalog(await journal.replay())
        sources = _sources(read_events(data_dir, GROUPS_TOPIC, Disk()))
        decided: list[TopicEvent] = []
        for lost in topics:
            lost.check_can_be_taken_back()
            created = catalog.decide_create(
                lost.topic,
                lost.partition_count,
                ENDLESS,
                defaults=LogConfig(),
                topic_id=min(lost.topic_ids),
                now_ms=clock.now_ms(),
            )
            for event in created:
                assert isinstance(event, TopicCreated)
                again = TopicCreated(_with_source(event.topic, sources))
                catalog.apply(again)
                decided.append(again)
        await journal.append([events.encode(event) for event in decided])
    finally:
        await engine.close()


def place_aside(data_dir: Path, topic: str, disk: Disk) -> Path:
    """Returns where `put_aside` would move a topic: a name that is free."""
    lost, number = data_dir / paths.LOST, 1
    target = lost / topic
    while disk.exists(target):
        number += 1
        target = lost / f"{topic}~{number}"
    return target


def put_aside(data_dir: Path, topic: str, disk: Disk) -> Path:
    """Moves the directory of a topic out of the broker's sight, durably; returns where to.

    PreconditionError (BROKER_RUNNING); NotFoundError for one that is not lost.
    """
    with no_broker_on(data_dir, disk):
        check_lost(topic, find_lost(data_dir, disk))
        target = place_aside(data_dir, topic, disk)
        disk.make_directory(target.parent)
        disk.rename(data_dir / paths.TOPICS / topic, target)
        disk.sync_directory(target.parent)
        disk.sync_directory(data_dir / paths.TOPICS)
        return target


def check_lost(topic: str, lost: Sequence[LostTopic]) -> LostTopic:
    """Returns the one of this name; NotFoundError where it is not lost."""
    for one in lost:
        if one.topic == topic:
            return one
    message = f"topic {topic!r} is not lost: the journal knows it, or there are no files of it"
    raise NotFoundError("TOPIC_NOT_FOUND", message, topic=topic)


def _catalog(journaled: Sequence[bytes]) -> TopicCatalog:
    catalog = TopicCatalog()
    catalog.restore([events.decode(event) for event in journaled])
    return catalog


def _sources(journaled: Sequence[bytes]) -> dict[str, Source]:
    """Returns, by the id of each dead-letter topic that groups know, whose letters it is for."""
    known = Ledgers()
    for event in map(group_events.decode, journaled):
        if not isinstance(event, InLedger):
            known.apply(event, Moment(0, 0))
    return {
        read.dead_letter_topic_id: Source(read.topic, read.topic_id, group.group)
        for group in known.catalog.groups()
        for read in group.topics
        if read.dead_letter_topic_id
    }


def _with_source(topic: Topic, sources: dict[str, Source]) -> Topic:
    if (source := sources.get(topic.topic_id)) is None:
        return topic
    return replace(
        topic,
        source_topic=source.topic,
        source_topic_id=source.topic_id,
        source_group=source.group,
    )
