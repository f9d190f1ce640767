"""Proves from the history of a run that a group got what it is promised.

    nothing lost      what a producer was told is kept lies in the log, once and in its order,
                      and has come to the group
    settled once      what is confirmed as settled never comes again; every record ends settled,
                      pending, or as a dead letter, exactly one (see `ending`)
    one lease         a lease begins after the one before it has ended, an answer under an old
                      one is refused, and its member is told
    numbers           delivery numbers rise by one, but for deliveries that nobody lived to see;
                      failures are what happened, no more, no less; a redrive begins them anew;
                      nothing comes again before half its back-off is over, what a vanished
                      member held beside others comes alone (see `numbers`)
    order             nothing is delivered, or begun, before what it has to wait for is through
                      (see `turns`)

A history holds the events of one group by the times at which they were noted, which is not
when the broker decided. A fault is what cannot have been right in whatever order things
happened that fits what was noted; `reading` says what is certain about that order. Where it
cannot be known what a member or broker did that ended without a word, that may be anything.
"""

from collections import Counter
from collections.abc import Sequence

from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import Order

from .ending import Ending
from .events import Noted, Outcome
from .numbers import Numbers
from .reading import Reading
from .turns import Turns


class Checker:
    """Checks one history."""

    def __init__(
        self,
        noted: Sequence[Noted],
        outcome: Outcome,
        *,
        order: Order,
        policy: RetryPolicy,
        lease_ms: int = 30_000,
        deaf_ms: int = 0,
    ) -> None:
        """`deaf_ms`: how long a member may seem to live that hears nothing any more."""
        self._reading = reading = Reading(noted, lease_ms, deaf_ms)
        self._keys = {place: stored.key for place, stored in reading.stored.items()}
        self._keys.update((place, key) for place, (key, _) in outcome.log.items())
        self._numbers = Numbers(reading, order, policy)
        sources = {letter.source for letter in outcome.letters}
        self._turns = Turns(reading, order, policy, self._keys, sources)
        self._ending = Ending(reading, outcome, policy)

    @property
    def counts(self) -> Counter[str]:
        """Returns how often what was seen, once it is checked."""
        return self._reading.counts

    def check(self) -> None:
        """Raises AssertionError with what is wrong, if anything is."""
        faults = self.faults()
        if faults:
            shown = "\n".join(faults[:20])
            raise AssertionError(f"{len(faults)} faults, the first ones:\n{shown}")

    def faults(self) -> list[str]:
        """Returns what is wrong."""
        for known in self._reading.all_known():
            if known.leases:
                is_dead_letter = known.leases[0].place not in self._keys
                self._numbers.check(known, is_dead_letter=is_dead_letter)
        self._turns.check()
        self._ending.check()
        parts = (self._reading, self._numbers, self._turns, self._ending)
        return [fault for part in parts for fault in part.faults]
