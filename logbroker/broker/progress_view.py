"""How far groups are, by partition and at a glance: what commands, lists and metrics show."""

from typing import NamedTuple

from logbroker.broker.explain import Explain
from logbroker.broker.groups import Groups
from logbroker.broker.membership import Membership
from logbroker.broker.stats import GroupStats
from logbroker.errors import LogbrokerError
from logbroker.group.events import LedgerId
from logbroker.group.explain import Why
from logbroker.group.ledger import Ledger
from logbroker.group.parked import parked_counts
from logbroker.group.progress import Progress, first_unsettled, progress
from logbroker.group.settings import Order
from logbroker.record.batch import BatchHeader
from logbroker.storage.engine import Bounds


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


class ProgressView:
    """Looks into ledgers."""

    def __init__(self, groups: Groups, membership: Membership, explain: Explain) -> None:
        self._groups = groups
        self._membership = membership
        self._explain = explain
        self._append_times: dict[LedgerId, tuple[int, int]] = {}
        """Of first unsettled records: offset and time."""

    async def stats(self, group: str) -> GroupStats:
        """Returns how a group is, all its partitions together. NotFoundError."""
        letters = self.dead_letters(group)
        ledgers = self._groups.state.of(group)
        counters = [ledger.state.counters for ledger in ledgers.values()]
        topic_ids = {topic.topic_id for topic in self._groups.state.catalog.get(group).topics}
        found, ages = [], [0]
        for ledger_id, ledger in ledgers.items():
            bounds = self._bounds(ledger_id) if ledger_id.topic_id in topic_ids else None
            if bounds is not None:
                found.append(progress(ledger, bounds.log_start_offset, bounds.high_watermark))
                ages.append(await self._age(ledger_id, _first_unsettled(ledger, bounds)))
        return GroupStats(
            group=group,
            member_count=len(self._membership.members(group)),
            partition_count=len(found),
            lag=sum(one.lag for one in found),
            age_ms=max(ages),
            leased_count=sum(ledger.state.leases.count for ledger in ledgers.values()),
            waiting_count=sum(ledger.state.waiting.offsets.count for ledger in ledgers.values()),
            blocked_count=sum(one.parked for one in found),
            parked_count=sum(one.parked for one in letters),
            failure_count=sum(one.failures for one in counters),
            dead_letter_count=sum(one.dead_letters for one in counters),
            discarded_count=sum(one.discarded for one in counters),
            expired_unsettled_count=sum(one.expired_unsettled for one in counters),
            skipped_count=sum(one.skipped for one in counters),
            reset_count=sum(one.resets for one in counters),
        )

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

    async def _progress_of(
        self, topic: str, ledger_id: LedgerId, ledger: Ledger
    ) -> PartitionProgress | None:
        bounds = self._bounds(ledger_id)
        if bounds is None:
            return None
        told = progress(ledger, bounds.log_start_offset, bounds.high_watermark)
        first = _first_unsettled(ledger, bounds)
        live = self._groups.live.get(ledger_id.group)
        member = ""
        if live and live.order is Order.PARTITION:
            member = live.owner_of(ledger_id) or ""
        waits_for = ""
        if first is not None and not told.leased:
            why = self._explain.look(ledger_id, ledger, first, bounds).why
            waits_for = "" if why is Why.AVAILABLE else str(why)
        failed = len(ledger.state.failures)
        age_ms = await self._age(ledger_id, first)
        return PartitionProgress(
            topic, ledger_id.partition, told, age_ms, failed, member, waits_for
        )

    def _bounds(self, ledger_id: LedgerId) -> Bounds | None:
        try:
            return self._groups.partition(ledger_id).log.bounds()
        except LogbrokerError:  # it is being deleted, or could not be opened
            return None

    async def _age(self, ledger_id: LedgerId, offset: int | None) -> int:
        """Returns how long ago a record was appended; 0 where that cannot be read."""
        if offset is None:
            return 0
        known = self._append_times.get(ledger_id)
        if known is None or known[0] != offset:
            try:
                partition = self._groups.partition(ledger_id)
                run = await partition.log.read(offset, 1)
                appended_ms = BatchHeader.decode(run.batches, partition.seed).append_time_ms
            except LogbrokerError:
                return 0
            known = self._append_times[ledger_id] = (offset, appended_ms)
            self._forget_what_is_gone()
        return max(self._groups.clock.now_ms() - known[1], 0)

    def _forget_what_is_gone(self) -> None:
        ledgers = self._groups.state.all()
        if len(self._append_times) > 2 * len(ledgers):
            for ledger_id in self._append_times.keys() - ledgers.keys():
                del self._append_times[ledger_id]


def _first_unsettled(ledger: Ledger, bounds: Bounds) -> int | None:
    return first_unsettled(ledger, bounds.log_start_offset, bounds.high_watermark)
