"""A history as it is read: who was granted what, in which order, and how it ended.

Members note in their own time. What that proves about the broker:

    a lease was granted before its member noted it, and before any later token was noted:
    tokens are given out in the order of grants, whoever gets them
    a broker that is started again begins with tokens of its own, so a token tells by which
    life of the broker it was granted, however late its member notes it
    an answer is noted before it is sent, so the broker decides about it later
    what is confirmed was decided before that is noted, and is durable, and so is all that was
    decided before it; but a release is never kept
    a stream tells things in the order in which they were decided
    a member that did not leave in order may have been granted what nobody noted, up to when
    the broker noticed that it is gone
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence

from logbroker.broker.groups import TOKENS_RESERVED_AT_ONCE

from .events import (
    Answer,
    Answered,
    Begun,
    BrokerKilled,
    Confirmed,
    Cut,
    Ended,
    How,
    Noted,
    Place,
    Received,
    RedriveAsked,
    Refused,
    Reset,
    Stored,
    TakenBack,
    Trimmed,
)
from .known import Fate, Known, Lease

NOTICED_NS = 5_000_000_000
"""How long the broker may go on granting to a member that is gone: until it notices."""

ENDLESS_NS = 1 << 62

Partition = tuple[str, int]


class Reading:
    """What a history tells, put together by record and by member."""

    def __init__(self, noted: Sequence[Noted], lease_ms: int, deaf_ms: int = 0) -> None:
        """`deaf_ms`: how long a member may seem to live that hears nothing any more."""
        self.faults: list[str] = []
        """What is wrong whatever the order of things was."""
        self.counts: Counter[str] = Counter()
        self.known: dict[Place, Known] = defaultdict(Known)
        self.past: dict[Place, list[Known]] = defaultdict(list)
        """What was known of records before the group was reset across them."""
        self.stored: dict[Place, Stored] = {}
        self.trimmed: dict[Partition, int] = {}
        """Where logs begin."""
        self.by_token: dict[int, list[Lease]] = defaultdict(list)
        """The deliveries."""
        self.resets: dict[Partition, list[tuple[int, Reset]]] = defaultdict(list)
        """With their times."""
        self.redrives_asked: list[int] = []
        """When."""
        self.kills: list[int] = []
        self._noted = noted
        self._lease_ns = lease_ms * 1_000_000
        self._swallows = 1 + deaf_ms // lease_ms
        """How often a record may be granted to one member, one lease after another expiring."""
        self._leases: dict[tuple[int, Place], Lease] = {}
        self._held: dict[str, list[Lease]] = defaultdict(list)
        """By members that have not ended."""
        self._answered_last: dict[str, int] = {}
        self._gone_ns: list[int] = []
        """When members ended who may have swallowed deliveries."""
        self._durable: Counter[int] = Counter()
        """By life of the broker: what was decided before then is durable."""
        for index, (at_ns, event) in enumerate(noted):
            self._read(index, at_ns, event)
        self._gone_ns.sort()
        self._order_grants()

    @property
    def lives(self) -> int:
        """Returns in which life the broker is at the end."""
        return len(self.kills)

    def swallowed(self, first_ns: int, end_ns: int) -> int:
        """Returns how many deliveries there may have been then that nobody noted."""
        first = bisect_left(self._gone_ns, first_ns - NOTICED_NS)
        return (bisect_right(self._gone_ns, end_ns + NOTICED_NS) - first) * self._swallows

    def hidden(self, known: Known) -> int:
        """Returns how many deliveries there may have been behind the last that was seen."""
        last = known.last
        if last:
            return self.swallowed(last.received_ns, ENDLESS_NS) + self.lives - last.life
        return self.swallowed(known.since_ns, ENDLESS_NS) + self.lives - known.since_life

    def is_durable(self, life: int, decided_before: int) -> bool:
        """Tells whether what this life of the broker decided before then survived it."""
        return decided_before < self._durable[life]

    def answered_last(self, member: str) -> int:
        """Returns when it has sent its last answer."""
        return self._answered_last.get(member, -1)

    def epoch(self, place: Place, index: int) -> int:
        """Returns how often the group had been reset in the partition by then."""
        resets = self.resets.get(place[:2])
        return bisect_left(resets, index, key=lambda one: one[0]) if resets else 0

    # Events

    def _read(self, index: int, at_ns: int, event: object) -> None:
        self.counts[type(event).__name__] += 1
        match event:
            case Stored():
                self.stored[event.place] = event
            case Received():
                self._received(index, at_ns, event)
            case Begun() | Answered() | Confirmed() | Refused() | TakenBack():
                lease = self._leases.get((event.token, event.place))
                if lease is None:
                    if isinstance(event, Answered | Confirmed):
                        self.faults.append(f"answered without a lease: {event}")
                    return
                self._take(index, at_ns, event, lease)
            case Ended():
                self._ended(index, at_ns, event)
            case Cut():
                self._gone_ns.append(at_ns)
            case BrokerKilled():
                self.kills.append(index)
            case RedriveAsked():
                self.redrives_asked.append(index)
            case Reset():
                self._reset(index, at_ns, event)
            case Trimmed(topic, partition, offset):
                self.trimmed[topic, partition] = offset

    def _received(self, index: int, at_ns: int, event: Received) -> None:
        member, token, place, number, failures, redrives = event
        life = (token - 1) // TOKENS_RESERVED_AT_ONCE
        lease = Lease(
            member, token, place, number, failures, redrives, index, at_ns, index, life
        )  # fmt: skip
        delivery = self.by_token[token]
        if (token, place) in self._leases or (delivery and delivery[0].member != member):
            self.faults.append(f"a token is used twice: {lease}")
        if redrives:
            self.counts["received after a redrive"] += 1
        known = self.known[place]
        if known.is_skipped:
            self.faults.append(f"delivered, and the group was moved past it: {lease}")
        delivery.append(lease)
        known.leases.append(lease)
        self._leases[token, place] = lease
        self._held[member].append(lease)

    def _take(
        self,
        index: int,
        at_ns: int,
        event: Begun | Answered | Confirmed | Refused | TakenBack,
        lease: Lease,
    ) -> None:
        match event:
            case Begun():
                lease.begun = index
            case Answered():
                lease.answer, lease.answered, lease.answered_ns = event.answer, index, at_ns
                self._answered_last[lease.member] = index
            case Confirmed():
                self.counts[str(event.answer)] += 1
                if lease.over >= 0:
                    self.faults.append(f"taken back, and yet its answer was good: {event}")
                lease.confirmed, lease.fate = index, Fate.CONFIRMED
                if event.answer is not Answer.RELEASE:
                    self._durable[lease.life] = max(self._durable[lease.life], lease.answered)
            case Refused():
                if event.was_told is False:
                    self.faults.append(f"its member was not told that its lease was over: {event}")
                # A broker that was started since knows nothing of the lease.
                is_same_life = len(self.kills) <= lease.life
                self._over(index, lease, Fate.REFUSED, event.was_told is not None and is_same_life)
            case TakenBack():
                if lease.fate is Fate.CONFIRMED:
                    self.faults.append(f"taken back, and yet its answer was good: {event}")
                self._over(index, lease, Fate.TAKEN_BACK, is_told=True)

    def _over(self, index: int, lease: Lease, fate: Fate, is_told: bool) -> None:
        if lease.fate is Fate.OPEN:
            lease.fate, lease.over, lease.is_told = fate, index, is_told

    def _ended(self, index: int, at_ns: int, event: Ended) -> None:
        if event.how is not How.LEFT:
            self._gone_ns.append(at_ns)
        still = [one for one in self._held.pop(event.member, ()) if one.fate is Fate.OPEN]
        unanswered = [lease for lease in still if lease.answer is None]
        for lease in still:
            is_released = event.how is How.LEFT and lease.answer is None
            lease.ended, lease.fate = index, Fate.RELEASED if is_released else Fate.VANISHED
            # It is not told of what expires as it leaves; and it may have noted the lease late.
            lease.may_have_expired = at_ns - lease.received_ns > self._lease_ns // 4
        if event.how is How.VANISHED:
            for lease in unanswered:
                others = [one for one in unanswered if one.life == lease.life]
                lease.is_suspected = len(others) > 1

    def _reset(self, index: int, at_ns: int, event: Reset) -> None:
        partition, life = (event.topic, event.partition), len(self.kills)
        self.resets[partition].append((index, event))
        self._durable[life] = max(self._durable[life], index)
        # What nobody saw may have been given up, too, also where its producer hears later of it.
        passed = [Place(*partition, at) for at in range(event.to_offset, event.from_offset)]
        for place in sorted({*self.known, *self.stored, *passed}):
            known = self.known[place]
            if place[:2] == partition and place.offset >= event.to_offset:
                self.past[place].append(known)
                self.known[place] = Known(index, at_ns, life)
        for offset in range(event.from_offset, event.to_offset):
            self.known[Place(*partition, offset)].is_skipped = True

    # Order

    def _order_grants(self) -> None:
        """Finds out how early each lease must have been granted, and orders those on a record."""
        earliest = len(self._noted)
        for token in sorted(self.by_token, reverse=True):
            delivery = self.by_token[token]
            earliest = min(earliest, *(lease.received for lease in delivery))
            for lease in delivery:
                lease.granted = earliest
                if lease.fate is Fate.OPEN and lease.life < self.lives:
                    lease.fate = Fate.VANISHED
        for known in self.all_known():
            known.leases.sort(key=lambda lease: lease.token)

    def all_known(self) -> list[Known]:
        """Returns what is known of all records, also from before resets."""
        return [*self.known.values(), *(known for past in self.past.values() for known in past)]
