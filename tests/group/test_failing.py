"""What becomes of records that failed: back-offs, suspects, dead letters, what waits."""

import pytest

from logbroker.group.commits import decide_commit
from logbroker.group.failing import cut
from logbroker.group.ledger_events import Failed, GivenUp, Moment, Released
from logbroker.group.parked import decide_redrive, decide_release_key, decide_resolve
from logbroker.group.record_state import State
from logbroker.group.retry_policy import Exhausted, RetryPolicy
from logbroker.group.settings import AfterDeadLetter, Order
from tests.group.ledger_bench import REJECT, RETRY, Bench


@pytest.mark.parametrize("order", [Order.PARTITION, Order.NONE])
def test_a_suspect_that_cannot_be_read_is_passed_over(order):
    bench = Bench(high_watermark=6, order=order)
    bench.lease(max_count=3)
    bench.vanish()
    assert list(bench.state.suspects) == [0, 1, 2]
    bench.apply(bench.ledger.decide_skip(0, 5))
    assert bench.state.committed == 5
    assert not bench.state.suspects
    assert not bench.state.marks
    assert bench.lease("b") == ((5, 6),)


def test_a_poison_record_burns_its_own_attempts_through_a_broker_restart():
    bench = Bench(1, retry=RetryPolicy(max_failures=5))
    seen = []
    for attempt in range(5):
        bench.lease()
        seen += [run.deliveries for run in bench.ledger.delivered_runs([(0, 1)])]
        events = bench.vanish()
        if attempt == 2:
            log, bench = bench.log, bench.restarted()
            bench.log = log
        bench.pass_ms(60_000)
    assert seen == [1, 2, 3, 4, 5]
    [given_up] = events
    assert isinstance(given_up, GivenUp)
    assert (given_up.failures, given_up.outcome) == (5, Exhausted.DEAD_LETTER)
    assert bench.state.committed == 1


def test_neighbours_of_a_poison_record_keep_their_attempts():
    bench = Bench(4, order=Order.NONE)
    bench.lease()
    bench.vanish()
    assert bench.states() == "SSSS"
    assert bench.lease("b") == ((0, 1),)
    assert bench.lease("b") == (), "nothing beside a suspect"
    assert bench.lease("c", held_elsewhere=1) == (), "and it beside nothing"
    assert bench.lease("c") == ((1, 2),)
    token, bench.token = bench.token, 2
    bench.settle(0, 1)
    bench.token = token
    bench.vanish("c")
    assert [bench.ledger.failures_of(at) for at in range(4)] == [0, 1, 0, 0]
    bench.pass_ms(60_000)
    assert bench.states() == "SSSS", "settled, and three suspects"
    assert bench.state.suspects.ranges() == [(1, 4)]


def test_while_a_suspect_may_be_leased_members_with_records_get_no_more():
    bench = Bench(6, order=Order.NONE)
    bench.lease("b", max_count=2)
    bench.lease("a", max_count=2)
    bench.vanish("a")
    assert bench.lease("b") == ()
    bench.settle(0, 2, token=1)
    assert bench.lease("b") == ((2, 3),)
    assert bench.lease("c") == ((3, 4),)
    assert bench.lease("d") == ((4, 6),), "every suspect is on its way"


def test_in_partition_order_a_retry_takes_back_what_was_prefetched_behind():
    bench = Bench()
    bench.lease(max_count=4)
    bench.lease(max_count=4)
    events = bench.settle(1, 2, RETRY, token=1, reason="no")
    assert isinstance(events[0], Failed)
    assert events[1:] == [Released(1, ((2, 4),)), Released(2, ((4, 8),))]
    assert bench.states() == "LWAAAAAAAA"
    assert bench.lease() == (), "nothing overtakes"
    bench.settle(0, 1, token=1)
    bench.pass_ms(1_001)
    assert bench.lease() == ((1, 10),)
    runs = bench.ledger.delivered_runs([(1, 10)])
    assert [(run.first, run.deliveries, run.failures) for run in runs] == [
        (1, 2, 1), (2, 2, 0), (8, 1, 0),
    ]  # fmt: skip


def test_in_partition_order_an_expired_lease_fails_its_first_record_and_frees_the_rest():
    bench = Bench(lease_ms=100, retry=RetryPolicy(max_failures=1))
    bench.lease(max_count=4)
    bench.pass_ms(100)
    assert bench.states() == "SAAAAAAAAA"
    assert bench.state.counters.dead_letters == 1
    assert bench.lease("b") == ((1, 10),)


def test_in_key_order_a_failed_record_holds_its_key_and_no_other():
    bench = Bench(keys="ABABABABAB", order=Order.KEY)
    assert bench.lease(max_count=9) == ((0, 2),)
    bench.settle(0, 1, RETRY)
    assert bench.lease("b") == (), "B is in flight, A waits"
    bench.settle(1, 2, token=1)
    assert bench.lease("b") == ((3, 4),)
    bench.pass_ms(1_001)
    assert bench.lease("a") == ((0, 1),)
    order = []
    for at in (0, 2, 4, 6, 8):
        bench.settle(at, at + 1)
        order += bench.lease("a")
    assert order == [(2, 3), (4, 5), (6, 7), (8, 9)]


@pytest.mark.parametrize("is_expired", [False, True], ids=["retried", "expired"])
def test_a_dead_letter_does_not_block_its_key(is_expired):
    bench = Bench(keys="AAB", order=Order.KEY, lease_ms=100)
    for _ in range(3):
        assert (0, 1) in bench.lease(max_count=1)
        if is_expired:
            bench.pass_ms(100)
        else:
            bench.settle(0, 1, RETRY)
        bench.pass_ms(60_000)
    assert bench.state.state_of(0) is State.SETTLED
    assert bench.lease() == ((1, 3),)


def test_a_held_key_waits_for_the_operator_and_outlives_a_restart():
    values = {"order": Order.KEY, "after_dead_letter": AfterDeadLetter.HOLD}
    bench = Bench(keys="AAB", **values)
    bench.lease(max_count=1)
    [given_up] = bench.settle(0, 1, REJECT, reason="bad")
    assert (given_up.key, given_up.failures, given_up.holds) == (b"A", 0, True)
    assert bench.lease() == ((2, 3),)
    again = bench.restarted()
    again.ledger.learn_keys(1, [b"A", b"B"])
    assert again.lease() == ((2, 3),)
    again.apply(decide_release_key(again.ledger, 0))
    assert again.lease() == ((1, 2),)
    assert decide_release_key(again.ledger, 0) == []


def test_a_commit_over_the_head_of_a_held_key_does_not_free_the_key():
    hold = AfterDeadLetter.HOLD
    bench = Bench(keys="AAA", order=Order.KEY, after_dead_letter=hold)
    bench.lease()
    bench.settle(0, 1, REJECT)
    bench.apply(decide_commit(bench.ledger, 2, 3))
    assert (bench.lease(), bench.states()) == ((), "SSA")
    bench.apply(decide_release_key(bench.ledger, 0))
    assert bench.lease() == ((2, 3),)


def test_a_blocked_record_is_parked_until_an_operator_moves_it():
    bench = Bench(2, retry=RetryPolicy(max_failures=1, exhausted=Exhausted.BLOCK))
    bench.lease()
    bench.settle(0, 1, RETRY, reason="stuck")
    assert (bench.states(), bench.lease()) == ("PA", ())
    bench.apply(decide_redrive(bench.ledger, [(0, 2)]))
    assert bench.lease() == ((0, 2),)
    [first, second] = bench.ledger.delivered_runs([(0, 2)])
    assert (first.failures, first.redrives, second.redrives) == (0, 1, 0)
    bench.settle(0, 1, RETRY)
    bench.apply(decide_resolve(bench.ledger, [(0, 2)]))
    assert (bench.states(), bench.state.counters.discarded) == ("SA", 1)


def test_a_back_off_goes_on_where_it_was_after_a_restart():
    bench = Bench(1)
    bench.lease()
    bench.settle(0, 1, RETRY, delay_ms=10_000)
    bench.pass_ms(4_000)
    assert bench.restarted().ledger.next_deadline_ms() == 5 + 6_000 + 5  # the tick
    assert bench.restarted(off_ms=60_000).states() == "A"
    back = bench.restarted(off_ms=-3_600_000)
    assert back.ledger.next_deadline_ms() == 5 + 10_000 + 5, "never longer than it was"


def test_a_reason_is_cut_between_characters():
    assert cut("é" * 2_000) == "é" * 512
    assert cut("x" * 2_000) == "x" * 1_024
    assert cut("short") == "short"


def test_what_comes_due_between_a_decision_and_its_application_is_not_lost():
    bench = Bench(2, order=Order.NONE)
    bench.lease(max_count=1)
    bench.settle(0, 1, RETRY, delay_ms=100)
    bench.lease(max_count=1)
    bench.settle(1, 2, RETRY, delay_ms=120)
    bench.now = Moment(bench.now.mono_ms + 100, bench.now.wall_ms + 100)
    decided = bench.ledger.decide_due(bench.now)
    bench.now = Moment(bench.now.mono_ms + 50, bench.now.wall_ms + 50)
    bench.apply(decided)
    assert bench.lease() == ((0, 2),)
