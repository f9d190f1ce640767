"""`python -m bench.ledger`: what one record costs the ledger of a group, with no broker around it.

Leases are as a broker makes them: of what one read finds. Some of them are held at a time,
and each is settled in two answers. Every twentieth record fails once where that is asked for.
"""

import argparse
from collections import deque
from collections.abc import Sequence
from random import Random
from time import process_time

from logbroker.group.events import InLedger, LedgerId, encode
from logbroker.group.ledger import Ledger
from logbroker.group.ledger_events import KEEPING, Keeping, Leased, LedgerEvent, Moment
from logbroker.group.record_state import Cause
from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import GroupSettings, Order
from logbroker.record.offset_ranges import OffsetRanges, Range

RECORDS = 300_000
KEYS = 4_000
READ_RECORDS = 250
"""How many records lie in what is read for one lease."""
OUTSTANDING = 1_000
FAILING = 20
WHERE = LedgerId("group", "topic", 0)


class Run:
    """A ledger and who reads by it."""

    def __init__(self, keys: Sequence[bytes | None], order: Order, *, has_failures: bool) -> None:
        self.ledger = Ledger(GroupSettings(order=order, retry=RetryPolicy(initial_ms=1, max_ms=1)))
        self.journal_bytes = 0
        self.lease_count = 0
        self._keys = keys
        self._has_failures = has_failures
        self._now = Moment(0, 0)
        self._random = Random(1)
        self._failed: set[int] = set()
        self._held: deque[tuple[int, Sequence[Range]]] = deque()

    def to_end(self) -> None:
        """Settles all."""
        while self.ledger.state.committed < len(self._keys):
            self._now = Moment(self._now.mono_ms + 1, self._now.wall_ms + 1)
            self._apply(self.ledger.decide_due(self._now))
            while self.ledger.state.leases.count < OUTSTANDING and self._lease():
                pass
            while self._held and self.ledger.state.leases.count > OUTSTANDING // 2:
                self._settle(*self._held.popleft())
            if self._held:
                self._settle(*self._held.popleft())

    def _lease(self) -> bool:
        ledger, end = self.ledger, len(self._keys)
        keys = ledger.state.keys
        while keys and keys.ready.count < OUTSTANDING and (wanted := ledger.wanted_keys(end)):
            first, stop = wanted[0], min(wanted[1], wanted[0] + READ_RECORDS)
            ledger.learn_keys(first, self._keys[first:stop])
        found = self._decide_lease(end)
        if not found:
            return False
        found = self._decide_lease(min(end, found[0].ranges[0][0] + READ_RECORDS))
        self._apply(found)
        self.lease_count += 1
        ranges = found[0].ranges
        ledger.delivered_runs(ranges)
        self._held.append((found[0].token, ranges))
        return True

    def _decide_lease(self, below: int) -> list[Leased]:
        decided = self.ledger.decide_lease(
            "member", self.lease_count + 1, self._now, high_watermark=below, max_count=500
        )
        return [event for event in decided if isinstance(event, Leased)]

    def _settle(self, token: int, ranges: Sequence[Range]) -> None:
        middle = len(ranges) // 2
        for part in (ranges[middle:], ranges[:middle]):
            failing = OffsetRanges((at, at + 1) for at in self._failing(part))
            done = [gap for one in part for gap in failing.gaps(*one)] if failing else part
            if done:
                self._answer(token, done, Cause.ACKNOWLEDGE)
            for offset in failing:
                self._answer(token, [(offset, offset + 1)], Cause.RETRY)

    def _answer(self, token: int, ranges: Sequence[Range], cause: Cause) -> None:
        decide = self.ledger.decide_settle
        self._apply(decide(token, ranges, cause, self._now, self._random, reason="why"))

    def _failing(self, ranges: Sequence[Range]) -> list[int]:
        """Returns what fails now: a record once."""
        if not self._has_failures:
            return []
        found = [
            at
            for first, end in ranges
            for at in range(first + -first % FAILING, end, FAILING)
            if at not in self._failed
        ]
        self._failed.update(found)
        return found

    def _apply(self, decided: Sequence[LedgerEvent]) -> None:
        for event in decided:
            if KEEPING[type(event)] is not Keeping.NEVER:
                self.journal_bytes += len(encode(InLedger(WHERE, event)))
            self.ledger.apply(event, self._now)


def main() -> None:
    """Measures and prints a line for each kind of load."""
    parser = argparse.ArgumentParser(prog="python -m bench.ledger", description=__doc__)
    parser.add_argument("--records", type=int, default=RECORDS)
    count = parser.parse_args().records
    random = Random(7)
    weights = [1 / (at + 10) ** 0.5 for at in range(KEYS)]
    keys = [b"N%d" % at for at in random.choices(range(KEYS), weights, k=count)]
    for order in Order:
        for has_failures in (False, True)[: 1 if order is Order.PARTITION else 2]:
            run = Run(keys, order, has_failures=has_failures)
            begun = process_time()
            run.to_end()
            spent_us = (process_time() - begun) * 1e6 / count
            print(
                f"{order:<10} {'every 20th fails' if has_failures else 'none fails':<18}"
                f"{spent_us:6.2f} us a record   {count / run.lease_count:7.1f} records a lease"
                f"   {run.journal_bytes / count:5.1f} B of journal a record"
            )


if __name__ == "__main__":
    main()
