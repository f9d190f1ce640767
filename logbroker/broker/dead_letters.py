"""Dead letters: their topics, and the way there of what a group failed at.

The journal's record that settles a record in its source is the dead letter's birth; its copy
is appended afterwards, with a sequence that follows from that record: the number of dead
letters its ledger had before, under an epoch that is new with each link between a group's
topic and its dead-letter topic. What a stop left unwritten is written at the next start; what
was written is told by the sequences in the dead-letter topic, and is not written again.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace

import structlog

from logbroker.broker.coordinator import Coordinator
from logbroker.broker.groups import Groups, Letter
from logbroker.broker.partitions import Partition
from logbroker.errors import (
    AlreadyExistsError,
    DataLossError,
    LogbrokerError,
    NotFoundError,
    OffsetOutOfRangeError,
)
from logbroker.group.dead_letter import DeadLetter, with_dead_letter
from logbroker.group.events import Event, InLedger, LedgerId
from logbroker.group.group import TopicRead
from logbroker.group.ledger_events import GivenUp
from logbroker.group.retry_policy import Exhausted
from logbroker.limits import FETCH_BYTES
from logbroker.record.batch import Batch
from logbroker.record.columns import Columns, decode_records, encode_batch
from logbroker.record.record import Record
from logbroker.storage.engine import PartitionLog
from logbroker.topic.names import dead_letter_topic
from logbroker.topic.producers import OWN_PRODUCER_ID
from logbroker.topic.topic import Topic, TopicSettings

DEAD_LETTER_PRODUCER_ID = OWN_PRODUCER_ID
RETRY_MS = (1_000, 60_000)
"""How long to wait where a dead letter cannot be written: at first, and at most."""
LETTERS_PER_BATCH = 1_000

log = structlog.get_logger()

Stamped = tuple[Record, int]
"""A record and its append time."""


class DeadLetters:
    """Makes dead-letter topics, and writes what belongs there, in order."""

    def __init__(self, groups: Groups, coordinator: Coordinator) -> None:
        self._groups = groups
        self._coordinator = coordinator
        self._has_letters = asyncio.Event()
        groups.on_letter = self._has_letters.set

    async def decided(self, decide: Callable[[], list[InLedger]]) -> list[InLedger]:
        """Returns what `decide` does, once there is a topic for the dead letters in it."""
        while True:
            decided = decide()
            missing = {
                told.ledger
                for told in decided
                if is_letter(told) and self._target_of(told.ledger) is None
            }
            if not missing:
                return decided
            for ledger_id in missing:
                await self.make_topic(ledger_id)

    def check_name(self, group: str, topic: Topic) -> None:
        """Raises unless the group's dead-letter topic for `topic` can be made, or is there.

        InvalidError for a name that is too long, AlreadyExistsError for one that is taken.
        """
        name = dead_letter_topic(topic.topic, group)
        found = next((one for one in self._groups.topics.topics() if one.topic == name), None)
        if found and (found.source_topic, found.source_group) != (topic.topic, group):
            message = f"topic {name!r} is none for the dead letters of {group!r} in {topic.topic!r}"
            raise AlreadyExistsError("TOPIC_ALREADY_EXISTS", message, topic=name)

    async def make_topic(self, ledger_id: LedgerId) -> None:
        """Makes the dead-letter topic of a group for a topic, and links the two."""
        groups = self._groups
        source = groups.topics.find(ledger_id.topic_id)
        if source is None:
            message = f"topic {ledger_id.topic_id} is gone"
            raise NotFoundError("TOPIC_NOT_FOUND", message, topic_id=ledger_id.topic_id)
        name = dead_letter_topic(source.topic, ledger_id.group)
        self.check_name(ledger_id.group, source)
        try:
            target = groups.topics.get(name)
        except NotFoundError:
            settings = TopicSettings(
                durability=source.settings.durability, retention_ms=0, retention_bytes=0
            )
            try:
                target = await self._coordinator.create_dead_letter_topic(
                    name, source, ledger_id.group, settings
                )
            except AlreadyExistsError:
                target = groups.topics.get(name)
        if target.partition_count < source.partition_count:
            target = await self._coordinator.grow(name, target.topic_id, source.partition_count)
        await self._link(ledger_id.group, source, target)

    async def _link(self, group: str, source: Topic, target: Topic) -> None:
        groups = self._groups
        catalog = groups.state.catalog
        known = catalog.get(group).topic(source.topic_id)
        if known is None:
            message = f"group {group!r} does not read {source.topic!r}"
            raise NotFoundError("TOPIC_NOT_FOUND", message, topic=source.topic)
        decided: list[Event] = []
        if known.dead_letter_topic_id != target.topic_id:
            tables = [groups.partitions.get(one).producers for one in target.partitions()]
            epoch = max(table.last_of(DEAD_LETTER_PRODUCER_ID)[0] for table in tables) + 1
            linked = replace(
                known,
                dead_letter_topic=target.topic,
                dead_letter_topic_id=target.topic_id,
                dead_letter_epoch=epoch,
            )
            decided += catalog.decide_attach(group, linked)
        attached = groups.commit(decided)
        started: list[Event] = []
        for partition in target.partitions():
            ledger_id = LedgerId(group, target.topic_id, partition.partition)
            if groups.state.get(ledger_id) is None:
                ledger = groups.state.new_ledger(ledger_id)
                start = groups.partitions.get(partition).log.bounds().log_start_offset
                started += [InLedger(ledger_id, event) for event in ledger.decide_start(start)]
        done = groups.commit(started)
        if live := groups.live.get(group):
            live.refresh()
        await attached
        await done

    def _target_of(self, ledger_id: LedgerId) -> tuple[TopicRead, Topic] | None:
        """Returns the link and the dead-letter topic of a ledger, if its partition is there."""
        group = self._groups.state.catalog.find(ledger_id.group)
        topic = group.topic(ledger_id.topic_id) if group else None
        target = self._groups.topics.find(topic.dead_letter_topic_id) if topic else None
        if topic is None or target is None or ledger_id.partition >= target.partition_count:
            return None
        return topic, target

    # Writing

    async def run(self) -> None:
        """Writes dead letters as they come, until it is cancelled."""
        groups = self._groups
        delay_ms = RETRY_MS[0]
        while True:
            if not groups.letters:
                self._has_letters.clear()
                await self._has_letters.wait()
            try:
                await self._write_some()
                delay_ms = RETRY_MS[0]
            except LogbrokerError as error:
                log.error("dead letters not written", reason=error.reason, error=str(error))
                for letter in groups.letters:
                    _tried(letter)
                await groups.clock.wait_until(groups.clock.monotonic_ms() + delay_ms)
                delay_ms = min(delay_ms * 2, RETRY_MS[1])

    async def _write_some(self) -> None:
        """Writes those of the first one's ledger that come next to one another."""
        letters = self._groups.letters
        ledger_id = letters[0].ledger_id
        run = [letters[0]]
        for letter in letters[1:LETTERS_PER_BATCH]:
            if letter.ledger_id != ledger_id:
                break
            run.append(letter)
        for letter in run:
            if letter.is_durable and not letter.is_durable.done():
                await asyncio.wait([letter.is_durable])
        if self._groups.state.get(ledger_id) is not None:
            await self._write(ledger_id, run)
        for letter in run:
            if letter in letters:
                letters.remove(letter)
            _tried(letter)

    async def _write(self, ledger_id: LedgerId, run: list[Letter]) -> None:
        if self._target_of(ledger_id) is None:
            await self.make_topic(ledger_id)
        found = self._target_of(ledger_id)
        assert found, "it was just made"
        topic, target_topic = found
        groups = self._groups
        source = groups.partition(ledger_id)
        target = groups.partitions.get(target_topic.partition(ledger_id.partition))
        for letter in run:
            if letter.is_durable and letter.is_durable.exception():
                continue  # the journal failed: nobody was told that it is settled
            sequence = letter.sequence
            for first, end in letter.event.ranges:
                if _is_written(target, topic, sequence + end - first):
                    sequence += end - first
                    continue
                records = await _read(source.log, source.id.seed, first, end)
                await self._append(
                    target, topic, ledger_id, letter.event, records, sequence - first
                )
                sequence += end - first
        if live := groups.live.get(ledger_id.group):
            live.look_into(LedgerId(ledger_id.group, target_topic.topic_id, ledger_id.partition))

    async def _append(
        self,
        target: Partition,
        topic: TopicRead,
        ledger_id: LedgerId,
        event: GivenUp,
        records: list[Stamped],
        shift: int,
    ) -> None:
        """Appends what is not there yet; `shift` makes sequences of offsets."""
        epoch, next_sequence = target.producers.last_of(DEAD_LETTER_PRODUCER_ID)
        if epoch == topic.dead_letter_epoch:
            records = [one for one in records if one[0].offset + shift >= next_sequence]
        for run in _sized(records):
            first = run[0][0].offset
            batch = encode_batch(
                _columns(run, topic, ledger_id, event),
                now_ms=self._groups.clock.now_ms(),
                producer_id=DEAD_LETTER_PRODUCER_ID,
                producer_epoch=topic.dead_letter_epoch,
                base_sequence=first + shift,
            )
            base = target.log.bounds().next_offset
            appended = target.log.append(batch)
            now_ms = self._groups.clock.now_ms()
            stored = batch.header._replace(base_offset=base, append_time_ms=now_ms)
            target.producers.apply(stored)
            target.unsaved_bytes += batch.header.size_bytes
            await appended


def is_letter(told: InLedger) -> bool:
    """Returns whether this event makes dead letters."""
    event = told.event
    return isinstance(event, GivenUp) and event.outcome is Exhausted.DEAD_LETTER


def _is_written(target: Partition, topic: TopicRead, end: int) -> bool:
    """Returns whether all sequences below `end` are in the log."""
    epoch, next_sequence = target.producers.last_of(DEAD_LETTER_PRODUCER_ID)
    return epoch == topic.dead_letter_epoch and end <= next_sequence


def _tried(letter: Letter) -> None:
    if not letter.is_tried.done():
        letter.is_tried.set_result(None)


async def _read(partition_log: PartitionLog, seed: int, first: int, end: int) -> list[Stamped]:
    """Returns the records from `first` up to `end`, as far as they can be read."""
    found: list[Stamped] = []
    offset = first
    while offset < end:
        try:
            run = await partition_log.read(offset, FETCH_BYTES)
        except DataLossError as error:
            offset = int(error.details["next_offset"])
            log.error("dead letters lost to damage", offset=first, next_offset=offset)
            continue
        except OffsetOutOfRangeError:
            log.error("dead letters lost to retention", offset=offset, end=end)
            offset = max(offset + 1, min(end, partition_log.bounds().log_start_offset))
            continue
        at = 0
        while at < len(run.batches):
            batch = Batch.decode(run.batches, seed, at)
            at += batch.header.size_bytes
            if batch.header.base_offset >= end:
                break
            found += [
                (record, batch.header.append_time_ms)
                for record in decode_records(batch)
                if offset <= record.offset < end
            ]
        offset = run.next_offset
    return found


def _columns(run: list[Stamped], topic: TopicRead, ledger_id: LedgerId, event: GivenUp) -> Columns:
    rows = []
    for index, (record, append_time_ms) in enumerate(run):
        letter = DeadLetter(
            topic.topic,
            topic.topic_id,
            ledger_id.partition,
            record.offset,
            append_time_ms,
            ledger_id.group,
            event.failures,
            event.first_ms,
            event.at_ms,
            event.reason,
        )
        rows.append((index, with_dead_letter(record.headers, letter)))
    keys = [record.key for record, _ in run]
    return Columns(
        [record.value for record, _ in run],
        keys if any(key is not None for key in keys) else None,
        [record.timestamp_ms for record, _ in run],
        rows,
    )


def _sized(records: Iterable[Stamped]) -> list[list[Stamped]]:
    """Returns the records in runs of about FETCH_BYTES, without gaps between their offsets."""
    runs: list[list[Stamped]] = []
    size = 0
    for stamped in records:
        record = stamped[0]
        size += len(record.key or b"") + len(record.value or b"") + 1_500
        if runs and size < FETCH_BYTES and runs[-1][-1][0].offset + 1 == record.offset:
            runs[-1].append(stamped)
        else:
            runs.append([stamped])
            size = 0
    return runs
