"""Where a group starts, where a reset leads, and where it goes on when it is out of range. Pure.

What must be looked up in the log is asked of the caller: the bounds, and for a time the first
offset with at least that timestamp (None: there is none).
"""

from dataclasses import dataclass
from typing import NamedTuple

from logbroker.errors import InvalidError, OffsetOutOfRangeError
from logbroker.group.settings import GroupSettings, OutOfRange, Start


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a partition, as a person or a setting names it."""

    start: Start
    offset: int = 0
    """Of `offset`."""
    time_ms: int = 0
    """Of `time`."""
    shift: int | None = None
    """Instead of all that: so many offsets on, or back where it is negative."""

    @property
    def looked_up_ms(self) -> int | None:
        """Returns the time whose offset `resolve` needs; None if it needs none."""
        return self.time_ms if self.shift is None and self.start is Start.TIME else None


class Moved(NamedTuple):
    """From where to where a group goes, and how many records it passes over."""

    from_offset: int
    offset: int
    skipped: int
    """How many records it will not get; 0 when it goes back."""


def start_of(settings: GroupSettings) -> Position:
    """Returns where a group of these settings begins on a topic that is new to it."""
    return Position(settings.start, settings.start_offset, settings.start_time_ms)


def resolve(
    position: Position,
    *,
    log_start_offset: int,
    high_watermark: int,
    found: int | None = None,
    committed: int = 0,
) -> int:
    """Returns the offset, within the bounds. `found` is what the time look-up returned.

    A time after every record is the high watermark: what is written from now on is later.
    An offset out of bounds means the nearest one in bounds, as does a shift.
    """
    match position:
        case Position(shift=int(shift)):
            offset = committed + shift
        case Position(start=Start.EARLIEST):
            offset = log_start_offset
        case Position(start=Start.LATEST):
            offset = high_watermark
        case Position(start=Start.TIME):
            offset = high_watermark if found is None else found
        case Position(offset=offset):
            if offset < 0:
                raise InvalidError("INVALID_OFFSET", f"an offset is not negative, as {offset} is")
    return min(max(offset, log_start_offset), high_watermark)


def start_offset(
    settings: GroupSettings,
    *,
    log_start_offset: int,
    high_watermark: int,
    found: int | None = None,
    is_new_partition: bool = False,
) -> int:
    """Returns where a group begins. A partition born after the group is read from its start."""
    if is_new_partition:
        return log_start_offset
    position = start_of(settings)
    return resolve(
        position,
        log_start_offset=log_start_offset,
        high_watermark=high_watermark,
        found=found,
    )


def reset_to(
    position: Position,
    *,
    committed: int,
    log_start_offset: int,
    high_watermark: int,
    found: int | None = None,
) -> Moved:
    """Returns what a reset does: also what a dry run of one says."""
    offset = resolve(
        position,
        log_start_offset=log_start_offset,
        high_watermark=high_watermark,
        found=found,
        committed=committed,
    )
    return Moved(committed, offset, max(offset - max(committed, log_start_offset), 0))


def out_of_range(
    policy: OutOfRange, offset: int, *, log_start_offset: int, high_watermark: int
) -> Moved | None:
    """Returns where a group goes on whose offset is out of bounds; None if it is not.

    OffsetOutOfRangeError, which names the bounds, where the policy is `error`. The same for an
    offset that retention overtook and for one beyond the end, which is never silently 0.
    """
    if log_start_offset <= offset <= high_watermark:
        return None
    match policy:
        case OutOfRange.EARLIEST:
            to = log_start_offset
        case OutOfRange.LATEST:
            to = high_watermark
        case OutOfRange.ERROR:
            message = (
                f"offset {offset} is out of range: {log_start_offset} is the first that can be "
                f"read, {high_watermark} is one past the last"
            )
            bounds = {"log_start_offset": log_start_offset, "high_watermark": high_watermark}
            raise OffsetOutOfRangeError("OFFSET_OUT_OF_RANGE", message, offset=offset, **bounds)
    return Moved(offset, to, max(to - offset, 0))
