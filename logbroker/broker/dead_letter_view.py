"""Dead letters as an operator sees them: found, listed, shown, resolved, copied elsewhere."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import NamedTuple

import structlog

from logbroker.broker.groups import Groups
from logbroker.broker.produce import NewRecord, Produce
from logbroker.errors import DataLossError, InvalidError, LogbrokerError, NotFoundError
from logbroker.group.dead_letter import (
    DeadLetter,
    dead_letter_of,
    own_headers,
    with_last_failure,
)
from logbroker.group.events import InLedger, LedgerId
from logbroker.group.ledger import Ledger
from logbroker.group.parked import decide_resolve
from logbroker.group.record_state import State
from logbroker.group.redrive import DeadLetterFacts, Selection
from logbroker.limits import DEFAULT_PAGE_SIZE, FETCH_BYTES, PAGE_SIZE
from logbroker.record.batch import Batch
from logbroker.record.columns import decode_records
from logbroker.record.offset_ranges import Range, joined
from logbroker.record.partitioner import partition_of
from logbroker.record.record import Record
from logbroker.topic.topic import Topic

COPIED_AT_ONCE = 500

log = structlog.get_logger()

NAMES = {State.SETTLED: "resolved", State.SUSPECT: "available"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterFilter:
    """Which dead letters of a group and topic."""

    group: str
    topic: str
    selection: Selection = field(default_factory=Selection)


class FoundLetter(NamedTuple):
    """A dead letter: where it lies, where it came from, its record, how it stands."""

    dead_letter_topic: str
    partition: int
    letter: DeadLetter
    record: Record
    dead_lettered_ms: int
    state: str
    redrives: int

    @property
    def facts(self) -> DeadLetterFacts:
        """Returns what a selection looks at."""
        record = self.record
        reason = self.letter.reason
        return DeadLetterFacts(record.offset, record.key, self.dead_lettered_ms, reason)


class DeadLetterView:
    """Looks at the dead-letter topics of groups."""

    def __init__(self, groups: Groups, produce: Produce) -> None:
        self._groups = groups
        self._produce = produce

    def target(self, group: str, topic: str) -> Topic | None:
        """Returns the dead-letter topic; None where there is none yet. NotFoundError."""
        if not topic:
            raise InvalidError("INVALID_ARGUMENT", "name the topic the dead letters came from")
        read = self._groups.state.catalog.get(group).topics
        for one in read:
            if one.topic == topic:
                return self._groups.topics.find(one.dead_letter_topic_id)
        message = f"group {group!r} does not read {topic!r}"
        raise NotFoundError("TOPIC_NOT_FOUND", message, topic=topic, group=group)

    async def list_page(
        self, wanted: DeadLetterFilter, *, with_resolved: bool, page_size: int, page_token: str
    ) -> tuple[list[FoundLetter], str]:
        """Returns dead letters by partition and offset, and the token of the next page."""
        if page_size < 0:
            message = f"page_size must be at least 0, not {page_size}"
            raise InvalidError("INVALID_ARGUMENT", message, page_size=page_size)
        size = min(page_size or DEFAULT_PAGE_SIZE, PAGE_SIZE)
        after = _place_of(page_token)
        found: list[FoundLetter] = []
        async for letter in self.find(wanted, after):
            if letter.state == "resolved" and not with_resolved:
                continue
            if len(found) == size:
                last = found[-1]
                return found, f"{last.partition}:{last.record.offset}"
            found.append(letter)
        return found, ""

    async def get(self, group: str, topic: str, partition: int, offset: int) -> FoundLetter:
        """Returns one dead letter. NotFoundError."""
        target = self.target(group, topic)
        if target and 0 <= partition < target.partition_count:
            async for letter in self.read(group, target, partition, offset, offset + 1):
                return letter
        message = f"{group!r} has no dead letter at offset {offset} of partition {partition}"
        raise NotFoundError("PARTITION_NOT_FOUND", message, partition=partition, offset=offset)

    async def find(
        self, wanted: DeadLetterFilter, after: tuple[int, int] = (0, -1)
    ) -> AsyncIterator[FoundLetter]:
        """Yields what is meant, the limit aside, behind a partition and an offset."""
        target = self.target(wanted.group, wanted.topic)
        if target is None:
            return
        for partition in range(after[0], target.partition_count):
            log_bounds = self._groups.partitions.get(target.partition(partition)).log.bounds()
            first, end = wanted.selection.within(partition, log_bounds.high_watermark)
            first = max(first, log_bounds.log_start_offset)
            if partition == after[0]:
                first = max(first, after[1] + 1)
            async for letter in self.read(wanted.group, target, partition, first, end):
                if wanted.selection.means(letter.facts):
                    yield letter

    async def find_parked(self, wanted: DeadLetterFilter) -> dict[LedgerId, list[Range]]:
        """Returns what is meant and parked, by ledger, at most as many as the limit says."""
        offsets: dict[LedgerId, list[int]] = {}
        limit = wanted.selection.limit
        count = 0
        target = self.target(wanted.group, wanted.topic)
        async for letter in self.find(wanted):
            if letter.state != "parked" or target is None:
                continue
            ledger_id = LedgerId(wanted.group, target.topic_id, letter.partition)
            offsets.setdefault(ledger_id, []).append(letter.record.offset)
            count += 1
            if count == limit:
                break
        return {ledger_id: joined(found) for ledger_id, found in offsets.items()}

    async def resolve(
        self, wanted: DeadLetterFilter, *, is_discard: bool = False, is_dry_run: bool = False
    ) -> int:
        """Settles what is meant and parked, without delivering it; returns how many.

        `is_discard` says in the log that they were given up.
        """
        count = 0
        for ledger_id, ranges in (await self.find_parked(wanted)).items():
            ledger = self._groups.ledger(ledger_id)
            decided = decide_resolve(ledger, ranges)
            count += sum(end - first for first, end in ranges)
            if not is_dry_run:
                await self._groups.commit([InLedger(ledger_id, event) for event in decided])
        if not is_dry_run:
            what = {"group": wanted.group, "topic": wanted.topic, "count": count}
            log.info("dead letters resolved", discarded=is_discard, **what)
        return count

    async def copy(
        self, wanted: DeadLetterFilter, to_topic: str, *, is_dry_run: bool = False
    ) -> int:
        """Appends the records of what is meant and not resolved to a topic; they stay parked."""
        target = self._groups.topics.get(to_topic)
        source = self.target(wanted.group, wanted.topic)
        if source and source.topic_id == target.topic_id:
            message = "dead letters cannot be copied to their own dead-letter topic"
            raise InvalidError("INVALID_ARGUMENT", message, topic=to_topic)
        run: list[NewRecord] = []
        count = 0
        async for letter in self.find(wanted):
            if letter.state == "resolved":
                continue
            run.append(_copied(letter, target.partition_count))
            count += 1
            if len(run) == COPIED_AT_ONCE and not is_dry_run:
                await self._publish(to_topic, run)
                run = []
            if count == wanted.selection.limit:
                break
        if run and not is_dry_run:
            await self._publish(to_topic, run)
        return count

    async def read(
        self, group: str, target: Topic, partition: int, first: int, end: int
    ) -> AsyncIterator[FoundLetter]:
        """Yields the dead letters of a range, passing over what cannot be read."""
        place = target.partition(partition)
        partition_log = self._groups.partitions.get(place).log
        end = min(end, partition_log.bounds().high_watermark)
        ledger = self._groups.state.get(LedgerId(group, target.topic_id, partition))
        while first < end:
            try:
                run = await partition_log.read(first, FETCH_BYTES)
            except DataLossError as error:
                first = int(error.details["next_offset"])
                continue
            at = 0
            while at < len(run.batches):
                batch = Batch.decode(run.batches, place.seed, at)
                at += batch.header.size_bytes
                for record in decode_records(batch, partition):
                    if first <= record.offset < end:
                        found = _found(target, batch, record, ledger)
                        if found:
                            yield found
            first = run.next_offset

    async def _publish(self, topic: str, run: list[NewRecord]) -> None:
        for result in await self._produce.publish(topic, "", run):
            if isinstance(result, LogbrokerError):
                raise result


def _found(
    target: Topic, batch: Batch, record: Record, ledger: Ledger | None
) -> FoundLetter | None:
    try:
        letter = dead_letter_of(record.headers)
    except DataLossError:  # somebody else wrote it there
        return None
    state, redrives = State.PARKED, 0
    if ledger:
        state = ledger.state.state_of(record.offset)
        redrives = ledger.state.redrives.at(record.offset)
        letter = with_last_failure(letter, ledger.state.last_failures.at(record.offset))
    name = NAMES.get(state, state.name.lower())
    appended_ms = batch.header.append_time_ms
    return FoundLetter(target.topic, record.partition, letter, record, appended_ms, name, redrives)


def _copied(letter: FoundLetter, partition_count: int) -> NewRecord:
    record = letter.record
    partition = letter.partition % partition_count
    if record.key is not None:
        partition = partition_of(record.key, partition_count)
    return NewRecord(
        key=record.key,
        value=record.value,
        headers=own_headers(record.headers),
        timestamp_ms=record.timestamp_ms,
        partition=partition,
    )


def _place_of(page_token: str) -> tuple[int, int]:
    if not page_token:
        return 0, -1
    try:
        partition, offset = map(int, page_token.split(":"))
    except ValueError as error:
        message = f"{page_token!r} is no page token"
        raise InvalidError("INVALID_ARGUMENT", message, page_token=page_token) from error
    return partition, offset
