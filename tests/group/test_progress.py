"""How far a group is, as one value."""

import pytest

from logbroker.group.commits import decide_commit
from logbroker.group.progress import first_unsettled, progress
from logbroker.group.settings import Order
from tests.group.ledger_bench import Bench


@pytest.mark.parametrize(
    "committed, start, end, lag",
    [(100, 1_000, 1_000, 0), (None, 0, 50, 50), (None, 0, 0, 0), (10, 0, 50, 40)],
    ids=["all expired", "no commit", "never written", "plain"],
)
def test_lag_is_never_negative_and_none_is_not_zero(committed, start, end, lag):
    bench = Bench()
    if committed is not None:
        bench.apply(decide_commit(bench.ledger, committed, 10_000))
    told = progress(bench.ledger, start, end)
    assert (told.committed, told.lag) == (committed, lag)
    assert (first_unsettled(bench.ledger, start, end) is None) is (lag == 0)


def test_lag_leaves_out_what_is_settled_above():
    bench = Bench(order=Order.NONE)
    bench.lease()
    bench.settle(3, 6)
    told = progress(bench.ledger, 1, 10)
    assert (told.next_offset, told.lag, told.leased) == (1, 6, 7)
