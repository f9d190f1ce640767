"""Why dead letters that failed again failed last: the records themselves say it of the first time.

Kept by offset beside the ledger of a dead-letter topic, the one that failed longest ago first.
Bounded: over LAST_FAILURES_BYTES the oldest go, and of these the first time is told again.
"""

from collections.abc import Iterable
from typing import NamedTuple

from logbroker.limits import LAST_FAILURES_BYTES
from logbroker.record.offset_ranges import Range

OVERHEAD_BYTES = 200
"""What one costs besides its reason."""


class Failure(NamedTuple):
    """What is known of a record that failed and is not settled."""

    failures: int
    first_ms: int
    at_ms: int
    """Wall time of the last one."""
    delay_ms: int
    reason: str


class LastFailures:
    """Those of one partition, also of records that have been resolved since."""

    def __init__(self) -> None:
        self._failures: dict[int, Failure] = {}
        self._bytes = 0

    def note(self, ranges: Iterable[Range], failure: Failure) -> None:
        """Takes note that these failed now."""
        known, cost = self._failures, _cost(failure)
        for first, end in ranges:
            for offset in range(first, end):
                self._drop(offset)
                known[offset] = failure
                self._bytes += cost
                if self._bytes > LAST_FAILURES_BYTES:
                    self._drop(next(iter(known)))

    def at(self, offset: int) -> Failure | None:
        """Returns the last failure of this record; None if it has not failed again."""
        return self._failures.get(offset)

    def meets(self, first: int, end: int) -> bool:
        """Returns whether any record from `first` up to `end` has failed again."""
        known = self._failures
        if len(known) < end - first:
            return any(first <= offset < end for offset in known)
        return any(offset in known for offset in range(first, end))

    def drop_below(self, offset: int) -> None:
        """Forgets the records that retention removed."""
        for gone in [known for known in self._failures if known < offset]:
            self._drop(gone)

    def items(self) -> Iterable[tuple[int, Failure]]:
        """Returns all, the one that failed longest ago first."""
        return self._failures.items()

    def __len__(self) -> int:
        return len(self._failures)

    def _drop(self, offset: int) -> None:
        if dropped := self._failures.pop(offset, None):
            self._bytes -= _cost(dropped)


def _cost(failure: Failure) -> int:
    return OVERHEAD_BYTES + len(failure.reason)
