"""Why dead letters failed last: as far as that is kept, and what a ledger tells of it."""

from random import Random

import pytest

from logbroker.group import ledger_state
from logbroker.group.events import InLedger, LedgerId, decode, encode
from logbroker.group.last_failures import OVERHEAD_BYTES, Failure, LastFailures
from logbroker.group.ledger import Ledger
from logbroker.group.ledger_events import KEEPING, Keeping, Moment
from logbroker.group.parked import decide_redrive, decide_resolve
from logbroker.group.record_state import Cause
from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import GroupSettings, Order
from logbroker.group.snapshot import snapshot
from logbroker.limits import LAST_FAILURES_BYTES, REASON_BYTES

ID = LedgerId("g", "t", 0)
COUNT = 8


def failure(reason="why", at_ms=5):
    return Failure(1, 1, at_ms, 0, reason)


def test_the_last_failure_is_the_one_that_counts():
    known = LastFailures()
    known.note([(3, 5)], failure("first"))
    known.note([(4, 6)], failure("second"))
    assert [known.at(at) and known.at(at).reason for at in range(2, 7)] == [
        None,
        "first",
        "second",
        "second",
        None,
    ]
    known.drop_below(4)
    assert known.at(3) is None
    assert known.at(4) == failure("second")


def test_what_is_kept_is_bounded_and_what_failed_longest_ago_goes_first():
    known, reason = LastFailures(), "x" * REASON_BYTES
    most = LAST_FAILURES_BYTES // (REASON_BYTES + OVERHEAD_BYTES)
    for offset in range(most):
        known.note([(offset, offset + 1)], failure(reason))
    known.note([(0, 1)], failure(reason))  # again: it is the newest now
    assert len(known) == most
    known.note([(most, most + 2)], failure(reason))
    assert len(known) == most
    assert known.at(0)
    assert (known.at(1), known.at(2)) == (None, None)
    assert known.at(most + 1)


class Bench:
    """The ledger of a dead-letter topic, and what anyone would note down beside it."""

    def __init__(self, order):
        retry = RetryPolicy(max_failures=2)
        self.settings = GroupSettings(order=order, retry=retry, lease_ms=100)
        self.ledger = self.new()
        self.random, self.now, self.token = Random(1), Moment(1_000, 1_000_000), 0
        self.journal = []
        self.told = dict.fromkeys(range(COUNT), ("", 0))

    def new(self):
        return Ledger(self.settings, is_parked_from_birth=True)

    def apply(self, decided):
        for event in decided:
            if KEEPING[type(event)] is not Keeping.NEVER:
                self.journal.append((encode(InLedger(ID, event)), self.now))
            self.ledger.apply(event, self.now)
        return decided

    def lease(self):
        if wanted := self.ledger.wanted_keys(COUNT):
            self.ledger.learn_keys(wanted[0], [None] * (wanted[1] - wanted[0]))
        self.token += 1
        decided = self.apply(
            self.ledger.decide_lease("m", self.token, self.now, high_watermark=COUNT, max_count=3)
        )
        ranges = decided[0].ranges if decided else ()
        return [at for first, end in ranges for at in range(first, end)]

    def settle(self, at, cause, reason=""):
        self.apply(
            self.ledger.decide_settle(
                self.token, [(at, at + 1)], cause, self.now, self.random, reason=reason, delay_ms=0
            )
        )

    def redrive(self, first, end):
        parked = self.ledger.state.parked.within(first, end)
        self.apply(decide_redrive(self.ledger, [(first, end)]))
        for at in (at for low, high in parked for at in range(low, high)):
            self.told[at] = (self.told[at][0], self.told[at][1] + 1)

    def replayed(self):
        ledger = self.new()
        for data, now in self.journal:
            ledger.apply(decode(data).event, now)
        return ledger

    def restored(self):
        ledger = self.new()
        ledger.apply_all(snapshot(self.ledger.state), self.now)
        return ledger

    def check(self, ledger):
        for at, (reason, redrives) in self.told.items():
            known = ledger.state.last_failures.at(at)
            assert (known.reason if known else "") == reason, at
            assert ledger.state.redrives.at(at) == redrives, at


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("seed", range(5))
def test_reasons_and_redrives_stay_known_through_any_life_and_any_restart(order, seed):
    bench, random = Bench(order), Random(seed)
    for step in range(30):
        if random.random() < 0.4:
            first = random.randrange(COUNT)
            bench.redrive(first, random.randint(first, COUNT))
        for at in bench.lease():
            cause = random.choice([Cause.RETRY, Cause.REJECT, Cause.ACKNOWLEDGE, Cause.RELEASE])
            if at not in bench.ledger.state.leases.get(bench.token).held:
                continue  # taken back
            bench.settle(at, cause, f"reason {step}")
            if cause in (Cause.RETRY, Cause.REJECT):
                bench.told[at] = (f"reason {step}", bench.told[at][1])
            if bench.ledger.state.leases.get(bench.token) is None:
                break
        if random.random() < 0.1:
            bench.apply(decide_resolve(bench.ledger, [(0, 1)]))
        bench.apply(bench.ledger.decide_release("m"))
        for ledger in (bench.ledger, bench.replayed(), bench.restored()):
            bench.check(ledger)
        assert snapshot(bench.replayed().state) == snapshot(bench.ledger.state)


def test_what_was_redriven_and_not_delivered_keeps_its_count_through_a_snapshot():
    bench = Bench(Order.NONE)
    bench.redrive(2, 5)
    ledger = bench.restored()
    assert [ledger.state.redrives.at(at) for at in (1, 2, 4, 5)] == [0, 1, 1, 0]


def test_a_resolved_dead_letter_keeps_what_is_known_of_it_until_retention_removes_it():
    bench = Bench(Order.NONE)
    for _ in range(2):
        bench.redrive(0, 2)
        assert bench.lease() == [0, 1]
        bench.settle(0, Cause.REJECT, "again")
        bench.settle(1, Cause.ACKNOWLEDGE if bench.told[1][1] == 2 else Cause.REJECT, "again")
    bench.apply(decide_resolve(bench.ledger, [(0, 1)]))
    bench.redrive(2, 3)
    bench.lease()  # tidies
    assert bench.ledger.state.committed == 2
    for ledger in (bench.ledger, bench.replayed(), bench.restored()):
        assert [ledger.state.redrives.at(at) for at in (0, 1)] == [2, 2]
        assert ledger.state.last_failures.at(0).reason == "again"
    bench.apply(bench.ledger.decide_trim(1))
    bench.apply(bench.ledger.decide_release("m"))
    bench.lease()
    assert [bench.ledger.state.redrives.at(at) for at in (0, 1)] == [0, 2]
    assert bench.ledger.state.last_failures.at(0) is None


def test_counts_of_resolved_dead_letters_are_bounded(monkeypatch):
    monkeypatch.setattr(ledger_state, "REDRIVE_RUNS", 100)
    ledger = Ledger(GroupSettings(order=Order.NONE), is_parked_from_birth=True)
    now, count = Moment(0, 0), 300
    ledger.apply_all(decide_redrive(ledger, [(at, at + 1) for at in range(0, count, 2)]), now)
    ledger.apply_all(decide_resolve(ledger, [(at, at + 1) for at in range(1, count, 2)]), now)
    for token, most in enumerate((count, 1), 1):
        leased = ledger.decide_lease("m", token, now, high_watermark=count, max_count=most)
        ledger.apply_all(leased, now)
        if token == 1:
            ranges = leased[0].ranges
            done = ledger.decide_settle(1, ranges[:-1], Cause.ACKNOWLEDGE, now, Random(1))
            ledger.apply_all(done, now)
            ledger.apply_all(ledger.decide_release("m"), now)
    assert len(ledger.state.redrives) <= 100 + 1
    assert ledger.state.redrives.at(count - 4) == 1, "the newest are known"
