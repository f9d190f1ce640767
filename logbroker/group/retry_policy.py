"""When a record that failed is delivered again, and when no more. Pure."""

from dataclasses import dataclass
from enum import StrEnum
from random import Random

from logbroker.errors import InvalidError
from logbroker.group.record_state import State


class Exhausted(StrEnum):
    """What becomes of a record that failed `max_failures` times, or was rejected."""

    DEAD_LETTER = "dead_letter"
    """It goes to the group's dead-letter topic."""
    BLOCK = "block"
    """It stays, parked, and what its order holds behind it waits for an operator."""
    DISCARD = "discard"
    """It is settled, counted and logged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How long a record waits after a failure, and how many failures it may have."""

    initial_ms: int = 1_000
    """The longest wait after the first failure; the shortest is half of it."""
    multiplier: float = 2.0
    """What the wait grows by with every failure."""
    max_ms: int = 60_000
    """What it does not grow beyond."""
    max_failures: int = 5
    """At the failure of this number the record is exhausted."""
    exhausted: Exhausted = Exhausted.DEAD_LETTER

    def __post_init__(self) -> None:
        if not isinstance(self.exhausted, Exhausted):
            raise _invalid("exhausted", self.exhausted, f"must be one of {', '.join(Exhausted)}")
        if not 0 < self.initial_ms <= self.max_ms <= 1 << 40:
            raise _invalid("initial_ms", self.initial_ms, "must be positive and at most max_ms")
        if not 1 <= self.multiplier <= 10:
            raise _invalid("multiplier", self.multiplier, "must be 1 to 10")
        if not 1 <= self.max_failures <= 1_000_000:
            raise _invalid("max_failures", self.max_failures, "must be 1 to 1,000,000")

    @property
    def hopeless(self) -> State:
        """Where a record goes that was rejected or has failed once too often."""
        return State.PARKED if self.exhausted is Exhausted.BLOCK else State.SETTLED

    def backoff_ms(self, failures: int, random: Random) -> int:
        """Returns the wait after this many failures: growing, capped, less up to half of it."""
        assert failures >= 1
        grown = self.initial_ms * self.multiplier ** min(failures - 1, 64)
        ceiling = int(min(grown, self.max_ms))
        return random.randint(ceiling // 2, ceiling)


def _invalid(name: str, value: object, rule: str) -> InvalidError:
    message = f"retry.{name}: {value!r} {rule}"
    return InvalidError("INVALID_SETTING", message, setting=f"retry.{name}", value=str(value))
