"""Leases that have ended are remembered for a while, and never too many of them."""

from logbroker.group.group_events import InLedger, LedgerId
from logbroker.group.lease_table import ENDED_LEASES, NOTHING, EndedLeases, Lease, LeaseTable
from logbroker.group.ledger_events import Moment
from logbroker.group.ledgers import Ledgers
from logbroker.group.record_state import Cause

MOST = 3_000
NOW = Moment(1_000, 1_700_000_000_000)


def lease_and_settle(table, tokens):
    for token in tokens:
        table.grant(Lease(token, "a", ((token, token + 1),), 30_000, is_suspect=False))
        table.settle(token, [(token, token + 1)])


def test_of_a_ledger_the_last_ones_are_remembered():
    table = LeaseTable()
    lease_and_settle(table, range(3 * ENDED_LEASES))
    assert table.ended(2 * ENDED_LEASES - 1) is None
    last = [table.ended(2 * ENDED_LEASES), table.ended(3 * ENDED_LEASES - 1)]
    assert all(lease.has_acknowledged(lease.token, lease.token + 1) for lease in last)


def test_what_is_remembered_of_one_is_what_it_was_given_and_has_lost():
    table = LeaseTable()
    table.grant(Lease(1, "a", ((0, 5), (7, 9)), 30_000, is_suspect=False))
    table.settle(1, [(0, 4)])
    table.lose(1, [(4, 5)])
    table.settle(1, [(7, 9)])
    lease = table.ended(1)
    assert table.get(1) is None
    assert lease.held is NOTHING
    assert not NOTHING
    asked = [(0, 4), (7, 9), (0, 5), (4, 5), (5, 6)]
    assert [lease.has_acknowledged(*one) for one in asked] == [True, True, False, False, False]


def test_of_all_ledgers_together_no_more_than_the_limit():
    """There were 1,000 for each: with 100 groups on 100 partitions, up to 3 GB of them."""
    ended = EndedLeases(MOST)
    tables = [LeaseTable(ended) for _ in range(2 * MOST // ENDED_LEASES)]
    for table in tables:
        lease_and_settle(table, range(ENDED_LEASES + 10))
        assert ended.count <= MOST
    assert ended.count == MOST
    kept = [sum(table.ended(token) is not None for token in range(1_010)) for table in tables]
    assert sum(kept) == ended.count
    assert set(kept[: len(kept) // 2]) == {0}
    assert set(kept[len(kept) // 2 :]) == {ENDED_LEASES}


def test_a_busy_ledger_costs_the_others_no_more_than_its_own_share():
    ended = EndedLeases(MOST)
    quiet, busy = LeaseTable(ended), LeaseTable(ended)
    lease_and_settle(quiet, range(5))
    lease_and_settle(busy, range(2 * MOST))
    assert ended.count == ENDED_LEASES + 5
    assert all(quiet.ended(token) for token in range(5))


def test_the_ledgers_of_all_groups_share_one_limit():
    state = Ledgers()
    for group in ("g", "h"):
        ledger_id = LedgerId(group, "topic", 0)
        for event in state.new_ledger(ledger_id).decide_start(0):
            state.apply(InLedger(ledger_id, event), NOW)
        ledger = state.get(ledger_id)
        for event in ledger.decide_lease("a", 1, NOW, high_watermark=9, max_count=9):
            ledger.apply(event, NOW)
        for event in ledger.decide_settle(1, [(0, 9)], Cause.ACKNOWLEDGE, NOW, None):
            ledger.apply(event, NOW)
    assert state.ended_leases.count == 2
