"""Where groups are: progress, commits, resets."""

from collections.abc import Sequence
from typing import NamedTuple

import structlog

from logbroker.broker.beginning import Beginning
from logbroker.broker.explain import Explain
from logbroker.broker.groups import Groups
from logbroker.broker.membership import Membership
from logbroker.errors import InvalidError, LogbrokerError, PreconditionError
from logbroker.group.events import Event, InLedger, LedgerId
from logbroker.group.explain import Why
from logbroker.group.ledger import Ledger, check_commit
from logbroker.group.parked import parked_counts
from logbroker.group.progress import Progress, first_unsettled, progress
from logbroker.group.settings import Order
from logbroker.group.start_position import Position, reset_to
from logbroker.record.batch import BatchHeader
from logbroker.storage.engine import Bounds

log = structlog.get_logger()


class PartitionProgress(NamedTuple):
    """How far a group is in one partition."""

    topic: str
    partition: int
    progress: Progress
    age_ms: int
    """Since the append of the first record that is not settled; 0 without lag."""
    failed: int
    """Unsettled records that have failed."""
    member: str
    waits_for: str
    """Why nothing is delivered although there is lag; empty otherwise."""


class DeadLetterProgress(NamedTuple):
    """What is parked of a group in one partition of a dead-letter topic."""

    topic: str
    partition: int
    parked: int
    redriven: int


class Commit(NamedTuple):
    """Everything below `offset` is settled."""

    topic: str
    topic_id: str
    partition: int
    offset: int
    is_automatic: bool


class CommitResult(NamedTuple):
    """The committed offset then, or an error."""

    committed: int
    error: LogbrokerError | None = None


class OffsetReset(NamedTuple):
    """Where a group was, and where it is now."""

    topic: str
    partition: int
    from_offset: int | None
    to_offset: int


class Offsets:
    """Looks into ledgers, and moves them."""

    def __init__(
        self, groups: Groups, beginning: Beginning, membership: Membership, explain: Explain
    ) -> None:
        self._groups = groups
        self._beginning = beginning
        self._membership = membership
        self._explain = explain
        self._append_times: dict[LedgerId, tuple[int, int]] = {}
        """Of first unsettled records: offset and time."""

    async def progress(self, group: str, topic: str = "") -> list[PartitionProgress]:
        """Returns how far a group is, by topic and partition. NotFoundError."""
        found = []
        for read in self._groups.state.catalog.get(group).topics:
            if topic in ("", read.topic):
                for ledger_id, ledger in self._groups.state.of(group, read.topic_id).items():
                    told = await self._progress_of(read.topic, ledger_id, ledger)
                    found += [told] if told else []
        return found

    def dead_letters(self, group: str) -> list[DeadLetterProgress]:
        """Returns what is parked, by dead-letter topic and partition."""
        found = []
        for read in self._groups.state.catalog.get(group).topics:
            if not read.dead_letter_topic_id:
                continue
            parked = self._groups.state.of(group, read.dead_letter_topic_id)
            for ledger_id, ledger in parked.items():
                bounds = self._bounds(ledger_id)
                if bounds is None:
                    continue
                counts = parked_counts(ledger, bounds.log_start_offset, bounds.high_watermark)
                number = ledger_id.partition
                found.append(
                    DeadLetterProgress(read.dead_letter_topic, number, counts.parked, counts.open)
                )
        return found

    async def commit(self, group: str, commits: Sequence[Commit]) -> list[CommitResult]:
        """Settles all below offsets, each entry on its own; returns once that is durable."""
        results, waits = [], []
        groups = self._groups
        for one in commits:
            try:
                topic = groups.topics.get(one.topic, one.topic_id)
                if not 0 <= one.partition < topic.partition_count:
                    raise _no_partition(one, topic.partition_count)
                place = groups.partitions.get(topic.partition(one.partition)).log
                check_commit(one.offset, place.bounds().high_watermark)  # before a group is made
                await self._beginning.begin(group, [topic.topic])
                ledger_id = LedgerId(group, topic.topic_id, one.partition)
                ledger = groups.ledger(ledger_id)
                mark = place.bounds().high_watermark
                decided = ledger.decide_commit(one.offset, mark, is_automatic=one.is_automatic)
                now_ms = groups.clock.now_ms()
                seen: list[Event] = [*groups.state.catalog.decide_seen([group], now_ms)]
                events = [InLedger(ledger_id, event) for event in decided]
                waits.append(groups.commit([*seen, *events]))
                results.append(CommitResult(ledger.state.committed))
            except LogbrokerError as error:
                results.append(CommitResult(0, error))
        try:
            for wait in waits:
                await wait
        except LogbrokerError as error:
            return [one if one.error else CommitResult(0, error.again()) for one in results]
        return results

    async def reset(
        self,
        group: str,
        topic_name: str,
        partitions: Sequence[int],
        to: Position,
        *,
        is_forced: bool = False,
        is_dry_run: bool = False,
    ) -> list[OffsetReset]:
        """Moves a group, or says what that would do. NotFoundError, PreconditionError."""
        groups = self._groups
        groups.state.catalog.get(group)
        topic = groups.topics.get(topic_name)
        for number in partitions:
            groups.topics.partition(topic_name, topic.topic_id, number)
        wanted = [
            one for one in topic.partitions() if one.partition in partitions or not partitions
        ]
        if not is_dry_run:
            await self._beginning.begin(group, [topic_name])
        found: dict[int, int | None] = {}
        if to.looked_up_ms is not None:
            for one in wanted:
                partition_log = groups.partitions.get(one).log
                found[one.partition] = await partition_log.find(to.looked_up_ms)
        if not (is_forced or is_dry_run):
            self.check_free(group, topic.topic_id)
        decided: list[InLedger] = []
        resets = []
        for one in wanted:
            ledger_id = LedgerId(group, topic.topic_id, one.partition)
            ledger = groups.state.get(ledger_id)
            bounds = groups.partitions.get(one).log.bounds()
            moved = reset_to(
                to,
                committed=ledger.state.committed if ledger else bounds.log_start_offset,
                log_start_offset=bounds.log_start_offset,
                high_watermark=bounds.high_watermark,
                found=found.get(one.partition),
            )
            has_progress = ledger is not None and ledger.state.counters.has_progress
            before = moved.from_offset if has_progress else None
            resets.append(OffsetReset(topic_name, one.partition, before, moved.offset))
            if ledger and not is_dry_run:
                events = ledger.decide_reset(moved.offset, "reset")
                decided += [InLedger(ledger_id, event) for event in events]
                log.info(
                    "group reset",
                    group=group,
                    partition=str(one),
                    from_offset=moved.from_offset,
                    to_offset=moved.offset,
                    skipped=moved.skipped,
                )
        await groups.commit(decided)
        return resets

    def is_in_use(self, group: str, topic_id: str | None = None) -> bool:
        """Returns whether a group has members, or leases of calls, that read the topic."""
        members = self._membership.members(group)
        return any(topic_id in (None, *member.holding.topic_ids) for member in members) or any(
            ledger.state.leases.count for ledger in self._groups.state.of(group, topic_id).values()
        )

    def check_free(self, group: str, topic_id: str | None = None) -> None:
        """Raises PreconditionError (GROUP_IN_USE) for a group in use."""
        if self.is_in_use(group, topic_id):
            message = f"group {group!r} has members or leases; force it, or end them first"
            raise PreconditionError("GROUP_IN_USE", message, group=group)

    async def _progress_of(
        self, topic: str, ledger_id: LedgerId, ledger: Ledger
    ) -> PartitionProgress | None:
        bounds = self._bounds(ledger_id)
        if bounds is None:
            return None
        told = progress(ledger, bounds.log_start_offset, bounds.high_watermark)
        first = first_unsettled(ledger, bounds.log_start_offset, bounds.high_watermark)
        live = self._groups.live.get(ledger_id.group)
        member = ""
        if live and live.order is Order.PARTITION:
            member = live.owner_of(ledger_id) or ""
        waits_for = ""
        if first is not None and not told.leased:
            why = self._explain.look(ledger_id, ledger, first, bounds).why
            waits_for = "" if why is Why.AVAILABLE else str(why)
        failed = len(ledger.state.failures)
        age_ms = await self._age(ledger_id, first) if first is not None else 0
        return PartitionProgress(
            topic, ledger_id.partition, told, age_ms, failed, member, waits_for
        )

    def _bounds(self, ledger_id: LedgerId) -> Bounds | None:
        try:
            return self._groups.partition(ledger_id).log.bounds()
        except LogbrokerError:  # it is being deleted, or could not be opened
            return None

    async def _age(self, ledger_id: LedgerId, offset: int) -> int:
        """Returns how long ago a record was appended; 0 where that cannot be read."""
        known = self._append_times.get(ledger_id)
        if known is None or known[0] != offset:
            try:
                partition = self._groups.partition(ledger_id)
                run = await partition.log.read(offset, 1)
                appended_ms = BatchHeader.decode(run.batches, partition.id.seed).append_time_ms
            except LogbrokerError:
                return 0
            known = self._append_times[ledger_id] = (offset, appended_ms)
        return max(self._groups.clock.now_ms() - known[1], 0)


def _no_partition(one: Commit, count: int) -> InvalidError:
    message = f"topic {one.topic!r} has the partitions 0 to {count - 1}, not {one.partition}"
    return InvalidError("INVALID_ARGUMENT", message, topic=one.topic, partition=one.partition)
