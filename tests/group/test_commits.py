"""Where a commit puts a group, and where a log that lost its tail does."""

import pytest

from logbroker.errors import InvalidError, OffsetOutOfRangeError
from logbroker.group.commits import decide_commit, decide_lost_tail
from logbroker.group.settings import Order, OutOfRange
from tests.group.ledger_bench import Bench


@pytest.mark.parametrize("offset", [-1, 11, (1 << 63) - 1])
def test_a_commit_out_of_bounds_is_refused_and_changes_nothing(offset):
    bench = Bench()
    with pytest.raises(InvalidError, match="0 to 10") as raised:
        decide_commit(bench.ledger, offset, 10)
    assert raised.value.reason == "INVALID_OFFSET"


def test_a_commit_settles_all_below_and_goes_back_only_by_hand():
    bench = Bench()
    bench.lease()
    bench.apply(decide_commit(bench.ledger, 10, 10))
    assert (bench.states(), bench.state.leases.count) == ("SSSSSSSSSS", 0)
    assert decide_commit(bench.ledger, 4, 10, is_automatic=True) == []
    bench.apply(decide_commit(bench.ledger, 4, 10))
    assert bench.lease() == ((4, 10),)
    assert bench.state.counters.resets == 1


def test_a_log_that_lost_its_tail_takes_back_what_is_known_of_that():
    bench = Bench(20, order=Order.NONE)
    bench.lease(max_count=10)
    bench.settle(0, 3)
    bench.settle(8, 9)
    assert decide_lost_tail(bench.ledger, 0, 10) == []
    bench.apply(decide_lost_tail(bench.ledger, 0, 6))
    assert (bench.state.committed, bench.state.delivered_end) == (3, 3)
    assert bench.state.leases.count == 0
    assert bench.lease(max_count=20) == ((3, 20),)


@pytest.mark.parametrize(
    "policy, expected", [(OutOfRange.EARLIEST, 4), (OutOfRange.LATEST, 6), (OutOfRange.ERROR, None)]
)
def test_a_group_whose_place_is_lost_with_the_tail_goes_on_by_its_policy(policy, expected):
    bench = Bench(20, out_of_range=policy)
    bench.apply(decide_commit(bench.ledger, 15, 20))
    if expected is None:
        with pytest.raises(OffsetOutOfRangeError):
            decide_lost_tail(bench.ledger, 4, 6)
        return
    bench.apply(decide_lost_tail(bench.ledger, 4, 6))
    assert bench.state.committed == expected
    assert bench.state.counters.resets == 1
