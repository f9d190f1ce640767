"""Who holds what until when. Pure.

No two leases hold the same offset. A lease that holds nothing any more is remembered for a
while, so that a repeated acknowledgement is told from one that comes too late.
"""

from collections import OrderedDict
from collections.abc import Sequence

from logbroker.errors import ConflictError, InvalidError
from logbroker.group.deadlines import Deadlines
from logbroker.record.offset_ranges import OffsetRanges, Range

ENDED_LEASES = 1_000
"""How many of a ledger are remembered..."""
ENDED_LEASES_IN_ALL = 50_000
"""... and of all ledgers together: there may be very many, and one takes some 300 bytes."""

NOTHING = OffsetRanges()
"""What all of them hold: many are remembered."""


class Lease:
    """One delivery to one member."""

    __slots__ = ("deadline_ms", "granted", "held", "is_suspect", "lost", "member", "token")

    def __init__(
        self, token: int, member: str, ranges: tuple[Range, ...], deadline_ms: int, is_suspect: bool
    ) -> None:
        self.token = token
        self.member = member
        self.granted = ranges
        self.held = OffsetRanges(ranges)
        self.lost: OffsetRanges | None = None
        """What was granted and went another way than by an acknowledgement."""
        self.deadline_ms = deadline_ms
        self.is_suspect = is_suspect

    def has_acknowledged(self, first: int, end: int) -> bool:
        """Returns whether this lease settled the whole range before."""
        return (
            OffsetRanges(self.granted).holds(first, end)
            and not self.held.meets(first, end)
            and not (self.lost and self.lost.meets(first, end))
        )


class MemberLeases:
    """What one member holds."""

    __slots__ = ("leases", "record_count", "suspect_count")

    def __init__(self) -> None:
        self.leases: dict[int, Lease] = {}
        """By token, the oldest first."""
        self.record_count = 0
        self.suspect_count = 0
        """Leases on a suspect."""


class EndedLeases:
    """Those of all ledgers that are remembered, the one that ended first goes first."""

    def __init__(self, most: int = ENDED_LEASES_IN_ALL) -> None:
        self._most = most
        self._homes: OrderedDict[Lease, OrderedDict[int, Lease]] = OrderedDict()
        """Where each is kept, by its ledger and token."""

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._homes)

    def add(self, lease: Lease, home: OrderedDict[int, Lease]) -> None:
        """Keeps one in `home`, with the others of its ledger; others may go for it."""
        home[lease.token] = lease
        self._homes[lease] = home
        if len(home) > ENDED_LEASES:
            _, oldest = home.popitem(last=False)
            self._homes.pop(oldest, None)
        if len(self._homes) > self._most:
            oldest, its_home = self._homes.popitem(last=False)
            its_home.pop(oldest.token, None)


class LeaseTable:
    """The leases of a ledger, by token."""

    def __init__(self, all_ended: EndedLeases | None = None) -> None:
        self.count = 0
        """How many records are leased."""
        self._leases: dict[int, Lease] = {}
        self._by_member: dict[str, MemberLeases] = {}
        self._ended: OrderedDict[int, Lease] = OrderedDict()
        self._all_ended = all_ended or EndedLeases()
        self._deadlines = Deadlines()

    def get(self, token: int) -> Lease | None:
        """Returns the lease; None if it has ended, or never was."""
        return self._leases.get(token)

    def ended(self, token: int) -> Lease | None:
        """Returns the lease if it ended a while ago."""
        return self._ended.get(token)

    def knows(self, token: int) -> bool:
        """Returns whether there is such a lease, or was a while ago."""
        return token in self._leases or token in self._ended

    def of(self, member: str) -> list[Lease]:
        """Returns the leases of a member, the oldest first."""
        held = self._by_member.get(member)
        return list(held.leases.values()) if held else []

    def count_of(self, member: str) -> int:
        """Returns how many records a member holds."""
        held = self._by_member.get(member)
        return held.record_count if held else 0

    def has_suspect(self, member: str) -> bool:
        """Returns whether the member holds a suspect."""
        held = self._by_member.get(member)
        return held is not None and held.suspect_count > 0

    def members(self) -> set[str]:
        """Returns who holds anything."""
        return set(self._by_member)

    def all(self) -> list[Lease]:
        """Returns all, the oldest first."""
        return list(self._leases.values())

    def holder_of(self, offset: int) -> Lease | None:
        """Returns the lease on this record. Looks at every lease."""
        return next((lease for lease in self._leases.values() if offset in lease.held), None)

    def held_of(
        self, token: int, ranges: Sequence[Range], *, is_acknowledged: bool
    ) -> tuple[Range, ...]:
        """Returns what of the ranges the token holds: all of them, or ConflictError (LEASE_LOST).

        But what it acknowledged before may be acknowledged again.
        """
        for first, end in ranges:
            if not 0 <= first < end:
                message = f"a range is from an offset up to a greater one, not {first} to {end}"
                raise InvalidError("INVALID_OFFSET", message, first=first, end=end)
        lease = self._leases.get(token)
        wanted = OffsetRanges(ranges).ranges()
        if lease and lease.held.holds_all(wanted):
            return tuple(wanted)
        known = lease or self._ended.get(token)
        held: list[Range] = []
        for first, end in wanted:
            mine = lease.held.within(first, end) if lease else []
            held += mine
            for start, stop in OffsetRanges(mine).gaps(first, end):
                is_repeated = is_acknowledged and known is not None
                if not (is_repeated and known and known.has_acknowledged(start, stop)):
                    message = f"lease {token} does not hold {start} to {stop}"
                    details = {"token": token, "first": start, "end": stop}
                    raise ConflictError("LEASE_LOST", message, **details)
        return tuple(held)

    def expired(self, now_ms: int) -> list[Lease]:
        """Returns the leases whose deadline is over, the earliest first."""
        return [self._leases[token] for token in self._deadlines.due(now_ms)]

    def next_deadline_ms(self) -> int | None:
        """Returns the earliest deadline; None if there is no lease."""
        return self._deadlines.next_ms()

    def grant(self, lease: Lease) -> None:
        """Takes in a new lease."""
        self._leases[lease.token] = lease
        of_member = self._by_member.get(lease.member)
        if of_member is None:
            of_member = self._by_member[lease.member] = MemberLeases()
        of_member.leases[lease.token] = lease
        of_member.record_count += lease.held.count
        of_member.suspect_count += lease.is_suspect
        self._deadlines.set(lease.token, lease.deadline_ms)
        self.count += lease.held.count

    def extend(self, token: int, deadline_ms: int) -> None:
        """Moves the deadline of a lease that is there."""
        if lease := self._leases.get(token):
            lease.deadline_ms = deadline_ms
            self._deadlines.set(token, deadline_ms)

    def settle(self, token: int, ranges: Sequence[Range]) -> None:
        """Takes acknowledged ranges out of a lease, if it is there."""
        lease = self._leases.get(token)
        if lease is None:
            return
        held = lease.held
        before = held.count
        held.remove_all(ranges)
        self.count += held.count - before
        of_member = self._by_member[lease.member]
        of_member.record_count += held.count - before
        if not held:
            self._end(lease, of_member)

    def lose(self, token: int, ranges: Sequence[Range]) -> None:
        """Takes ranges out of a lease, if it is there, that were not acknowledged."""
        if lease := self._leases.get(token):
            lost = lease.lost = lease.lost or OffsetRanges()
            lost.add_all(ranges)
            self.settle(token, ranges)

    def lose_below(self, offset: int) -> None:
        """Takes all below this offset out of every lease."""
        for lease in self.all():
            if lease.held.first < offset:
                self.lose(lease.token, lease.held.within(0, offset))

    def lose_all(self) -> None:
        """Ends every lease."""
        for lease in self.all():
            self.lose(lease.token, lease.held.ranges())

    def _end(self, lease: Lease, of_member: MemberLeases) -> None:
        del self._leases[lease.token]
        del of_member.leases[lease.token]
        of_member.suspect_count -= lease.is_suspect
        if not of_member.leases:
            del self._by_member[lease.member]
        self._deadlines.drop(lease.token)
        lease.held = NOTHING
        self._all_ended.add(lease, self._ended)
