"""Redrives: jobs that make parked records available to their group again. Pure.

A job walks each partition of a dead-letter topic once, from a cursor up to an end that is
fixed at its start, so what fails again meanwhile is not taken up again. The cursor moves in
the same step as the records (`Redriven` in the ledger): a restart goes on exactly there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from logbroker.errors import ConflictError, InvalidError, NotFoundError
from logbroker.record.offset_ranges import Range

ENDED_REDRIVES = 100
"""How many that ended are remembered."""

BATCH = 1_000
"""The most records one step redrives."""


TAKEN_RANGES = 100_000
"""Of those that ended, the oldest are forgotten while all together took more ranges."""

Taken = tuple[tuple[int, int, int], ...]
"""Partitions, and ranges in them."""


class DeadLetterFacts(NamedTuple):
    """What a selection looks at."""

    offset: int
    key: bytes | None
    append_time_ms: int
    """When it was dead-lettered."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which parked records are meant. What is None does not matter."""

    partition: int | None = None
    first_offset: int = 0
    end_offset: int | None = None
    from_time_ms: int | None = None
    until_time_ms: int | None = None
    """Half-open, as every range."""
    reason: str | None = None
    """A part of the reason."""
    key: bytes | None = None
    limit: int = 0
    """The most records of all partitions together; 0: all."""

    def __post_init__(self) -> None:
        if self.first_offset < 0 or self.limit < 0:
            raise InvalidError("INVALID_ARGUMENT", "first_offset and limit must not be negative")
        if self.end_offset is not None and self.end_offset < self.first_offset:
            message = f"end_offset {self.end_offset} is below first_offset {self.first_offset}"
            raise InvalidError("INVALID_ARGUMENT", message)

    def within(self, partition: int, end: int) -> Range:
        """Returns which offsets of a partition that ends there it may mean; perhaps none."""
        if self.partition not in (None, partition):
            return (0, 0)
        last = end if self.end_offset is None else min(self.end_offset, end)
        return (min(self.first_offset, last), last)

    @property
    def needs_records(self) -> bool:
        """Returns whether offsets alone do not say what is meant."""
        wanted = (self.from_time_ms, self.until_time_ms, self.reason, self.key)
        return any(value is not None for value in wanted)

    def means(self, facts: DeadLetterFacts) -> bool:
        """Returns whether it means this record, the limit aside."""
        return (
            self.first_offset <= facts.offset
            and (self.end_offset is None or facts.offset < self.end_offset)
            and (self.from_time_ms is None or facts.append_time_ms >= self.from_time_ms)
            and (self.until_time_ms is None or facts.append_time_ms < self.until_time_ms)
            and (self.reason is None or self.reason in facts.reason)
            and (self.key is None or facts.key == self.key)
        )


class RedriveState(StrEnum):
    """What becomes of a redrive."""

    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"


class Walk(NamedTuple):
    """How far it is in one partition."""

    partition: int
    next_offset: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Redrive:
    """One job."""

    redrive_id: str
    group: str
    topic_id: str
    """Of the dead-letter topic, or of the topic itself where records are blocked."""
    selection: Selection
    selected: int = 0
    """How many it meant at its start."""
    rate: float = 0
    """Records a second; 0: as fast as they go."""
    created_ms: int
    ended_ms: int = 0
    walks: tuple[Walk, ...]
    redriven: int = 0
    taken: Taken = ()
    """What it redrove."""
    state: RedriveState = RedriveState.RUNNING

    def __post_init__(self) -> None:
        if self.rate < 0:
            raise InvalidError("INVALID_ARGUMENT", f"rate must not be negative, is {self.rate}")

    def next_walk(self) -> Walk | None:
        """Returns where to go on; None when it is through."""
        if self.state is not RedriveState.RUNNING or self.left == 0:
            return None
        return next((walk for walk in self.walks if walk.next_offset < walk.end), None)

    @property
    def left(self) -> int:
        """Returns how many more records the limit allows; -1 for any number."""
        limit = self.selection.limit
        return max(limit - self.redriven, 0) if limit else -1

    @property
    def share(self) -> float:
        """Returns how much of its way it has gone, 0 to 1."""
        firsts = [self.selection.within(walk.partition, walk.end)[0] for walk in self.walks]
        whole = sum(walk.end - first for walk, first in zip(self.walks, firsts, strict=True))
        left = sum(walk.end - walk.next_offset for walk in self.walks)
        return 1.0 if self.next_walk() is None or not whole else (whole - left) / whole

    def budget(self, elapsed_ms: int, since: int) -> int:
        """Returns how many records may go now, `elapsed_ms` after `since` of them had gone."""
        count = BATCH if self.left < 0 else min(self.left, BATCH)
        if self.rate:
            allowed = since + int(self.rate * elapsed_ms / 1_000) + 1
            count = min(count, max(allowed - self.redriven, 0))
        return count


@dataclass(frozen=True, slots=True)
class RedriveStarted:
    """A job is there."""

    redrive: Redrive


@dataclass(frozen=True, slots=True)
class RedriveAdvanced:
    """It has come this far in a partition, having redriven so many more."""

    redrive_id: str
    partition: int
    next_offset: int
    count: int
    ranges: tuple[Range, ...] = ()


@dataclass(frozen=True, slots=True)
class RedriveEnded:
    """It is through, or was cancelled. What it redrove stays redriven."""

    redrive_id: str
    state: RedriveState
    at_ms: int


class Redrives:
    """The jobs there are. `apply` is the only way they change."""

    def __init__(self) -> None:
        self._redrives: dict[str, Redrive] = {}

    def get(self, redrive_id: str) -> Redrive:
        """Returns the job; NotFoundError (REDRIVE_NOT_FOUND) where there is none."""
        if redrive_id not in self._redrives:
            message = f"there is no redrive {redrive_id!r}"
            raise NotFoundError("REDRIVE_NOT_FOUND", message, redrive_id=redrive_id)
        return self._redrives[redrive_id]

    def all(self) -> list[Redrive]:
        """Returns all, the oldest first."""
        return list(self._redrives.values())

    def running(self) -> list[Redrive]:
        """Returns those that go on, also after a restart."""
        return [one for one in self._redrives.values() if one.state is RedriveState.RUNNING]

    def decide_start(
        self,
        redrive_id: str,
        group: str,
        topic_id: str,
        selection: Selection,
        ends: Mapping[int, int],
        *,
        selected: int = 0,
        rate: float = 0,
        now_ms: int,
        is_dry_run: bool = False,
    ) -> list[RedriveStarted]:
        """Returns the start. `ends` is the high watermark of each dead-letter partition.

        ConflictError (REDRIVE_RUNNING) if one that runs may mean some of the same records,
        unless this is to be a dry run.
        """
        walks = []
        for partition, high_watermark in sorted(ends.items()):
            first, end = selection.within(partition, high_watermark)
            if first < end:
                walks.append(Walk(partition, first, end))
        for other in () if is_dry_run else self.running():
            if (other.group, other.topic_id) == (group, topic_id) and _overlap(other.walks, walks):
                message = f"redrive {other.redrive_id} of the same records is running"
                raise ConflictError("REDRIVE_RUNNING", message, redrive_id=other.redrive_id)
        redrive = Redrive(
            redrive_id=redrive_id,
            group=group,
            topic_id=topic_id,
            selection=selection,
            selected=selected,
            rate=rate,
            created_ms=now_ms,
            walks=tuple(walks),
        )
        return [RedriveStarted(redrive)]

    def decide_advance(
        self,
        redrive_id: str,
        partition: int,
        next_offset: int,
        count: int,
        ranges: Sequence[Range] = (),
    ) -> list[RedriveAdvanced]:
        """Returns the next step; to be journaled in one piece with the ledger's `Redriven`."""
        redrive = self.get(redrive_id)
        assert redrive.state is RedriveState.RUNNING, "only what runs advances"
        return [RedriveAdvanced(redrive_id, partition, next_offset, count, tuple(ranges))]

    def decide_end(
        self, redrive_id: str, now_ms: int, *, is_cancelled: bool = False
    ) -> list[RedriveEnded]:
        """Returns the end; nothing if it has ended before."""
        if self.get(redrive_id).state is not RedriveState.RUNNING:
            return []
        state = RedriveState.CANCELLED if is_cancelled else RedriveState.DONE
        return [RedriveEnded(redrive_id, state, now_ms)]

    def apply(self, event: RedriveStarted | RedriveAdvanced | RedriveEnded) -> None:
        """Takes in one event, live and at replay alike."""
        match event:
            case RedriveStarted(redrive):
                self._redrives[redrive.redrive_id] = redrive
            case RedriveAdvanced(redrive_id):
                if redrive_id in self._redrives:
                    self._advance(self._redrives[redrive_id], event)
            case RedriveEnded(redrive_id, state, at_ms):
                if redrive_id in self._redrives:
                    known = self._redrives.pop(redrive_id)
                    self._redrives[redrive_id] = replace(known, state=state, ended_ms=at_ms)
                    self._forget_old()

    def forget(self, group: str, topic_id: str | None = None) -> None:
        """Drops the jobs of a group that is deleted, or of one of its dead-letter topics."""
        for one in self.all():
            if one.group == group and topic_id in (None, one.topic_id):
                del self._redrives[one.redrive_id]

    def snapshot(self) -> list[RedriveStarted]:
        """Returns the events that make an empty one equal to this one."""
        return [RedriveStarted(redrive) for redrive in self._redrives.values()]

    def _forget_old(self) -> None:
        """Drops the oldest of those that ended; never the last one."""
        ended = [one for one in self.all() if one.state is not RedriveState.RUNNING]
        ranges = sum(len(one.taken) for one in ended)
        for number, one in enumerate(ended[:-1]):
            if len(ended) - number <= ENDED_REDRIVES and ranges <= TAKEN_RANGES:
                return
            del self._redrives[one.redrive_id]
            ranges -= len(one.taken)

    def _advance(self, redrive: Redrive, event: RedriveAdvanced) -> None:
        walks = tuple(
            walk._replace(next_offset=event.next_offset)
            if walk.partition == event.partition
            else walk
            for walk in redrive.walks
        )
        advanced = replace(
            redrive,
            walks=walks,
            redriven=redrive.redriven + event.count,
            taken=_joined(redrive.taken, event),
        )
        self._redrives[redrive.redrive_id] = advanced


def _joined(taken: Taken, event: RedriveAdvanced) -> Taken:
    """Returns what was taken with what this step took; what touches is one range."""
    more = [(event.partition, first, end) for first, end in event.ranges]
    if taken and more and taken[-1][0] == event.partition and taken[-1][2] == more[0][1]:
        more[0] = (event.partition, taken[-1][1], more[0][2])
        taken = taken[:-1]
    return (*taken, *more)


def _overlap(some: Sequence[Walk], others: Sequence[Walk]) -> bool:
    return any(
        one.partition == other.partition
        and max(one.next_offset, other.next_offset) < min(one.end, other.end)
        for one in some
        for other in others
    )
