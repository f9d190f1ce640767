"""Dead-letter topics: made on first need, linked to the group and topic they are for.

With each link begins a new epoch of sequences, by which it is known what of a ledger's dead
letters lies in the topic. A topic that is deleted is unlinked (`Groups.forget_topic`), and
the next dead letter has a new one made.
"""

from dataclasses import replace
from typing import NamedTuple

from logbroker.broker.coordinator import Coordinator
from logbroker.broker.groups import Groups
from logbroker.broker.partitions import Partition
from logbroker.config import Durability
from logbroker.errors import AlreadyExistsError, DataLossError, NotFoundError
from logbroker.group.dead_letter import is_dead_letter_of
from logbroker.group.events import Event, InLedger, LedgerId
from logbroker.group.group import TopicRead
from logbroker.limits import FETCH_BYTES
from logbroker.record.batch import Batch
from logbroker.record.columns import decode_records
from logbroker.topic.names import dead_letter_topic
from logbroker.topic.producers import OWN_PRODUCER_ID
from logbroker.topic.topic import Topic, TopicSettings

DEAD_LETTER_PRODUCER_ID = OWN_PRODUCER_ID


class Target(NamedTuple):
    """Where the dead letters of a ledger go."""

    read: TopicRead
    """The source, and the link."""
    topic: Topic


class DeadLetterTopics:
    """Finds them, makes them, links them."""

    def __init__(self, groups: Groups, coordinator: Coordinator) -> None:
        self._groups = groups
        self._coordinator = coordinator

    def find(self, ledger_id: LedgerId) -> Target | None:
        """Returns where dead letters of a ledger go, if there is a partition for them."""
        group = self._groups.state.catalog.find(ledger_id.group)
        read = group.topic(ledger_id.topic_id) if group else None
        topic = self._groups.topics.find(read.dead_letter_topic_id) if read else None
        if read is None or topic is None or ledger_id.partition >= topic.partition_count:
            return None
        return Target(read, topic)

    def check_name(self, group: str, topic: Topic) -> None:
        """Raises unless the group's dead-letter topic for `topic` can be made, or is there.

        InvalidError for a name that is too long, AlreadyExistsError for one that is taken.
        """
        name = dead_letter_topic(topic.topic, group)
        found = self._named(name)
        if found and not _is_of(found, group, topic):
            message = (
                f"topic {name!r} is none for the dead letters of {group!r} in {topic.topic!r}; "
                "delete it, or read as another group"
            )
            raise AlreadyExistsError("TOPIC_ALREADY_EXISTS", message, topic=name)

    def check_apart(self, group: str, topic: Topic) -> None:
        """Raises AlreadyExistsError where another group's dead letters would go to the same name.

        `a.b.c.dlq` is for topic `a` and group `b.c`, or for topic `a.b` and group `c`.
        """
        name = dead_letter_topic(topic.topic, group)
        words = f"{topic.topic}.{group}".split(".")
        for count in range(1, len(words)):
            other_topic, other_group = ".".join(words[:count]), ".".join(words[count:])
            known = self._groups.state.catalog.find(other_group)
            if other_group == group or known is None:
                continue
            if any(read.topic == other_topic for read in known.topics):
                message = (
                    f"dead letters of {group!r} in {topic.topic!r} and of {other_group!r} in "
                    f"{other_topic!r} would both go to {name!r}; read as another group"
                )
                raise AlreadyExistsError("TOPIC_ALREADY_EXISTS", message, topic=name)

    async def make(self, ledger_id: LedgerId) -> None:
        """Makes the dead-letter topic of a group for a topic, and links the two."""
        groups = self._groups
        source = groups.topics.find(ledger_id.topic_id)
        if source is None:
            message = f"topic {ledger_id.topic_id} is gone"
            raise NotFoundError("TOPIC_NOT_FOUND", message, topic_id=ledger_id.topic_id)
        name = dead_letter_topic(source.topic, ledger_id.group)
        self.check_name(ledger_id.group, source)
        # what the source may lose in a power cut is one thing, what a group failed at another
        settings = TopicSettings(durability=Durability.SYNCED, retention_ms=0, retention_bytes=0)
        try:
            target = await self._coordinator.create_dead_letter_topic(
                name, source, ledger_id.group, settings
            )
        except AlreadyExistsError:  # and its partitions are open: somebody else has made it
            self.check_name(ledger_id.group, source)
            target = groups.topics.get(name)
        if target.partition_count < source.partition_count:
            target = await self._coordinator.grow(name, target.topic_id, source.partition_count)
        await self._link(ledger_id.group, source, target)

    async def link_if_there(self, group: str, source: Topic) -> None:
        """Links a dead-letter topic that is there already, of a group or topic that was deleted.

        What lies in it is parked, but for what an earlier topic of that name left there.
        """
        found = self._named(dead_letter_topic(source.topic, group))
        if found and _is_of(found, group, source):
            await self._link(group, source, found)

    def _named(self, name: str) -> Topic | None:
        return next((one for one in self._groups.topics.topics() if one.topic == name), None)

    async def _link(self, group: str, source: Topic, target: Topic) -> None:
        groups = self._groups
        catalog = groups.state.catalog
        partitions = [groups.partitions.get(one) for one in target.partitions()]
        starts = [await _start(one, target, source) for one in partitions]
        known = catalog.get(group).topic(source.topic_id)
        if known is None:
            message = f"group {group!r} does not read {source.topic!r}"
            raise NotFoundError("TOPIC_NOT_FOUND", message, topic=source.topic)
        decided: list[Event] = []
        if known.dead_letter_topic_id != target.topic_id:
            linked = replace(
                known,
                dead_letter_topic=target.topic,
                dead_letter_topic_id=target.topic_id,
                dead_letter_epoch=max(known.dead_letter_epoch, *map(_epoch_of, partitions)) + 1,
            )
            decided += catalog.decide_attach(group, linked)
        attached = groups.commit(decided)
        started: list[Event] = []
        for partition, start in zip(partitions, starts, strict=True):
            ledger_id = LedgerId(group, target.topic_id, partition.id.partition)
            if groups.state.get(ledger_id) is None:
                ledger = groups.state.new_ledger(ledger_id)
                started += [InLedger(ledger_id, event) for event in ledger.decide_start(start)]
        done = groups.commit(started)
        if live := groups.live.get(group):
            live.refresh()
        await attached
        await done


async def _start(partition: Partition, target: Topic, source: Topic) -> int:
    """Returns where the dead letters of the source begin, behind those of an earlier one."""
    bounds = partition.log.bounds()
    offset = bounds.log_start_offset
    if target.source_topic_id == source.topic_id:
        return offset
    while offset < bounds.high_watermark:
        try:
            run = await partition.log.read(offset, FETCH_BYTES)
        except DataLossError as error:
            offset = int(error.details["next_offset"])
            continue
        at = 0
        while at < len(run.batches):
            batch = Batch.decode(run.batches, partition.seed, at)
            at += batch.header.size_bytes
            for record in decode_records(batch):
                if record.offset >= offset and is_dead_letter_of(record.headers, source.topic_id):
                    return record.offset
        offset = run.next_offset
    return bounds.high_watermark


def _is_of(found: Topic, group: str, source: Topic) -> bool:
    return (found.source_topic, found.source_group) == (source.topic, group)


def _epoch_of(partition: Partition) -> int:
    return partition.producers.last_of(DEAD_LETTER_PRODUCER_ID)[0]
