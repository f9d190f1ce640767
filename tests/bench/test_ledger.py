"""`bench/ledger.py` in a tiny form. What it measures here means nothing."""

import sys

import pytest

from bench import ledger
from bench.ledger import FAILING, Run
from logbroker.group.settings import Order

RECORDS = 600
TAKEN_BACK = Order.PARTITION, True
"""Not measured: in partition order a failure takes back what is leased behind it."""


@pytest.mark.parametrize(
    ("order", "has_failures"),
    [(order, fails) for order in Order for fails in (False, True) if (order, fails) != TAKEN_BACK],
)
def test_all_records_are_settled_and_every_twentieth_has_failed_once_if_asked_for(
    order: Order, has_failures: bool
) -> None:
    run = Run([b"N%d" % (at % 40) for at in range(RECORDS)], order, has_failures=has_failures)
    run.to_end()
    state = run.ledger.state
    assert (state.committed, state.leases.count) == (RECORDS, 0)
    assert state.counters.failures == (RECORDS // FAILING if has_failures else 0)
    assert 0 < run.lease_count <= RECORDS
    assert run.journal_bytes > 0


def test_it_prints_a_line_for_each_order_with_and_without_failures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench.ledger", "--records", str(RECORDS)])
    ledger.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["partition", "key", "key", "none", "none"]
    assert all("us a record" in line for line in lines)
