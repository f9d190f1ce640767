"""Proves from the history of a run that a group got what it is promised.

    nothing lost      what a producer was told is kept lies in the log, once and in its order,
                      and has come to the group
    settled once      what is confirmed as settled never comes again; every record ends settled,
                      pending, or as a dead letter, exactly one (see `ending`)
    one lease         a lease begins after the one before it has ended, an answer under an old
                      one is refused, and its member is told
    numbers           delivery numbers rise by one, but for deliveries that nobody lived to see;
                      failures are what happened, no more, no less; a redrive begins them anew
    order             nothing is begun before what it has to wait for is through, nothing comes
                      again before half its back-off is over, what a vanished member held beside
                      others comes alone

A history holds the events of one group in the order of their times; leases on a record are
read in the order in which they were granted, which is that of their tokens, for a member that
is slow hears of its lease after another one has got the next. Where it cannot know what
a member or broker did that ended without a word, it allows whatever that may have been.
"""

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence

from logbroker.broker.groups import TOKENS_RESERVED_AT_ONCE
from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import Order

from .ending import check_end
from .events import (
    Answer,
    Answered,
    Begun,
    BrokerKilled,
    Confirmed,
    Ended,
    How,
    Noted,
    Outcome,
    Place,
    Received,
    RedriveAsked,
    Refused,
    Reset,
    Stored,
    TakenBack,
    Trimmed,
)
from .known import FINAL, Fate, Known, Lease
from .scopes import Scopes

ROUNDED_NS = 3_000_000
"""A back-off is kept in whole ms, and measured on other readings of the clock."""


class Checker:
    """Reads one history."""

    def __init__(
        self, noted: Sequence[Noted], outcome: Outcome, *, order: Order, policy: RetryPolicy
    ) -> None:
        self.faults: list[str] = []
        self.counts: Counter[str] = Counter()
        """How often what was seen."""
        self.outcome = outcome
        self.policy = policy
        self.known: dict[Place, Known] = defaultdict(Known)
        self.past: dict[Place, list[Known]] = defaultdict(list)
        """What was known of records before the group was reset across them."""
        self.stored: dict[Place, Stored] = {}
        self.trimmed: dict[tuple[str, int], int] = {}
        """Where logs begin."""
        self.disturbed: list[int] = []
        """When deliveries may have been swallowed: a member or the broker ended."""
        self._noted = noted = kills_behind_what_was_sent(in_order_of_grants(noted))
        self._order = order
        self._by_member: dict[str, list[tuple[Place, Lease]]] = defaultdict(list)
        self._by_token: dict[tuple[int, Place], Lease] = {}
        self._sizes: Counter[int] = Counter()
        """How many records came under a token."""
        self._holders: dict[int, str] = {}
        self._kills: list[int] = []
        self._void: set[tuple[int, Place]] = set()
        self._last_received: dict[tuple[int, Place], int] = {}
        """By how often the partition had been reset, and place."""
        self._resets: Counter[tuple[str, int]] = Counter()
        self._at_risk: deque[tuple[int, Place, bool]] = deque()
        """What a killed broker may forget: deliveries, and (True) failures."""
        self._redrives_asked = 0
        self._sources = {letter.source for letter in outcome.letters}
        self._look_ahead()
        self._keys = {place: stored.key for place, stored in self.stored.items()}
        self._keys.update((place, key) for place, (key, _) in outcome.log.items())
        self._scopes = Scopes(order, self._keys)

    def check(self) -> None:
        """Raises AssertionError with what is wrong, if anything is."""
        for index, (at_ns, event) in enumerate(self._noted):
            self._count(event)
            match event:
                case Received():
                    self._received(index, at_ns, event)
                case Begun():
                    self._begun(index, event)
                case Answered():
                    self._answered(index, event)
                case Confirmed():
                    self._confirmed(event)
                case Refused():
                    self._refused(index, event)
                case TakenBack():
                    self._taken_back(index, event)
                case Ended(member, how):
                    self._ended(self._by_member.pop(member, ()), how)
                case BrokerKilled():
                    self._killed()
                case RedriveAsked():
                    self._redrives_asked += 1
                case Reset():
                    self._reset(index, event)
        self._check_leases()
        check_end(self)
        if self.faults:
            count = len(self.faults)
            raise AssertionError(f"{count} faults, the first ones:\n" + "\n".join(self.faults[:20]))

    # Reading

    def _look_ahead(self) -> None:
        """Finds handlings under a lease that was over: they are no one's turn."""
        resets: Counter[tuple[str, int]] = Counter()
        for index, (_, event) in enumerate(self._noted):
            match event:
                case Stored():
                    self.stored[event.place] = event
                case Refused() | TakenBack():
                    self._void.add((event.token, event.place))
                case Received(place=place, token=token):
                    self._last_received[resets[place.topic, place.partition], place] = index
                    self._sizes[token] += 1
                case Ended():
                    self.disturbed.append(index)
                case BrokerKilled():
                    self.disturbed.append(index)
                    self._kills.append(index)
                case Reset(topic, partition):
                    resets[topic, partition] += 1
                case Trimmed(topic, partition, offset):
                    self.trimmed[topic, partition] = offset

    def _count(self, event: object) -> None:
        name = type(event).__name__
        self.counts[name] += 1
        if isinstance(event, Confirmed):
            self.counts[str(event.answer)] += 1
        elif isinstance(event, Received) and event.redrives:
            self.counts["received after a redrive"] += 1

    def _received(self, index: int, at_ns: int, event: Received) -> None:
        known, last = self.known[event.place], self.known[event.place].last
        who = f"{event.place} under {event.token} to {event.member}"
        if self._holders.setdefault(event.token, event.member) != event.member or (
            (event.token, event.place) in self._by_token
        ):
            self.faults.append(f"a token is used twice: {who}")
        if last and last.fate is Fate.OPEN:  # whatever it was will be seen, or never
            known.failed(last, at_least=0, at_most=1)
        if known.is_acknowledged or known.is_given_up:
            is_redriven = known.is_given_up and event.redrives > known.redrives
            if known.is_acknowledged or not is_redriven:
                self.faults.append(f"delivered again although confirmed as settled: {who}")
        if known.is_skipped:
            self.faults.append(f"delivered, and the group was moved past it: {who}")
        before = last.received if last else known.since
        unseen = self._check_number(index, before, known, event)
        if event.redrives != known.redrives:
            self._check_redrive(known, event, unseen)
            known.begin_round(event.redrives)
        if (event.redrives == 0) != (event.place in self._keys):
            self.faults.append(f"only dead letters are redriven, and only then come: {who}")
        if not known.least <= event.failures <= known.most + unseen:
            could_be = f"{known.least} to {known.most + unseen}"
            self.faults.append(f"failures {event.failures}, which can be {could_be}: {who}")
        if event.failures >= self.policy.max_failures:
            self.faults.append(f"delivered after {event.failures} failures: {who}")
        if last and not unseen:
            self._check_after(last, at_ns, index, event)
        known.number = known.durable_number = event.number
        known.least = known.most = event.failures
        lease = Lease(event.member, event.token, index)
        if last:
            last.superseded = index
        known.leases.append(lease)
        self._by_member[event.member].append((event.place, lease))
        self._by_token[event.token, event.place] = lease
        self._at_risk.append((index, event.place, False))

    def _check_number(self, index: int, before: int, known: Known, event: Received) -> int:
        """Returns how many deliveries there may have been that nobody saw."""
        was_killed = _lies_between(self._kills, before, index)
        least = (known.durable_number if was_killed else known.number) + 1
        is_gap = event.number > known.number + 1
        may_be_gap = is_gap and _lies_between(self.disturbed, before, index)
        if event.number < least or (is_gap and not may_be_gap):
            told = f"delivery number {event.number} after {known.number}"
            self.faults.append(f"{told}: {event.place} under {event.token} to {event.member}")
        return max(event.number - least, 0)

    def _check_redrive(self, known: Known, event: Received, unseen: int) -> None:
        who = f"{event.place} under {event.token} to {event.member}"
        is_next = event.redrives == known.redrives + 1
        if not is_next and not (unseen and event.redrives > known.redrives):
            self.faults.append(f"redrives {event.redrives} after {known.redrives}: {who}")
        if event.redrives > self._redrives_asked:
            self.faults.append(f"redrives {event.redrives}, asked for fewer: {who}")
        max_failures = self.policy.max_failures
        if known.redrives and not known.may_be_given_up(unseen, max_failures):
            self.faults.append(f"redriven before it was parked again: {who}")

    def _check_after(self, last: Lease, at_ns: int, index: int, event: Received) -> None:
        """Checks what one delivery must keep of the one before it."""
        who = f"{event.place} under {event.token} to {event.member}"
        if last.fate is Fate.CONFIRMED and last.answer is Answer.RETRY and event.failures:
            grown = self.policy.initial_ms * self.policy.multiplier ** (event.failures - 1)
            least_ns = int(min(grown, self.policy.max_ms)) // 2 * 1_000_000 - ROUNDED_NS
            waited_ns = at_ns - self._noted[last.answered].at_ns
            if waited_ns < least_ns:
                self.faults.append(f"came back after {waited_ns / 1e6:.1f} ms: {who}")
        was_killed = _lies_between(self._kills, last.received, index)
        if was_killed:
            return
        if last.is_suspected and event.failures == self.known[event.place].least:
            if self._sizes[event.token] > 1:
                self.faults.append(f"a suspect among others: {who}")
            self.counts["suspects seen alone"] += 1
        scope = self._scopes.of(event.place)
        if scope and last.answer in FINAL and scope.top > event.place.offset:
            # A member may go on in what it was given of a partition; all of that comes again.
            is_own = self._order is Order.PARTITION and scope.top_member == last.member
            if scope.top_begun > last.answered and not is_own:
                self.faults.append(f"{scope.top} was begun before it was through: {who}")

    def _begun(self, index: int, event: Begun) -> None:
        if (event.token, event.place) in self._void:
            return
        epoch = self._resets[event.place.topic, event.place.partition]

        def is_through(place: Place) -> bool:
            known = self.known[place]
            if known.is_through or known.is_skipped:
                return True
            return place in self._sources and self._last_received.get((epoch, place), -1) < index

        waits_for = self._scopes.begin(event.place, index, event.member, is_through)
        if waits_for is not None:
            self.faults.append(f"begun before {waits_for} was through: {event}")
        known = self.known[event.place]
        known.is_through, known.begun_token = False, event.token

    def _answered(self, index: int, event: Answered) -> None:
        lease = self._lease(event)
        lease.answer, lease.answered = event.answer, index
        known = self.known[event.place]
        if event.token == known.begun_token:
            is_last = known.most + 1 >= self.policy.max_failures
            known.is_through = event.answer in FINAL or (event.answer is Answer.RETRY and is_last)

    def _confirmed(self, event: Confirmed) -> None:
        lease, known = self._lease(event), self.known[event.place]
        if 0 <= lease.superseded < lease.answered:
            self.faults.append(f"two live leases, the older one was good: {event}")
        if lease.fate is Fate.TAKEN_BACK:
            self.faults.append(f"taken back, and yet its answer was good: {event}")
        lease.fate = Fate.CONFIRMED
        match event.answer:
            case Answer.ACKNOWLEDGE:
                known.is_acknowledged = True
            case Answer.REJECT:
                known.is_given_up = True
            case Answer.RETRY:
                known.failed(lease, at_least=1, at_most=1)
                known.is_given_up = known.least >= self.policy.max_failures
            case Answer.RELEASE:
                known.failed(lease, at_least=0, at_most=0)
                return  # it is not journaled: nothing before it need be
        while self._at_risk and self._at_risk[0][0] < lease.answered:
            self._at_risk.popleft()

    def _refused(self, index: int, event: Refused) -> None:
        if event.was_told is False:
            self.faults.append(f"its member was not told that its lease was over: {event}")
        self._over(index, event, Fate.REFUSED)

    def _taken_back(self, index: int, event: TakenBack) -> None:
        lease = self._by_token.get((event.token, event.place))
        if lease and lease.fate is Fate.CONFIRMED:
            self.faults.append(f"taken back, and yet its answer was good: {event}")
        self._over(index, event, Fate.TAKEN_BACK)

    def _over(self, index: int, event: Refused | TakenBack, fate: Fate) -> None:
        lease = self._by_token.get((event.token, event.place))
        if lease is None or lease.fate is not Fate.OPEN:
            return
        lease.fate = fate
        is_told = isinstance(event, TakenBack) or event.was_told is not None
        if self._order is Order.PARTITION or not is_told:
            self.known[event.place].failed(lease, at_least=0, at_most=1)
        elif not lease.is_counted:  # what is behind a failure is taken back in one order alone
            self.known[event.place].failed(lease, at_least=1, at_most=1)
            self._at_risk.append((index, event.place, True))
            self.counts["expired"] += 1

    def _ended(self, held: Iterable[tuple[Place, Lease]], how: How) -> None:
        still = [(place, lease) for place, lease in held if lease.fate is Fate.OPEN]
        unanswered = [lease for _, lease in still if lease.answer is None]
        for place, lease in still:
            is_released = how is How.LEFT and lease.answer is None
            lease.fate = Fate.RELEASED if is_released else Fate.VANISHED
            self.known[place].failed(lease, at_least=0, at_most=0 if is_released else 1)
        if how is How.VANISHED and len(unanswered) > 1 and self._order is not Order.PARTITION:
            for lease in unanswered:
                lease.is_suspected = True

    def _killed(self) -> None:
        for held in self._by_member.values():
            self._ended(held, How.LOST)
        self._by_member.clear()
        for _, place, is_failure in self._at_risk:
            known = self.known[place]
            if is_failure:
                known.least = max(known.least - 1, 0)
            else:
                known.durable_number -= 1
        self._at_risk.clear()

    def _reset(self, index: int, event: Reset) -> None:
        self._resets[event.topic, event.partition] += 1
        self._at_risk.clear()  # it is durable, and so is what was before
        self._scopes.reset(event.topic, event.partition, event.to_offset)
        for place, known in list(self.known.items()):
            if place[:2] == (event.topic, event.partition) and place.offset >= event.to_offset:
                self.past[place].append(known)
                self.known[place] = Known(since=index)
        for offset in range(event.from_offset, event.to_offset):
            self.known[Place(event.topic, event.partition, offset)].is_skipped = True

    def _lease(self, event: Answered | Confirmed) -> Lease:
        lease = self._by_token.get((event.token, event.place))
        if lease is None:
            self.faults.append(f"answered without a lease: {event}")
            return Lease(event.member, event.token, -1)
        return lease

    def _check_leases(self) -> None:
        for place, known in self.known.items():
            for lease in known.leases[:-1]:
                if lease.fate is Fate.OPEN:
                    self.faults.append(f"two live leases on {place}: {lease}")


def in_order_of_grants(noted: Sequence[Noted]) -> list[Noted]:
    """Returns the history with every lease before later ones on the same record."""
    leases: dict[Place, list[tuple[int, int]]] = defaultdict(list)
    for index, (_, event) in enumerate(noted):
        if isinstance(event, Received):
            leases[event.place].append((event.token, index))
    before = {}
    """Of what was noted too late: before which one it belongs."""
    for of_place in leases.values():
        next_index = len(noted)
        for _, index in sorted(of_place, reverse=True):
            if index > next_index:
                before[index] = next_index
            next_index = min(next_index, index)
    if not before:
        return list(noted)
    places = [(before.get(index, index), index not in before, index) for index in range(len(noted))]
    return [noted[index] for *_, index in sorted(places)]


def kills_behind_what_was_sent(noted: Sequence[Noted]) -> list[Noted]:
    """Returns the history with every kill behind the deliveries that the killed broker had sent.

    A member may read those after the kill was noted. The token tells which life of the broker
    granted a lease: each begins with tokens of its own.
    """
    kills = [index for index, (_, event) in enumerate(noted) if isinstance(event, BrokerKilled)]
    sent = [
        (event.token // TOKENS_RESERVED_AT_ONCE, index)
        for index, (_, event) in enumerate(noted)
        if isinstance(event, Received)
    ]
    if len({life for life, _ in sent}) < 2:
        return list(noted)
    behind = {
        kill: max([index for life, index in sent if life <= number], default=-1)
        for number, kill in enumerate(kills)
    }
    places = [
        (max(index, behind.get(index, -1)), index in behind, index) for index in range(len(noted))
    ]
    return [noted[index] for *_, index in sorted(places)]


def _lies_between(indexes: list[int], first: int, end: int) -> bool:
    """Tells whether one of the ascending indexes lies behind `first` and before `end`."""
    at = bisect_left(indexes, first + 1)
    return at < len(indexes) and indexes[at] < end
