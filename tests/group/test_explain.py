"""Why a record is not delivered, for each reason there is."""

import pytest

from logbroker.group.explain import Why, explain
from logbroker.group.record_state import Cause
from logbroker.group.retry_policy import Exhausted, RetryPolicy
from logbroker.group.settings import AfterDeadLetter, Order
from tests.group.test_ledger import Bench

BLOCK = RetryPolicy(max_failures=1, exhausted=Exhausted.BLOCK)


def why(bench, offset, log_start_offset=0):
    bounds = {"log_start_offset": log_start_offset, "high_watermark": bench.high_watermark}
    return explain(bench.ledger, offset, bench.now, **bounds)


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
