"""Why a record is not delivered, for each reason there is."""

from random import Random

import pytest

from logbroker.group.explain import Why, explain
from logbroker.group.ledger import Ledger
from logbroker.group.ledger_events import Moment
from logbroker.group.parked import decide_redrive
from logbroker.group.record_state import Cause
from logbroker.group.retry_policy import Exhausted, RetryPolicy
from logbroker.group.settings import AfterDeadLetter, GroupSettings, Order
from tests.group.ledger_bench import Bench

BLOCK = RetryPolicy(max_failures=1, exhausted=Exhausted.BLOCK)


def why(bench, offset, log_start_offset=0, has_members=True):
    bounds = {"log_start_offset": log_start_offset, "high_watermark": bench.high_watermark}
    return explain(bench.ledger, offset, bench.now, **bounds, has_members=has_members)


def test_outside_the_log():
    bench = Bench()
    assert why(bench, 2, log_start_offset=3).why is Why.BELOW_START
    assert why(bench, 10).why is Why.BEYOND_END


def test_settled_and_leased():
    bench = Bench()
    bench.lease("worker-1", max_count=4)
    bench.settle(0, 1)
    bench.pass_ms(1_000)
    assert why(bench, 0).why is Why.SETTLED
    told = why(bench, 2)
    assert (told.why, told.member, told.token, told.left_ms) == (Why.LEASED, "worker-1", 1, 29_000)
    told = why(bench, 7)
    assert told.why is Why.AVAILABLE


def test_waiting_and_behind_it():
    bench = Bench()
    bench.lease(max_count=4)
    bench.settle(1, 2, Cause.RETRY, reason="no", delay_ms=5_000)
    told = why(bench, 1)
    assert (told.why, told.left_ms, told.failures, told.reason) == (Why.WAITING, 5_000, 1, "no")
    told = why(bench, 6)
    assert (told.why, told.behind_offset, told.behind_why) == (Why.BEHIND_RECORD, 1, Why.WAITING)


def test_parked_and_behind_it():
    bench = Bench(retry=BLOCK)
    bench.lease()
    bench.settle(0, 1, Cause.RETRY)
    assert why(bench, 0).why is Why.PARKED
    assert why(bench, 3).behind_why is Why.PARKED


def test_suspects_wait_for_a_free_member():
    bench = Bench()
    bench.lease(max_count=2)
    bench.vanish()
    assert why(bench, 0).why is Why.SUSPECT
    assert (why(bench, 1).why, why(bench, 1).behind_offset) == (Why.BEHIND_RECORD, 0)


def test_behind_a_key_and_held_by_a_dead_letter():
    bench = Bench(keys="AAB", order=Order.KEY, after_dead_letter=AfterDeadLetter.HOLD)
    bench.lease(max_count=1)
    told = why(bench, 1)
    assert (told.why, told.behind_offset, told.behind_why) == (Why.BEHIND_KEY, 0, Why.LEASED)
    bench.settle(0, 1, Cause.REJECT)
    assert (why(bench, 1).why, why(bench, 1).behind_offset) == (Why.HELD, 0)
    assert why(bench, 2).why is Why.AVAILABLE


@pytest.mark.parametrize("order", [Order.PARTITION, Order.NONE])
def test_a_full_window(order):
    bench = Bench(order=order, max_unsettled=3)
    bench.lease()
    assert why(bench, 5).why is Why.WINDOW_FULL


def test_a_key_that_was_not_read():
    bench = Bench(keys="AB", order=Order.KEY, max_unsettled=2)
    bench.high_watermark = 5
    assert why(bench, 4).why is Why.WINDOW_FULL
    bench.lease()
    bench.settle(0, 1)
    assert why(bench, 4).why is Why.KEY_UNKNOWN


@pytest.mark.parametrize("order", list(Order))
def test_without_members_what_could_go_says_that_nobody_is_there(order):
    bench = Bench(keys="AAB", order=order)
    assert why(bench, 0, has_members=False).why is Why.NO_MEMBER, "also where no key is known"
    bench.lease(max_count=1)
    bench.settle(0, 1, Cause.RETRY, delay_ms=5_000)
    assert why(bench, 0, has_members=False).why is Why.WAITING
    bench.pass_ms(5_000)
    assert why(bench, 0, has_members=False).why is Why.NO_MEMBER
    if order is Order.KEY:
        told = why(bench, 1, has_members=False)
        assert (told.why, told.behind_why) == (Why.BEHIND_KEY, Why.NO_MEMBER)


def test_without_members_a_suspect_waits_for_one_too():
    bench = Bench()
    bench.lease(max_count=2)
    bench.vanish()
    assert why(bench, 0, has_members=False).why is Why.NO_MEMBER
    assert why(bench, 1, has_members=False).behind_why is Why.NO_MEMBER


def test_a_parked_dead_letter_tells_why_it_failed_last():
    settings = GroupSettings(retry=RetryPolicy(max_failures=1))
    ledger, now = Ledger(settings, is_parked_from_birth=True), Moment(0, 0)
    ledger.apply_all(decide_redrive(ledger, [(0, 1)]), now)
    bounds = {"log_start_offset": 0, "high_watermark": 1}
    ledger.apply_all(ledger.decide_lease("m", 1, now, high_watermark=1, max_count=1), now)
    failed = ledger.decide_settle(1, [(0, 1)], Cause.RETRY, now, Random(1), reason="again")
    ledger.apply_all(failed, now)
    told = explain(ledger, 0, now, **bounds)
    assert (told.why, told.reason, told.failures, told.redrives) == (Why.PARKED, "again", 1, 1)
