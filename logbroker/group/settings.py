"""What can be set for a group. Frozen, validated in the constructor. Pure."""

from dataclasses import dataclass, field
from enum import StrEnum

from logbroker.errors import InvalidError
from logbroker.group.retry_policy import RetryPolicy
from logbroker.limits import UNSETTLED_RECORDS


class Order(StrEnum):
    """Which records wait for which."""

    PARTITION = "partition"
    """Every record for the one before it in its partition."""
    KEY = "key"
    """Records of one key for one another; a record without a key for none."""
    NONE = "none"
    """None for any other."""


class AfterDeadLetter(StrEnum):
    """What becomes of the records behind a dead letter, of its key or its partition."""

    CONTINUE = "continue"
    HOLD = "hold"
    """They wait until it is resolved or discarded."""


class Start(StrEnum):
    """Where a group begins on a topic it has not read before."""

    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    TIME = "time"


class OutOfRange(StrEnum):
    """Where a group goes on whose offset cannot be read any more, or not yet."""

    EARLIEST = "earliest"
    LATEST = "latest"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """How a group reads."""

    order: Order = Order.PARTITION
    lease_ms: int = 30_000
    """How long a delivery may be held without an extension."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    after_dead_letter: AfterDeadLetter = AfterDeadLetter.CONTINUE
    max_unsettled: int = 10_000
    """How many records of a partition may be open above the committed offset."""
    start: Start = Start.EARLIEST
    start_offset: int = 0
    """Of `start = offset`."""
    start_time_ms: int = 0
    """Of `start = time`: records with at least this timestamp."""
    out_of_range: OutOfRange = OutOfRange.EARLIEST
    group_retention_ms: int = 7 * 24 * 3_600_000
    """A group without members for so long is forgotten; 0: never."""

    def __post_init__(self) -> None:
        for name, kind in CHOICES.items():
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise _invalid(name, value, f"must be one of {', '.join(kind)}")
        for name, (low, high) in BOUNDS.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise _invalid(name, value, f"must be {low} to {high}")
        if self.order is Order.NONE and self.after_dead_letter is AfterDeadLetter.HOLD:
            rule = "needs an order: with order none no record waits for another"
            raise _invalid("after_dead_letter", self.after_dead_letter, rule)


CHOICES: dict[str, type[StrEnum]] = {
    "order": Order,
    "after_dead_letter": AfterDeadLetter,
    "start": Start,
    "out_of_range": OutOfRange,
}
BOUNDS = {
    "lease_ms": (100, 12 * 3_600_000),
    "max_unsettled": (1, UNSETTLED_RECORDS),
    "start_offset": (0, (1 << 63) - 1),
    "start_time_ms": (0, (1 << 63) - 1),
    "group_retention_ms": (0, 1 << 62),
}


def _invalid(name: str, value: object, rule: str) -> InvalidError:
    message = f"{name}: {value!r} {rule}"
    return InvalidError("INVALID_SETTING", message, setting=name, value=str(value))
