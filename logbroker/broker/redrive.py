"""Runs redrives: jobs that make parked records available again. They survive a restart."""

import secrets
from collections.abc import Sequence
from typing import NamedTuple

import structlog

from logbroker.broker.dead_letter_view import DeadLetterFilter, DeadLetterView
from logbroker.broker.groups import Groups
from logbroker.broker.parked_records import ParkedRecords
from logbroker.errors import LogbrokerError
from logbroker.group.events import Event, InLedger, LedgerId
from logbroker.group.ledger_events import Redriven
from logbroker.group.parked import RedriveStep, decide_redrive_step
from logbroker.group.redrive import BATCH, Redrive, Walk
from logbroker.record.offset_ranges import OffsetRanges, Range

REDRIVE_ID_BYTES = 8
AGAIN_MS = 5_000
"""When to go on after an error, as with a full disk."""

log = structlog.get_logger()


class RedriveProgress(NamedTuple):
    """A redrive, and what became of what it redrove."""

    redrive: Redrive
    topic: str
    """The topic the records came from."""
    is_blocked: bool
    """Whether they wait there, and are no dead letters."""
    resolved: int
    parked_again: int


class RedriveJobs:
    """Starts, runs, shows and cancels redrives."""

    def __init__(self, groups: Groups, view: DeadLetterView, parked: ParkedRecords) -> None:
        self._groups = groups
        self._view = view
        self._parked = parked

    def resume(self) -> None:
        """Goes on with those that a stop interrupted."""
        for redrive in self._groups.state.redrives.running():
            self._groups.spawn(self._run(redrive.redrive_id))

    async def start(
        self, wanted: DeadLetterFilter, rate: float, *, is_dry_run: bool = False
    ) -> RedriveProgress:
        """Starts a redrive and returns it; a dry run only counts. NotFoundError, ConflictError."""
        groups = self._groups
        found = await self._view.find_parked(wanted)
        selected = sum(end - first for ranges in found.values() for first, end in ranges)
        shelf = self._view.shelf(wanted)
        ends = {}
        for place in shelf.topic.partitions() if shelf else ():
            ends[place.partition] = groups.partitions.get(place).log.bounds().high_watermark
        redrive_id = secrets.token_hex(REDRIVE_ID_BYTES)
        decided = groups.state.redrives.decide_start(
            redrive_id,
            wanted.group,
            shelf.topic.topic_id if shelf else "",
            wanted.selection,
            ends if selected else {},
            selected=selected,
            rate=rate,
            now_ms=groups.clock.now_ms(),
            is_dry_run=is_dry_run,
        )
        if is_dry_run:
            return RedriveProgress(decided[0].redrive, wanted.topic, wanted.is_blocked, 0, 0)
        await groups.commit(decided)
        groups.spawn(self._run(redrive_id))
        return self.get(redrive_id)

    def get(self, redrive_id: str) -> RedriveProgress:
        """Returns a redrive as it is now. NotFoundError."""
        return self._progress(self._groups.state.redrives.get(redrive_id))

    def list_of(self, group: str) -> list[RedriveProgress]:
        """Returns the redrives of a group, the newest first. NotFoundError."""
        self._groups.state.catalog.get(group)
        found = [one for one in self._groups.state.redrives.all() if one.group == group]
        return [self._progress(one) for one in reversed(found)]

    async def cancel(self, redrive_id: str) -> RedriveProgress:
        """Ends a redrive; what it has redriven stays so. NotFoundError."""
        groups = self._groups
        now_ms = groups.clock.now_ms()
        await groups.commit(groups.state.redrives.decide_end(redrive_id, now_ms, is_cancelled=True))
        return self.get(redrive_id)

    async def _run(self, redrive_id: str) -> None:
        clock = self._groups.clock
        began_ms = clock.monotonic_ms()
        since = self._find(redrive_id)
        if since is None:
            return
        while True:
            try:
                redrive = self._find(redrive_id)
                walk = redrive.next_walk() if redrive else None
                if redrive is None or walk is None:
                    await self._end(redrive_id)
                    return
                elapsed_ms = clock.monotonic_ms() - began_ms
                room = redrive.budget(elapsed_ms, since.redriven)
                if room:
                    await self._step(redrive, walk, room)
                    continue
                wait_ms = max(int(1_000 / redrive.rate), 1)
            except LogbrokerError as error:
                log.error("redrive waits", redrive_id=redrive_id, reason=error.reason)
                wait_ms = AGAIN_MS
            await clock.wait_until(clock.monotonic_ms() + wait_ms)

    def _find(self, redrive_id: str) -> Redrive | None:
        known = {one.redrive_id: one for one in self._groups.state.redrives.running()}
        return known.get(redrive_id)

    async def _end(self, redrive_id: str) -> None:
        if self._find(redrive_id):
            redrives = self._groups.state.redrives
            await self._groups.commit(redrives.decide_end(redrive_id, self._groups.clock.now_ms()))

    async def _step(self, redrive: Redrive, walk: Walk, room: int) -> None:
        """Takes one step in one partition; all of it is one journal record."""
        groups = self._groups
        ledger_id = LedgerId(redrive.group, redrive.topic_id, walk.partition)
        ledger = groups.ledger(ledger_id)
        meant: Sequence[int] | None = None
        meant_end = 0
        if redrive.selection.needs_records:
            first = ledger.state.parked.next_held(walk.next_offset, walk.end)
            meant_end = min(walk.end, first + BATCH)
            meant = await self._meant(redrive, walk.partition, (first, meant_end))
            known = self._find(redrive.redrive_id)
            if known is None or groups.state.get(ledger_id) is not ledger:
                return
        step = decide_redrive_step(
            ledger, redrive, walk, max_count=room, meant=meant, meant_end=meant_end
        )
        await groups.commit(self._decided(redrive, walk, ledger_id, step))

    def _decided(
        self, redrive: Redrive, walk: Walk, ledger_id: LedgerId, step: RedriveStep
    ) -> list[Event]:
        ranges = [
            run for event in step.events if isinstance(event, Redriven) for run in event.ranges
        ]
        advanced = self._groups.state.redrives.decide_advance(
            redrive.redrive_id, walk.partition, step.next_offset, step.redriven, ranges
        )
        return [*(InLedger(ledger_id, event) for event in step.events), *advanced]

    async def _meant(self, redrive: Redrive, partition: int, run: Range) -> list[int]:
        """Returns which offsets the redrive means between these."""
        shelf = self._parked.shelf_of(LedgerId(redrive.group, redrive.topic_id, partition))
        if shelf is None:
            return []
        reading = self._parked.read(shelf, partition, [run], redrive.selection, with_records=False)
        return [offset async for part in reading for offset in part.offsets]

    def _progress(self, redrive: Redrive) -> RedriveProgress:
        """Counts what of the redriven is settled, and what is parked once more."""
        by_partition: dict[int, OffsetRanges] = {}
        for partition, first, end in redrive.taken:
            by_partition.setdefault(partition, OffsetRanges()).add(first, end)
        resolved = parked = 0
        for partition, taken in by_partition.items():
            ledger = self._groups.state.get(LedgerId(redrive.group, redrive.topic_id, partition))
            if ledger is None:
                continue
            state = ledger.state
            for first, end in taken.ranges():
                resolved += max(min(end, state.committed) - first, 0)
                above = max(first, state.committed)
                resolved += sum(stop - start for start, stop in state.settled.within(above, end))
                parked += sum(stop - start for start, stop in state.parked.within(first, end))
        shelf = self._parked.shelf_of(LedgerId(redrive.group, redrive.topic_id, 0))
        name, is_blocked = (shelf.source.topic, shelf.is_blocked) if shelf else ("", False)
        return RedriveProgress(redrive, name, is_blocked, resolved, parked)
