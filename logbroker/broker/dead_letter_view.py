"""Dead letters as an operator sees them: found, listed, shown, resolved, copied elsewhere.

The same is done with blocked records: those that a group failed at and that wait in their
place (`exhausted` is `block`).
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import structlog

from logbroker.broker.groups import Groups
from logbroker.broker.parked_records import FoundLetter, ParkedRecords, Shelf
from logbroker.broker.produce import NewRecord, Produce
from logbroker.errors import InvalidError, LogbrokerError, NotFoundError
from logbroker.group.dead_letter import own_headers
from logbroker.group.events import InLedger, LedgerId
from logbroker.group.ledger_events import Discarded
from logbroker.group.ledger_state import ENDLESS
from logbroker.group.parked import decide_resolve, first_of, parked_ranges, resolvable
from logbroker.group.redrive import Selection
from logbroker.limits import DEFAULT_PAGE_SIZE, PAGE_SIZE
from logbroker.record.offset_ranges import Range, joined
from logbroker.record.partitioner import partition_of
from logbroker.topic.topic import Topic

COPIED_AT_ONCE = 500
SCANNED_AT_ONCE = 50_000
"""A page ends where so many records were looked at, full or not."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterFilter:
    """Which dead letters of a group and topic, or which blocked records."""

    group: str
    topic: str
    is_blocked: bool = False
    selection: Selection = field(default_factory=Selection)


class DeadLetterView:
    """Looks at what groups failed at."""

    def __init__(self, groups: Groups, produce: Produce, parked: ParkedRecords) -> None:
        self._groups = groups
        self._produce = produce
        self._parked = parked

    def shelf(self, wanted: DeadLetterFilter) -> Shelf | None:
        """Returns where what is meant lies; None where there is nothing yet. NotFoundError."""
        if not wanted.topic:
            message = "name the topic the dead letters came from"
            raise InvalidError("INVALID_ARGUMENT", message)
        if wanted.selection.partition is not None:
            self._groups.topics.partition(wanted.topic, "", wanted.selection.partition)
        return self._parked.shelf(wanted.group, wanted.topic, is_blocked=wanted.is_blocked)

    async def list_page(
        self, wanted: DeadLetterFilter, *, with_resolved: bool, page_size: int, page_token: str
    ) -> tuple[list[FoundLetter], str]:
        """Returns dead letters by partition and offset, and the token of the next page.

        A page may have fewer than asked for, or none, and others follow all the same.
        """
        if page_size < 0:
            message = f"page_size must be at least 0, not {page_size}"
            raise InvalidError("INVALID_ARGUMENT", message, page_size=page_size)
        size = min(page_size or DEFAULT_PAGE_SIZE, PAGE_SIZE)
        number, after = _place_of(page_token)
        shelf = self.shelf(wanted)
        found: list[FoundLetter] = []
        left = SCANNED_AT_ONCE
        for partition in range(number, shelf.topic.partition_count if shelf else 0):
            assert shelf
            first = after + 1 if partition == number else 0
            ranges = self._parked.wanted(
                shelf, partition, wanted.selection, with_resolved=with_resolved
            )
            ranges = [(max(low, first), end) for low, end in ranges if end > first]
            async for part in self._parked.read(shelf, partition, ranges, wanted.selection):
                found += part.letters[: size + 1 - len(found)]
                if len(found) > size:
                    last = found[size - 1]
                    return found[:size], f"{last.partition}:{last.record.offset}"
                left -= part.record_count
                if left <= 0:
                    return found, f"{partition}:{part.next_offset - 1}"
        return found, ""

    async def get(self, wanted: DeadLetterFilter, partition: int, offset: int) -> FoundLetter:
        """Returns one of them. NotFoundError."""
        shelf = self.shelf(wanted)
        if shelf and 0 <= partition < shelf.topic.partition_count and offset >= 0:
            found = await self._parked.find(shelf, partition, offset)
            if found:
                return found
        what = "blocked record" if wanted.is_blocked else "dead letter"
        message = f"{wanted.group!r} has no {what} at offset {offset} of partition {partition}"
        details = {"partition": partition, "offset": offset}
        raise NotFoundError("DEAD_LETTER_NOT_FOUND", message, **details)

    async def find_parked(
        self, wanted: DeadLetterFilter, *, to_resolve: bool = False
    ) -> dict[LedgerId, list[Range]]:
        """Returns what is meant and parked, by ledger, at most as many as the limit says.

        `to_resolve`: also what has been redriven and no member holds.
        """
        selection, shelf = wanted.selection, self.shelf(wanted)
        left = selection.limit or ENDLESS
        found: dict[LedgerId, list[Range]] = {}
        for partition in range(shelf.topic.partition_count if shelf else 0):
            assert shelf
            ledger = self._parked.ledger(shelf, partition)
            if ledger is None or not left:
                continue
            ranges = [
                run
                for low, end in self._parked.wanted(
                    shelf, partition, selection, with_resolved=False
                )
                for run in (resolvable if to_resolve else parked_ranges)(ledger, low, end)
            ]
            if selection.needs_records:
                offsets: list[int] = []
                reading = self._parked.read(shelf, partition, ranges, selection, with_records=False)
                async for part in reading:
                    offsets += part.offsets
                    if len(offsets) >= left:
                        break
                ranges = joined(offsets)
            if chosen := first_of(ranges, left):
                found[shelf.ledger_id(partition)] = chosen
                left -= sum(end - first for first, end in chosen)
        return found

    async def resolve(
        self, wanted: DeadLetterFilter, *, is_discard: bool = False, is_dry_run: bool = False
    ) -> int:
        """Settles what is meant and no member holds, without delivering it; returns how many.

        `is_discard` says in the log that they were given up.
        """
        count = 0
        for ledger_id, ranges in (await self.find_parked(wanted, to_resolve=True)).items():
            decided = decide_resolve(self._groups.ledger(ledger_id), ranges)
            resolved = [
                one for event in decided if isinstance(event, Discarded) for one in event.ranges
            ]
            count += sum(end - first for first, end in resolved)
            if not is_dry_run:
                await self._groups.commit([InLedger(ledger_id, event) for event in decided])
        if not is_dry_run:
            what = {"group": wanted.group, "topic": wanted.topic, "count": count}
            blocked = wanted.is_blocked
            log.info("dead letters resolved", discarded=is_discard, blocked=blocked, **what)
        return count

    async def copy(
        self, wanted: DeadLetterFilter, to_topic: str, *, is_dry_run: bool = False
    ) -> int:
        """Appends the records of what is meant and not resolved to a topic; they stay parked."""
        target = self._groups.topics.get(to_topic)
        if target.is_dead_letter_topic:
            message = (
                f"{to_topic!r} is for what group {target.source_group!r} failed at in "
                f"{target.source_topic!r}; dead letters are copied to other topics"
            )
            raise InvalidError("INVALID_ARGUMENT", message, topic=to_topic)
        run: list[NewRecord] = []
        count = 0
        async for letter in self._all(wanted):
            run.append(_copied(letter, target.partition_count))
            count += 1
            if len(run) == COPIED_AT_ONCE and not is_dry_run:
                await self._publish(target, run)
                run = []
            if count == wanted.selection.limit:
                break
        if run and not is_dry_run:
            await self._publish(target, run)
        return count

    async def _all(self, wanted: DeadLetterFilter) -> AsyncIterator[FoundLetter]:
        """Yields what is meant and not resolved, as it lies, the limit aside."""
        shelf, selection = self.shelf(wanted), wanted.selection
        for partition in range(shelf.topic.partition_count if shelf else 0):
            assert shelf
            ranges = self._parked.wanted(shelf, partition, selection, with_resolved=False)
            async for part in self._parked.read(shelf, partition, ranges, selection):
                for letter in part.letters:
                    yield letter

    async def _publish(self, target: Topic, run: list[NewRecord]) -> None:
        for result in await self._produce.publish(target.topic, target.topic_id, run):
            if isinstance(result, LogbrokerError):
                raise result


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
    except ValueError:
        partition, offset = -1, 0
    if partition < 0 or offset < 0:
        message = f"{page_token!r} is no page token"
        raise InvalidError("INVALID_ARGUMENT", message, page_token=page_token)
    return partition, offset
