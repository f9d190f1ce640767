"""Parked records as they lie: dead letters in their topic, blocked records in the group's own.

Both are read the same way: whole batches, of which only those are taken apart that may hold
what is looked for.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import NamedTuple

from logbroker.broker.groups import Groups
from logbroker.errors import DataLossError, NotFoundError, OffsetOutOfRangeError
from logbroker.group.dead_letter import (
    FIELD_NAMES,
    DeadLetter,
    dead_letter_of,
    with_last_failure,
)
from logbroker.group.events import LedgerId
from logbroker.group.group import TopicRead
from logbroker.group.ledger import Ledger
from logbroker.group.ledger_state import LedgerState
from logbroker.group.record_state import State
from logbroker.group.redrive import DeadLetterFacts, Selection
from logbroker.limits import FETCH_BYTES
from logbroker.record.batch import Batch
from logbroker.record.columns import decode_records, keys_and_header
from logbroker.record.compression import Codec
from logbroker.record.offset_ranges import OffsetRanges, Range
from logbroker.record.record import Record
from logbroker.storage.engine import PartitionLog
from logbroker.topic.topic import Topic

NAMES = {State.SETTLED: "resolved", State.SUSPECT: "available"}
NOT_OURS = "published here by somebody; no group failed at it"


class FoundLetter(NamedTuple):
    """A parked record: where it lies, where it came from, how it stands."""

    dead_letter_topic: str
    """Empty for a blocked record, which lies where it came from."""
    partition: int
    letter: DeadLetter
    record: Record
    dead_lettered_ms: int
    state: str
    redrives: int


class Shelf(NamedTuple):
    """Where parked records of a group and a topic lie."""

    group: str
    topic: Topic
    """Whose partitions they are in."""
    source: TopicRead
    is_blocked: bool

    def ledger_id(self, partition: int) -> LedgerId:
        """Returns which ledger has them parked."""
        return LedgerId(self.group, self.topic.topic_id, partition)


class Found(NamedTuple):
    """What was found in a stretch of a partition."""

    offsets: list[int]
    letters: list[FoundLetter]
    """The same, where they were asked for."""
    next_offset: int
    record_count: int
    """How many there are, found or not."""


class ParkedRecords:
    """Finds parked records, and reads them."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def shelf(self, group: str, topic: str, *, is_blocked: bool = False) -> Shelf | None:
        """Returns where they lie; None where there is no dead-letter topic. NotFoundError."""
        groups = self._groups
        for read in groups.state.catalog.get(group).topics:
            if read.topic == topic:
                topic_id = read.topic_id if is_blocked else read.dead_letter_topic_id
                found = groups.topics.find(topic_id)
                return Shelf(group, found, read, is_blocked) if found else None
        source = groups.topics.get(topic).source_topic
        message = f"group {group!r} does not read {topic!r}"
        if source:
            message += f"; it is for what failed in {source!r}: name that topic"
        raise NotFoundError("TOPIC_NOT_FOUND", message, topic=topic, group=group)

    def shelf_of(self, ledger_id: LedgerId) -> Shelf | None:
        """Returns where the parked records of a ledger lie; None where its topic is gone."""
        group = self._groups.state.catalog.find(ledger_id.group)
        topic = self._groups.topics.find(ledger_id.topic_id)
        for read in group.topics if group and topic else ():
            if topic and ledger_id.topic_id in (read.topic_id, read.dead_letter_topic_id):
                is_blocked = ledger_id.topic_id == read.topic_id
                return Shelf(ledger_id.group, topic, read, is_blocked)
        return None

    def ledger(self, shelf: Shelf, partition: int) -> Ledger | None:
        """Returns the ledger of a partition; None where the group has not begun there."""
        return self._groups.state.get(shelf.ledger_id(partition))

    def log(self, shelf: Shelf, partition: int) -> PartitionLog:
        """Returns the log of a partition they lie in."""
        return self._groups.partitions.get(shelf.topic.partition(partition)).log

    def wanted(
        self, shelf: Shelf, partition: int, selection: Selection, *, with_resolved: bool
    ) -> list[Range]:
        """Returns where in a partition something may lie that is meant."""
        bounds = self.log(shelf, partition).bounds()
        first, end = selection.within(partition, bounds.high_watermark)
        first = max(first, bounds.log_start_offset)
        ledger = self.ledger(shelf, partition)
        if first >= end or (ledger is None and shelf.is_blocked):
            return []
        if ledger is None or (with_resolved and not shelf.is_blocked):
            return [(first, end)]
        if shelf.is_blocked:
            return ledger.state.parked.within(first, end)
        return ledger.state.settled.gaps(max(first, ledger.state.committed), end)

    async def read(
        self,
        shelf: Shelf,
        partition: int,
        ranges: Iterable[Range],
        selection: Selection | None = None,
        *,
        with_records: bool = True,
    ) -> AsyncIterator[Found]:
        """Yields, batch by batch, what the selection means, the limit aside.

        What cannot be read is passed over.
        """
        wanted = OffsetRanges(ranges)
        async for batch in self.batches(shelf, partition, wanted):
            yield self._found(shelf, partition, batch, wanted, selection, with_records)

    async def find(self, shelf: Shelf, partition: int, offset: int) -> FoundLetter | None:
        """Returns what lies at this offset; None where nothing does, or nothing is parked."""
        only = Selection(partition=partition, first_offset=offset, end_offset=offset + 1)
        ranges = self.wanted(shelf, partition, only, with_resolved=True)
        async for part in self.read(shelf, partition, ranges):
            for letter in part.letters:
                return letter
        return None

    async def batches(
        self, shelf: Shelf, partition: int, wanted: OffsetRanges
    ) -> AsyncIterator[Batch]:
        """Yields the batches that hold what is wanted, as far as they can be read."""
        if not wanted:
            return
        seed, partition_log = shelf.topic.partition(partition).seed, self.log(shelf, partition)
        offset, end = wanted.first, min(wanted.end, partition_log.bounds().high_watermark)
        while (offset := wanted.next_held(offset, end)) < end:
            try:
                run = await partition_log.read(offset, FETCH_BYTES)
            except DataLossError as error:
                offset = int(error.details["next_offset"])
                continue
            except OffsetOutOfRangeError:  # retention was faster
                offset = max(offset + 1, partition_log.bounds().log_start_offset)
                continue
            at = 0
            while at < len(run.batches):
                batch = Batch.decode(run.batches, seed, at)
                at += batch.header.size_bytes
                if wanted.meets(batch.header.base_offset, batch.header.next_offset):
                    yield batch
            offset = run.next_offset
            await asyncio.sleep(0)  # more may follow, and others wait

    def _found(
        self,
        shelf: Shelf,
        partition: int,
        batch: Batch,
        wanted: OffsetRanges,
        selection: Selection | None,
        with_records: bool,
    ) -> Found:
        header = batch.header
        nothing = Found([], [], header.next_offset, header.record_count)
        ledger = self.ledger(shelf, partition)
        if selection and not _may_hold(shelf, batch, ledger, selection):
            return nothing
        facts = _facts(shelf, batch, ledger)
        offsets = [
            one.offset
            for one in facts
            if one.offset in wanted and (selection is None or selection.means(one))
        ]
        if not offsets or not with_records:
            return nothing._replace(offsets=offsets)
        chosen = OffsetRanges((at, at + 1) for at in offsets)
        letters = [
            letter_at(shelf, batch, record, ledger)
            for record in decode_records(batch, partition)
            if record.offset in chosen
        ]
        return nothing._replace(offsets=offsets, letters=letters)


def _may_hold(shelf: Shelf, batch: Batch, ledger: Ledger | None, selection: Selection) -> bool:
    """Returns whether the batch may hold what is meant: looked at without taking it apart."""
    header = batch.header
    if not selection.needs_records:
        return True
    is_plain = header.codec is Codec.NONE
    if selection.key is not None and is_plain and selection.key not in bytes(batch.records):
        return False
    if shelf.is_blocked:
        return True
    from_ms, until_ms = selection.from_time_ms, selection.until_time_ms
    if from_ms is not None and header.append_time_ms < from_ms:
        return False
    if until_ms is not None and header.append_time_ms >= until_ms:
        return False
    if selection.reason is None or not is_plain:
        return True
    failed_again = ledger and ledger.state.last_failures.meets(
        header.base_offset, header.next_offset
    )
    return bool(failed_again) or selection.reason.encode() in bytes(batch.records)


def _facts(shelf: Shelf, batch: Batch, ledger: Ledger | None) -> list[DeadLetterFacts]:
    """Returns what selections look at, of each record of a batch."""
    state, found = ledger.state if ledger else None, []
    for offset, key, header in keys_and_header(batch, FIELD_NAMES["reason"]):
        at_ms, reason = batch.header.append_time_ms, (header or b"").decode("utf-8", "replace")
        if state and shelf.is_blocked:
            known = state.failures.get(offset)
            at_ms, reason = (known.at_ms, known.reason) if known else (0, "")
        elif state and (last := state.last_failures.at(offset)):
            reason = last.reason
        found.append(DeadLetterFacts(offset, key, at_ms, reason))
    return found


def letter_at(shelf: Shelf, batch: Batch, record: Record, ledger: Ledger | None) -> FoundLetter:
    """Returns what a parked record is, and how it stands in the ledger."""
    state, redrives = State.PARKED, 0
    if ledger:
        state = ledger.state.state_of(record.offset)
        redrives = ledger.state.redrives.at(record.offset)
    name = NAMES.get(state, state.name.lower())
    appended_ms = batch.header.append_time_ms
    if shelf.is_blocked:
        letter = _blocked(shelf, record, appended_ms, ledger.state if ledger else None)
        at_ms = letter.last_failure_ms
        return FoundLetter("", record.partition, letter, record, at_ms, name, redrives)
    try:
        letter = dead_letter_of(record.headers)
    except DataLossError:
        letter = _unknown(shelf, record, appended_ms, NOT_OURS)
    if ledger:
        letter = with_last_failure(letter, ledger.state.last_failures.at(record.offset))
    topic = shelf.topic.topic
    return FoundLetter(topic, record.partition, letter, record, appended_ms, name, redrives)


def _blocked(
    shelf: Shelf, record: Record, appended_ms: int, state: LedgerState | None
) -> DeadLetter:
    known = state.failures.get(record.offset) if state else None
    letter = _unknown(shelf, record, appended_ms, "")
    letter = letter._replace(topic=shelf.topic.topic, topic_id=shelf.topic.topic_id)
    first_ms = known.first_ms if known else 0
    return with_last_failure(letter._replace(first_failure_ms=first_ms), known)


def _unknown(shelf: Shelf, record: Record, appended_ms: int, reason: str) -> DeadLetter:
    place = (record.partition, record.offset, appended_ms)
    return DeadLetter("", "", *place, shelf.group, 0, 0, 0, reason)
