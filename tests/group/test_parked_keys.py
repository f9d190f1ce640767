"""Dead letters in `key` order: what is parked is not in the way of others of its key."""

from random import Random

from logbroker.group.ledger import Ledger
from logbroker.group.ledger_events import Moment
from logbroker.group.parked import decide_redrive
from logbroker.group.record_state import Cause
from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import GroupSettings, Order
from logbroker.group.snapshot import snapshot

NOW = Moment(1_000, 1_000_000)
KEYS = [b"a", b"a", b"a", b"b", b"a", None, None]


def new_ledger(max_unsettled=100):
    settings = GroupSettings(
        order=Order.KEY, retry=RetryPolicy(max_failures=1), max_unsettled=max_unsettled
    )
    return Ledger(settings, is_parked_from_birth=True)


def redrive(ledger, *ranges):
    ledger.apply_all(decide_redrive(ledger, ranges), NOW)


def learn(ledger):
    """Gives the ledger the keys it wants, and returns where it wanted them."""
    wanted = []
    while run := ledger.wanted_keys(len(KEYS)):
        wanted.append(run)
        ledger.learn_keys(run[0], KEYS[slice(*run)])
    return wanted


def lease(ledger, token):
    learn(ledger)
    decided = ledger.decide_lease("m", token, NOW, high_watermark=len(KEYS), max_count=100)
    ledger.apply_all(decided, NOW)
    return decided[0].ranges if decided else ()


def settle(ledger, token, offset, cause):
    ranges = [(offset, offset + 1)]
    ledger.apply_all(ledger.decide_settle(token, ranges, cause, NOW, Random(1)), NOW)


def test_a_redriven_one_does_not_wait_for_a_parked_one_of_its_key():
    ledger = new_ledger()
    redrive(ledger, (1, 2))
    assert lease(ledger, 1) == ((1, 2),)
    settle(ledger, 1, 1, Cause.ACKNOWLEDGE)
    assert ledger.state.committed == 0


def test_redriven_ones_of_a_key_come_one_after_another_whether_parked_again_or_resolved():
    ledger = new_ledger()
    redrive(ledger, (0, 5))
    assert lease(ledger, 1) == ((0, 1), (3, 4))
    settle(ledger, 1, 0, Cause.REJECT)
    assert lease(ledger, 2) == ((1, 2),)
    settle(ledger, 2, 1, Cause.ACKNOWLEDGE)
    assert lease(ledger, 3) == ((2, 3),)


def test_one_that_is_redriven_later_waits_for_one_of_its_key_that_is_under_way():
    ledger = new_ledger()
    redrive(ledger, (4, 6))
    assert lease(ledger, 1) == ((4, 6),)
    redrive(ledger, (0, 1), (6, 7))
    assert lease(ledger, 2) == ((6, 7),)
    settle(ledger, 1, 4, Cause.REJECT)
    assert lease(ledger, 3) == ((0, 1),)


def test_only_keys_of_what_is_redriven_are_asked_for_and_each_once():
    ledger = new_ledger()
    assert learn(ledger) == []
    redrive(ledger, (1, 2), (5, 6))
    assert learn(ledger) == [(1, 2), (5, 6)]
    redrive(ledger, (3, 4), (6, 7))
    assert learn(ledger) == [(3, 4), (6, 7)]
    assert lease(ledger, 1) == ((1, 2), (3, 4), (5, 7))


def test_more_parked_ones_than_may_be_unsettled_are_not_in_the_way():
    ledger = new_ledger(max_unsettled=2)
    redrive(ledger, (5, 7))
    assert lease(ledger, 1) == ((5, 7),)


def test_what_is_given_up_before_its_key_is_known_is_not_asked_for():
    ledger = new_ledger()
    redrive(ledger, (5, 6))
    learn(ledger)
    redrive(ledger, (1, 3))
    ledger.apply_all(ledger.decide_trim(2), NOW)
    assert learn(ledger) == [(2, 3)]


def test_after_a_restart_the_same_may_be_leased():
    ledger = new_ledger()
    redrive(ledger, (1, 6))
    lease(ledger, 1)
    settle(ledger, 1, 1, Cause.REJECT)
    fresh = new_ledger()
    fresh.apply_all(snapshot(ledger.state), NOW)
    assert lease(fresh, 2) == ((2, 4), (5, 6))
