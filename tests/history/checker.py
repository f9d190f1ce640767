"""Proves from the history of a run that a group got what it is promised.

    nothing lost      what a producer was told is kept lies in the log, and has come to the group
    settled once      what is confirmed as settled never comes again; every record ends settled,
                      pending or parked, and a parked one has exactly one dead letter
    one lease         a lease begins after the one before it has ended, and an answer under an
                      old one is refused
    numbers           delivery numbers rise by one (deliveries that a vanished member or a killed
                      broker swallowed leave gaps), failures are never forgotten
    order             nothing is begun before what it has to wait for is through

A history holds the events of one group in the order in which one process saw them.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from logbroker.group.settings import Order

from .events import (
    Answer,
    Answered,
    Begun,
    BrokerKilled,
    Confirmed,
    Ended,
    Event,
    Outcome,
    Place,
    Received,
    Refused,
    Stored,
    TakenBack,
)

FINAL = Answer.ACKNOWLEDGE, Answer.REJECT


@dataclass
class Lease:
    """One token's hold on one record."""

    member: str
    token: int
    received: int
    answer: Answer | None = None
    answered: int = -1
    why_over: str = ""
    superseded: int = -1
    """When the next lease on the record was seen."""


@dataclass
class Known:
    """What the history has told of a record so far."""

    leases: list[Lease] = field(default_factory=list)
    number: int = 0
    failures: int = 0
    confirmed_failures: int = 0
    redrives: int = 0
    settled_at: int = -1
    """The redrive count at which it was confirmed as settled."""
    is_acknowledged: bool = False
    """Whether an acknowledgement was confirmed."""
    is_through: bool = False
    """Whether the last handling that counts ended it."""
    begun_token: int = -1


@dataclass
class Scope:
    """Records that wait for one another, in their order."""

    offsets: list[int] = field(default_factory=list)
    first_open: int = 0


class Checker:
    """Reads one history."""

    def __init__(
        self, events: Sequence[Event], outcome: Outcome, *, order: Order, max_failures: int
    ) -> None:
        self.faults: list[str] = []
        self.counts: Counter[str] = Counter()
        self._events = events
        self._outcome = outcome
        self._order = order
        self._max_failures = max_failures
        self._known: dict[Place, Known] = defaultdict(Known)
        self._by_member: dict[str, list[Lease]] = defaultdict(list)
        self._disturbed: list[int] = []
        """When deliveries may have been swallowed: a member or the broker ended."""
        self._kills: list[int] = []
        self._void: set[tuple[int, int, Place]] = set()
        self._last_received: dict[Place, int] = {}
        self._sources = {letter.source for letter in outcome.letters}
        self._scopes: dict[object, Scope] = defaultdict(Scope)
        for place in sorted(outcome.log):
            self._scope(place).offsets.append(place.offset)

    def check(self) -> None:
        """Raises AssertionError with what is wrong, if anything is."""
        self._look_ahead()
        for index, event in enumerate(self._events):
            self.counts[type(event).__name__] += 1
            match event:
                case Received():
                    self._received(index, event)
                case Begun():
                    self._begun(index, event)
                case Answered():
                    self._answered(index, event)
                case Confirmed():
                    self._confirmed(event)
                case Refused() | TakenBack():
                    self._over(event, type(event).__name__)
                case Ended():
                    self._end_all(self._by_member.pop(event.member, ()), "its member ended")
                case BrokerKilled():
                    for leases in self._by_member.values():
                        self._end_all(leases, "the broker was killed")
                    self._by_member.clear()
        self._check_leases()
        self._check_end()
        if self.faults:
            count = len(self.faults)
            raise AssertionError(f"{count} faults, the first ones:\n" + "\n".join(self.faults[:20]))

    # Reading

    def _look_ahead(self) -> None:
        """Finds handlings under a lease that was over: they are no one's turn."""
        kills = 0
        for index, event in enumerate(self._events):
            match event:
                case Refused() | TakenBack():
                    self._void.add((kills, event.token, event.place))
                case Received():
                    self._last_received[event.place] = index
                case Ended():
                    self._disturbed.append(index)
                case BrokerKilled():
                    self._disturbed.append(index)
                    self._kills.append(index)
                    kills += 1

    def _received(self, index: int, event: Received) -> None:
        known = self._known[event.place]
        who = f"{event.place} under {event.token} to {event.member}"
        before = known.leases[-1].received if known.leases else -1
        if event.redrives > known.redrives:
            known.redrives = event.redrives
            known.failures = known.confirmed_failures = 0
        if known.settled_at >= event.redrives:
            self.faults.append(f"delivered again although confirmed as settled: {who}")
        if event.number != known.number + 1:
            was_killed = _lies_between(self._kills, before, index)
            is_gap = event.number > known.number + 1
            may_be = was_killed or (is_gap and _lies_between(self._disturbed, before, index))
            if not may_be:
                self.faults.append(f"delivery number {event.number} after {known.number}: {who}")
        if event.failures < max(known.failures, known.confirmed_failures):
            was = max(known.failures, known.confirmed_failures)
            self.faults.append(f"failures {event.failures} after {was}: {who}")
        if event.failures >= self._max_failures:
            self.faults.append(f"delivered after {event.failures} failures: {who}")
        known.number, known.failures = event.number, event.failures
        lease = Lease(event.member, event.token, index)
        if known.leases:
            known.leases[-1].superseded = index
        known.leases.append(lease)
        self._by_member[event.member].append(lease)

    def _begun(self, index: int, event: Begun) -> None:
        kills = bisect_left(self._kills, index)
        if (kills, event.token, event.place) in self._void:
            return
        known = self._known[event.place]
        if self._order is not Order.NONE and event.place in self._outcome.log:
            scope = self._scope(event.place)
            self._skip_through(scope, event.place, index)
            at = bisect_left(scope.offsets, event.place.offset)
            if scope.first_open < at:
                waits_for = scope.offsets[scope.first_open]
                self.faults.append(f"begun before {waits_for} was through: {event}")
            scope.first_open = min(scope.first_open, at)
        known.is_through, known.begun_token = False, event.token

    def _answered(self, index: int, event: Answered) -> None:
        lease = self._lease(event)
        lease.answer, lease.answered = event.answer, index
        known = self._known[event.place]
        if event.token == known.begun_token:
            is_last = known.failures + 1 >= self._max_failures
            known.is_through = event.answer in FINAL or (event.answer is Answer.RETRY and is_last)

    def _confirmed(self, event: Confirmed) -> None:
        lease, known = self._lease(event), self._known[event.place]
        if 0 <= lease.superseded < lease.answered:
            self.faults.append(f"two live leases, the older one was good: {event}")
        if lease.why_over == "TakenBack":
            self.faults.append(f"taken back, and yet its answer was good: {event}")
        if event.answer in FINAL:
            known.settled_at = known.redrives
            known.is_acknowledged |= event.answer is Answer.ACKNOWLEDGE
        elif event.answer is Answer.RETRY:
            known.confirmed_failures += 1
            if known.confirmed_failures >= self._max_failures:
                known.settled_at = known.redrives
        lease.why_over = "it is answered"

    def _over(self, event: Refused | TakenBack, why: str) -> None:
        for lease in reversed(self._known[event.place].leases):
            if lease.token == event.token and not lease.why_over:
                lease.why_over = why
                return

    def _end_all(self, leases: Iterable[Lease], why: str) -> None:
        for lease in leases:
            lease.why_over = lease.why_over or why

    def _lease(self, event: Answered | Confirmed) -> Lease:
        for lease in reversed(self._known[event.place].leases):
            if lease.token == event.token:
                return lease
        self.faults.append(f"answered without a lease: {event}")
        return Lease(event.member, event.token, -1)

    def _scope(self, place: Place) -> Scope:
        key = self._outcome.log[place][0] if self._order is Order.KEY else b""
        # In key order a record without a key waits for nobody: it is a scope of its own.
        own = place.offset if key is None else key
        return self._scopes[place.topic, place.partition, own]

    def _skip_through(self, scope: Scope, place: Place, index: int) -> None:
        while scope.first_open < len(scope.offsets):
            open_one = place._replace(offset=scope.offsets[scope.first_open])
            is_dead = open_one in self._sources and self._last_received.get(open_one, -1) < index
            if not (self._known[open_one].is_through or is_dead):
                return
            scope.first_open += 1

    # The end

    def _check_leases(self) -> None:
        for place, known in self._known.items():
            for lease, after in zip(known.leases, known.leases[1:], strict=False):
                if not lease.why_over:
                    self.faults.append(f"two live leases on {place}: {lease}, {after}")

    def _check_end(self) -> None:
        log, states = self._outcome.log, self._outcome.states
        for event in self._events:
            if isinstance(event, Stored):
                if log.get(event.place, (None, b""))[1] != event.value:
                    self.faults.append(f"an acknowledged record is lost: {event}")
                elif not self._known[event.place].leases and states[event.place] != "pending":
                    self.faults.append(f"never delivered, and not pending: {event}")
        of_source = Counter(letter.source for letter in self._outcome.letters)
        for place, state in states.items():
            known = self._known[place]
            if of_source[place] > 1:
                self.faults.append(f"{of_source[place]} dead letters of {place}")
            if (of_source[place] == 1) != (state == "parked"):
                self.faults.append(f"{of_source[place]} dead letters of {place}, which is {state}")
            if state == "parked" and known.is_acknowledged:
                self.faults.append(f"acknowledged, and yet a dead letter: {place}")
            if state == "pending" and known.settled_at >= 0:
                self.faults.append(f"pending although confirmed as settled: {place}")
            if state == "settled" and not any(
                lease.answer is Answer.ACKNOWLEDGE for lease in known.leases
            ):
                self.faults.append(f"settled, and nobody has acknowledged it: {place}")
        if states.keys() != log.keys():
            self.faults.append(f"of {len(log)} records only {len(states)} have a state")
        for letter in self._outcome.letters:
            leases = self._known[letter.place].leases
            is_acked = any(lease.answer is Answer.ACKNOWLEDGE for lease in leases)
            if letter.state == "resolved" and not is_acked:
                self.faults.append(f"resolved, and nobody has acknowledged it: {letter}")
            if letter.source not in log or log[letter.source][1] != letter.value:
                self.faults.append(f"a dead letter is not the record it was: {letter}")


def _lies_between(indexes: list[int], first: int, end: int) -> bool:
    """Tells whether one of the ascending indexes lies behind `first` and before `end`."""
    at = bisect_left(indexes, first + 1)
    return at < len(indexes) and indexes[at] < end
