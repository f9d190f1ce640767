"""In `key` order, damage where keys are to be learned: it is passed over, whatever lies there."""

from random import Random

import pytest

from logbroker.group.ledger import Ledger
from logbroker.group.ledger_events import KEEPING, Delivered, Keeping, Leased, Moment
from logbroker.group.parked import decide_redrive
from logbroker.group.record_state import Cause, State
from logbroker.group.retry_policy import Exhausted, RetryPolicy
from logbroker.group.settings import GroupSettings, Order

KEYS = [b"a", b"b", b"c", b"d", b"e", b"b"]
DAMAGE = range(1, 4)
SETTINGS = GroupSettings(
    order=Order.KEY, retry=RetryPolicy(max_failures=3, exhausted=Exhausted.BLOCK)
)


class Reading:
    """A ledger whose log is damaged from some moment on, and who reads it."""

    def __init__(self, *, is_parked_from_birth=False):
        self.ledger = Ledger(SETTINGS, is_parked_from_birth=is_parked_from_birth)
        self.now = Moment(1_000, 1_000_000)
        self.token = 0
        self.damage = range(0)
        self.log = []

    def apply(self, events):
        for event in events:
            self.log.append(event)
            self.ledger.apply(event, self.now)

    def learn(self):
        """Gives the ledger the keys it wants, or passes over what is damaged."""
        for _ in KEYS * 2:
            wanted = self.ledger.wanted_keys(len(KEYS))
            if wanted is None:
                return
            first, end = wanted
            if first in self.damage:
                self.apply(self.ledger.decide_skip(first, self.damage.stop))
                self.ledger.pass_over_keys(self.damage.stop)
            else:
                known = min(end, self.damage.start) if first < self.damage.start else end
                self.ledger.learn_keys(first, KEYS[first:known])
        pytest.fail("keys are asked for again and again")

    def lease(self, member="m", count=100):
        self.learn()
        self.token += 1
        decided = self.ledger.decide_lease(
            member, self.token, self.now, high_watermark=len(KEYS), max_count=count
        )
        self.apply(decided)
        return decided[0].ranges if decided else ()

    def settle(self, cause, *offsets):
        ranges = [(at, at + 1) for at in offsets]
        settle = self.ledger.decide_settle
        self.apply(settle(self.token, ranges, cause, self.now, Random(1), delay_ms=50))

    def vanish(self, member):
        self.apply(self.ledger.decide_vanish(member, self.now, Random(1)))

    def restart_on_damage(self):
        """Goes on where the journal says, without a key, and with less of the log."""
        self.damage = DAMAGE
        self.ledger = Ledger(SETTINGS)
        for event in self.log:
            if KEEPING[type(event)] is not Keeping.NEVER:
                kept = Delivered(event.ranges) if isinstance(event, Leased) else event
                self.ledger.apply(kept, self.now)

    def pass_ms(self, ms):
        self.now = Moment(self.now.mono_ms + ms, self.now.wall_ms + ms)
        self.apply(self.ledger.decide_due(self.now))


def settled(reading, at):
    reading.lease()
    reading.settle(Cause.ACKNOWLEDGE, at)


def waiting(reading, at):
    reading.lease()
    reading.settle(Cause.RETRY, at)


def parked(reading, at):
    reading.lease()
    reading.settle(Cause.REJECT, at)


def suspect(reading, at):
    for _ in range(at):
        reading.lease("first", 1)
    reading.lease("second", 2)
    reading.vanish("second")


def suspect_that_waits(reading, at):
    for _ in range(at):
        reading.lease("first", 1)
    reading.lease("second", 1)
    reading.vanish("second")


WHAT = [settled, waiting, parked, suspect, suspect_that_waits]


@pytest.mark.parametrize("at", DAMAGE)
@pytest.mark.parametrize("become", WHAT)
def test_damaged_records_are_passed_over_and_in_nobodys_way(become, at):
    reading = Reading()
    become(reading, at)
    reading.restart_on_damage()
    reading.learn()
    reading.pass_ms(60_000)
    reading.apply(decide_redrive(reading.ledger, [(0, len(KEYS))]))
    reading.learn()
    state = reading.ledger.state
    assert {state.state_of(at) for at in DAMAGE} == {State.SETTLED}
    while ranges := reading.lease():
        reading.settle(Cause.ACKNOWLEDGE, *(at for run in ranges for at in range(*run)))
    assert state.committed == len(KEYS)


def test_what_comes_behind_does_not_wait_for_a_damaged_record_of_its_key():
    reading = Reading()
    waiting(reading, 1)
    reading.restart_on_damage()
    assert reading.lease() == ((0, 1), (4, 6))
    assert reading.ledger.state.state_of(1) is State.WAITING


def test_a_damaged_dead_letter_that_is_redriven_is_passed_over_wherever_it_lies():
    for at in DAMAGE:
        reading = Reading(is_parked_from_birth=True)
        reading.damage = DAMAGE
        reading.apply(decide_redrive(reading.ledger, [(at, at + 1)]))
        assert reading.lease() == ()
        reading.apply(decide_redrive(reading.ledger, [(0, len(KEYS))]))
        assert reading.lease() == ((0, 1), (4, 6))
        assert {reading.ledger.state.state_of(at) for at in DAMAGE} == {State.SETTLED}
