"""Records that wait for one another: those of a partition, or of a key, in their order.

As it was granted: a record is delivered when all before it are through. In partition order
one member is given what follows ahead of time, if it still holds all of what is not through.

As it was handled: a member given records ahead takes them in turn, and behind one that has
failed it begins nothing it held then, for all of that is taken back.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import Order

from .events import Answer, Place
from .known import FINAL, OVER_BEFORE_ANSWERED, Fate, Lease
from .reading import Partition, Reading


@dataclass(slots=True)
class Scope:
    """Some records of a partition."""

    offsets: list[int] = field(default_factory=list)
    """Ascending."""
    first_open: int = 0
    """All before this one, by its index, are through and stay so."""
    epoch: int = 0


class Turns:
    """Checks who waits for whom, by a group's order; in order `none` nobody does."""

    def __init__(
        self,
        reading: Reading,
        order: Order,
        policy: RetryPolicy,
        keys: Mapping[Place, bytes | None],
        given_up: Iterable[Place],
    ) -> None:
        """`given_up`: what has a dead letter at the end."""
        self.faults: list[str] = []
        self._reading = reading
        self._order = order
        self._policy = policy
        self._keys = keys
        self._given_up = frozenset(given_up)
        self._scopes: dict[tuple[str, int, bytes | int], Scope] = defaultdict(Scope)
        self._leases: dict[tuple[Partition, int], dict[int, list[Lease]]] = defaultdict(dict)
        """By partition, and how often the group had been reset there: by offset and token."""

    def check(self) -> None:
        """Checks all deliveries, and how members went on."""
        if self._order is Order.NONE:
            return
        for place in sorted(self._keys):
            self._scopes[self._scope_of(place)].offsets.append(place.offset)
        deliveries = [self._reading.by_token[token] for token in sorted(self._reading.by_token)]
        for delivery in deliveries:
            for lease in delivery:
                self._leases_beside(lease).setdefault(lease.place.offset, []).append(lease)
        for delivery in deliveries:
            if delivery[0].place in self._keys:
                self._check_granted(delivery)
        if self._order is Order.PARTITION:
            self._check_handled([lease for delivery in deliveries for lease in delivery])

    def _scope_of(self, place: Place) -> tuple[str, int, bytes | int]:
        if self._order is Order.PARTITION:
            return place.topic, place.partition, b""
        key = self._keys[place]
        # A record without a key waits for nobody: it is a scope of its own.
        return place.topic, place.partition, place.offset if key is None else key

    def _epoch(self, lease: Lease) -> int:
        return self._reading.epoch(lease.place, lease.received)

    def _leases_beside(self, lease: Lease) -> dict[int, list[Lease]]:
        """Returns the leases in a partition since the last reset there, by offset and token."""
        return self._leases[lease.place[:2], self._epoch(lease)]

    # As it was granted

    def _check_granted(self, delivery: list[Lease]) -> None:
        highest: dict[tuple[str, int, bytes | int], Lease] = {}
        for lease in sorted(delivery, key=lambda lease: lease.place):
            highest[self._scope_of(lease.place)] = lease
        for name, lease in highest.items():
            self._check_before(self._scopes[name], lease)

    def _check_before(self, scope: Scope, lease: Lease) -> None:
        """Checks that all before it are through, or its own member's."""
        epoch, offsets = self._epoch(lease), scope.offsets
        if epoch > scope.epoch:
            start = self._reading.resets[lease.place[:2]][epoch - 1][1].to_offset
            scope.epoch, scope.first_open = epoch, bisect_left(offsets, start)
        can_move, beside = True, self._leases_beside(lease)
        at, end = scope.first_open, bisect_left(offsets, lease.place.offset)
        while at < end:
            offset = offsets[at]
            leases = beside.get(offset, [])
            until = _until(leases, lease.token)
            if self._is_held(leases, until, lease):
                can_move = False
            elif not self._may_be_through(lease.place._replace(offset=offset), leases, lease):
                self.faults.append(f"delivered before {offset} was through: {lease}")
                until = len(leases)  # one fault is enough
            at += 1
            can_move &= until == len(leases)
            if can_move:
                scope.first_open = at

    def _is_held(self, leases: list[Lease], until: int, lease: Lease) -> bool:
        """Tells whether a record's last lease up to then is this one's member's, and not over."""
        if self._order is not Order.PARTITION or not until:
            return False
        last = leases[until - 1]
        if last.token == lease.token:
            return True
        if last.member != lease.member or last.life != lease.life:
            return False
        ends = [time for time in (last.confirmed, last.over) if time >= 0]
        # A stream tells of ends and of deliveries in the order in which they were decided.
        return last.received < lease.received < min(ends, default=1 << 62)

    def _may_be_through(self, place: Place, leases: list[Lease], lease: Lease) -> bool:
        """Tells whether a record may have been settled when a later one was granted."""
        before = leases[: _until(leases, lease.token - 1)]
        later = leases[_until(leases, lease.token) :]
        if any(one.life == lease.life for one in later):
            return False
        for one in before:
            is_good = one.answer in FINAL and one.fate not in OVER_BEFORE_ANSWERED
            if is_good and one.answered < lease.granted:
                return True
        last = before[-1] if before else None
        if not later:
            is_known = last is not None and last.fate is Fate.CONFIRMED
            is_late = is_known and last is not None and last.answered > lease.granted
            return place in self._given_up and not is_late
        # A kill may have made the broker forget that it was given up.
        return last is not None and last.failures + 1 >= self._policy.max_failures

    # As it was handled

    def _check_handled(self, leases: list[Lease]) -> None:
        times = []
        for lease in leases:
            if lease.place in self._keys:
                times += [(lease.received, "received", lease), (lease.begun, "begun", lease)]
                times += [(lease.answered, "answered", lease), (lease.over, "over", lease)]
        hands: dict[tuple[str, Partition], Hand] = defaultdict(Hand)
        for index, what, lease in sorted(times, key=lambda one: (one[0], one[2].place)):
            if index < 0:
                continue
            hand = hands[lease.member, lease.place[:2]]
            match what:
                case "received":
                    hand.take(lease)
                case "begun":
                    self._begun(hand, lease)
                case "answered":
                    is_spent = lease.failures + 1 >= self._policy.max_failures
                    is_spent &= lease.answer is Answer.RETRY
                    hand.drop(lease, has_failed=lease.answer not in FINAL and not is_spent)
                case _:
                    hand.drop(lease)

    def _begun(self, hand: "Hand", lease: Lease) -> None:
        if (lease.place.offset, lease.token) in hand.lost:
            self.faults.append(f"begun although what is before it has failed: {lease}")
        while hand.open and hand.open[0][0] < lease.place.offset:
            offset, token = hand.open[0]
            if self._is_still_held(lease, offset, token):
                self.faults.append(f"begun before {offset} was through: {lease}")
            hand.open.pop(0)

    def _is_still_held(self, lease: Lease, offset: int, token: int) -> bool:
        """Tells whether nothing shows that the member had lost it; a worker does not say so."""
        leases = self._leases_beside(lease).get(offset, [])
        until = _until(leases, lease.token)
        last = leases[until - 1] if until else None
        if last is None or last.token != token or last.life != lease.life:
            return False
        return until < len(leases) or lease.place._replace(offset=offset) not in self._given_up


def _until(leases: list[Lease], token: int) -> int:
    """Returns how many of the leases have at most this token."""
    if not leases or leases[-1].token <= token:
        return len(leases)
    return bisect_left(leases, token + 1, key=lambda lease: lease.token)


class Hand:
    """What one member holds of a partition and has not answered."""

    def __init__(self) -> None:
        self.open: list[tuple[int, int]] = []
        """Offsets and tokens, ascending."""
        self.lost: set[tuple[int, int]] = set()
        """What is taken back from it, for something before it has failed."""

    def take(self, lease: Lease) -> None:
        """Takes a record."""
        insort(self.open, (lease.place.offset, lease.token))

    def drop(self, lease: Lease, *, has_failed: bool = False) -> None:
        """Lets go of a record, or of it and all behind it."""
        one = lease.place.offset, lease.token
        at = bisect_left(self.open, one)
        if has_failed:
            self.lost.update(self.open[at + 1 :])
        if at < len(self.open) and self.open[at] == one:
            del self.open[at]
