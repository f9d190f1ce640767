"""What a ledger decides, case by case. The machine beside it tries everything else."""

import pytest

from logbroker.errors import ConflictError, InvalidError
from logbroker.group.ledger_events import KEEPING, Acknowledged, Keeping, LedgerEvent
from logbroker.group.settings import Order
from logbroker.group.snapshot import snapshot
from tests.group.ledger_bench import ACK, REJECT, RELEASE, RETRY, Bench


def test_only_what_was_not_acknowledged_comes_again_after_a_restart():
    bench = Bench(11, order=Order.NONE)
    bench.lease()
    for at in (0, 1, 2, 3, 5, 7):
        bench.settle(at, at + 1)
    again = bench.restarted()
    assert again.lease() == ((4, 5), (6, 7), (8, 11))
    assert [run.deliveries for run in again.ledger.delivered_runs(((4, 5), (6, 7)))] == [2, 2]


def test_a_consumer_that_dies_with_a_prefetch_goes_on_behind_its_acknowledgements():
    bench = Bench()
    bench.lease(max_count=5)
    bench.settle(0, 3)
    bench.vanish()
    assert bench.lease("b") == ((3, 4),), "suspects come one by one"
    assert bench.lease("b") == ()
    bench.settle(3, 4, token=2)
    assert bench.lease("b") == ((4, 5),)
    bench.settle(4, 5)
    assert bench.lease("b") == ((5, 10),)


def test_a_late_settlement_changes_nothing_and_the_new_holder_counts():
    bench = Bench(1, lease_ms=2_000)
    bench.lease("a")
    bench.pass_ms(2_000)
    bench.pass_ms(1_000)
    assert bench.lease("b") == ((0, 1),)
    [run] = bench.ledger.delivered_runs([(0, 1)])
    assert (run.deliveries, run.failures) == (2, 1)
    before = snapshot(bench.state)
    for cause in (ACK, RETRY, RELEASE, REJECT):
        with pytest.raises(ConflictError, match="lease 1 does not hold") as raised:
            bench.settle(0, 1, cause, token=1)
        assert raised.value.reason == "LEASE_LOST"
    with pytest.raises(ConflictError, match="lease 1 is over"):
        bench.ledger.decide_extend(1, 1_000, bench.now)
    assert snapshot(bench.state) == before
    assert bench.settle(0, 1) == [Acknowledged(2, ((0, 1),))]


def test_extensions_repeat_and_the_newest_deadline_counts():
    bench = Bench(1, lease_ms=2_000)
    bench.lease()
    for wait_ms, lease_ms in [(1_000, 9_000), (7_000, 9_000)]:
        bench.pass_ms(wait_ms)
        bench.apply(bench.ledger.decide_extend(1, lease_ms, bench.now))
    bench.pass_ms(7_000)
    bench.settle(0, 1)
    assert bench.state.committed == 1


def test_the_same_token_may_acknowledge_twice_and_in_greater_ranges():
    bench = Bench()
    bench.lease()
    bench.settle(0, 4)
    assert bench.settle(0, 4) == []
    assert bench.settle(2, 6) == [Acknowledged(1, ((4, 6),))]
    bench.settle(6, 10)
    assert bench.settle(0, 10) == [], "also when nothing is left of the lease"
    with pytest.raises(ConflictError):
        bench.settle(0, 1, RETRY)


def test_one_partition_goes_to_one_member_at_a_time():
    bench = Bench()
    bench.lease("a", max_count=2)
    assert bench.lease("b") == ()
    assert bench.lease("a", max_count=2) == ((2, 4),)


def test_the_window_bounds_what_is_open_and_settling_moves_it():
    bench = Bench(100, order=Order.NONE, max_unsettled=10)
    assert bench.lease() == ((0, 10),)
    assert bench.ledger.is_window_full
    bench.settle(5, 8)
    assert bench.lease() == ((10, 13),)
    bench.settle(0, 1, RELEASE, token=1)
    assert bench.lease() == ((0, 1),), "what was begun before fits"


def test_trimmed_records_free_their_slots_and_are_counted():
    bench = Bench(100, order=Order.NONE, max_unsettled=10)
    bench.lease(max_count=4)
    bench.settle(1, 3)
    bench.apply(bench.ledger.decide_trim(50))
    assert (bench.state.committed, bench.state.counters.expired_unsettled) == (50, 48)
    assert bench.state.leases.count == 0
    assert bench.ledger.decide_trim(50) == []
    assert bench.lease() == ((50, 60),)


def test_what_an_answer_waits_for_is_a_property_of_the_event():
    bench = Bench()
    decided = bench.ledger.decide_lease("a", 1, bench.now, high_watermark=9, max_count=9)
    settled = bench.apply(decided) and bench.settle(0, 1, token=1)
    released = bench.ledger.decide_release("a")
    keeping = [[KEEPING[type(one)] for one in each] for each in (decided, settled, released)]
    assert keeping == [[Keeping.LATER], [Keeping.FIRST], [Keeping.NEVER]]
    assert set(KEEPING) == set(LedgerEvent.__args__)


@pytest.mark.parametrize("first, end", [(3, 3), (4, 3), (-1, 2)])
def test_a_range_that_is_none_is_refused(first, end):
    bench = Bench()
    bench.lease()
    with pytest.raises(InvalidError):
        bench.settle(first, end)


def test_a_plain_run_costs_the_same_however_long():
    bench = Bench(10_000_000, max_unsettled=1_000_000)
    for _ in range(10):
        [(first, end)] = bench.lease(max_count=1_000_000)
        bench.settle(first, end)
    assert bench.state.committed == 10_000_000
    assert len(bench.state.deliveries) + len(bench.state.taken.edges) < 10
