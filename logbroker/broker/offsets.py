"""Moving groups: commits and resets."""

from collections.abc import Sequence
from typing import NamedTuple

import structlog

from logbroker.broker.beginning import Beginning
from logbroker.broker.groups import Groups
from logbroker.broker.membership import Membership
from logbroker.errors import InvalidError, LogbrokerError, PreconditionError
from logbroker.group.commits import check_commit, decide_commit
from logbroker.group.events import Event, InLedger, LedgerId
from logbroker.group.start_position import Position, reset_to

log = structlog.get_logger()


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
    """Moves ledgers."""

    def __init__(self, groups: Groups, beginning: Beginning, membership: Membership) -> None:
        self._groups = groups
        self._beginning = beginning
        self._membership = membership

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
                decided = decide_commit(ledger, one.offset, mark, is_automatic=one.is_automatic)
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


def _no_partition(one: Commit, count: int) -> InvalidError:
    message = f"topic {one.topic!r} has the partitions 0 to {count - 1}, not {one.partition}"
    return InvalidError("INVALID_ARGUMENT", message, topic=one.topic, partition=one.partition)
