"""What a ledger decides, case by case. The machine beside it tries everything else."""

from random import Random

import pytest

from logbroker.errors import ConflictError, InvalidError, OffsetOutOfRangeError
from logbroker.group.ledger import Ledger, cut
from logbroker.group.ledger_events import (
    KEEPING,
    Acknowledged,
    Delivered,
    Failed,
    GivenUp,
    Keeping,
    Leased,
    LedgerEvent,
    Moment,
    Released,
)
from logbroker.group.parked import decide_resolve
from logbroker.group.progress import first_unsettled, progress
from logbroker.group.record_state import Cause, State
from logbroker.group.retry_policy import Exhausted, RetryPolicy
from logbroker.group.settings import AfterDeadLetter, GroupSettings, Order, OutOfRange
from logbroker.group.snapshot import snapshot

ACK, RETRY, RELEASE, REJECT = Cause.ACKNOWLEDGE, Cause.RETRY, Cause.RELEASE, Cause.REJECT


class Bench:
    """A ledger, a clock and a log of events."""

    def __init__(self, high_watermark=10, keys=None, **values):
        retry = values.pop("retry", RetryPolicy(max_failures=3))
        self.ledger = Ledger(GroupSettings(retry=retry, **values))
        self.high_watermark = high_watermark
        self.now = Moment(1_000, 1_700_000_000_000)
        self.random = Random(1)
        self.token = 0
        self.log = []
        if keys is not None:
            self.high_watermark = len(keys)
            self.ledger.learn_keys(0, [key.encode() for key in keys])

    @property
    def state(self):
        return self.ledger.state

    def apply(self, events):
        for event in events:
            self.log.append((self.now, event))
            self.ledger.apply(event, self.now)
        return events

    def lease(self, member="a", max_count=100, **values):
        self.token += 1
        decided = self.ledger.decide_lease(
            member,
            self.token,
            self.now,
            high_watermark=self.high_watermark,
            max_count=max_count,
            **values,
        )
        self.apply(decided)
        return decided[0].ranges if decided else ()

    def settle(self, first, end, cause=ACK, token=None, **values):
        token = self.token if token is None else token
        return self.apply(
            self.ledger.decide_settle(token, [(first, end)], cause, self.now, self.random, **values)
        )

    def pass_ms(self, ms):
        self.now = Moment(self.now.mono_ms + ms, self.now.wall_ms + ms)
        self.apply(self.ledger.decide_expire(self.now, self.random))
        return self.apply(self.ledger.decide_due(self.now))

    def vanish(self, member="a"):
        return self.apply(self.ledger.decide_vanish(member, self.now, self.random))

    def restarted(self, *, off_ms=0):
        """Replays what the journal kept on a broker whose monotonic clock begins anew."""
        other = Bench(self.high_watermark)
        other.ledger = Ledger(self.ledger.settings)
        other.now = Moment(5, self.now.wall_ms + off_ms)
        other.token = self.token
        for _, event in self.log:
            if KEEPING[type(event)] is not Keeping.NEVER:
                kept = Delivered(event.ranges) if isinstance(event, Leased) else event
                other.ledger.apply(kept, other.now)
        return other

    def states(self):
        return "".join(self.state.state_of(at).name[0] for at in range(self.high_watermark))


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


def test_one_partition_goes_to_one_member_at_a_time():
    bench = Bench()
    bench.lease("a", max_count=2)
    assert bench.lease("b") == ()
    assert bench.lease("a", max_count=2) == ((2, 4),)


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
    again.apply(again.ledger.decide_release_key(0))
    assert again.lease() == ((1, 2),)
    assert again.ledger.decide_release_key(0) == []


def test_a_commit_over_the_head_of_a_held_key_does_not_free_the_key():
    hold = AfterDeadLetter.HOLD
    bench = Bench(keys="AAA", order=Order.KEY, after_dead_letter=hold)
    bench.lease()
    bench.settle(0, 1, REJECT)
    bench.apply(bench.ledger.decide_commit(2, 3))
    assert (bench.lease(), bench.states()) == ((), "SSA")
    bench.apply(bench.ledger.decide_release_key(0))
    assert bench.lease() == ((2, 3),)


def test_a_blocked_record_is_parked_until_an_operator_moves_it():
    bench = Bench(2, retry=RetryPolicy(max_failures=1, exhausted=Exhausted.BLOCK))
    bench.lease()
    bench.settle(0, 1, RETRY, reason="stuck")
    assert (bench.states(), bench.lease()) == ("PA", ())
    bench.apply(bench.ledger.decide_redrive([(0, 2)]))
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


@pytest.mark.parametrize("offset", [-1, 11, (1 << 63) - 1])
def test_a_commit_out_of_bounds_is_refused_and_changes_nothing(offset):
    bench = Bench()
    with pytest.raises(InvalidError, match="0 to 10") as raised:
        bench.ledger.decide_commit(offset, 10)
    assert raised.value.reason == "INVALID_OFFSET"


def test_a_commit_settles_all_below_and_goes_back_only_by_hand():
    bench = Bench()
    bench.lease()
    bench.apply(bench.ledger.decide_commit(10, 10))
    assert (bench.states(), bench.state.leases.count) == ("SSSSSSSSSS", 0)
    assert bench.ledger.decide_commit(4, 10, is_automatic=True) == []
    bench.apply(bench.ledger.decide_commit(4, 10))
    assert bench.lease() == ((4, 10),)
    assert bench.state.counters.resets == 1


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


def test_a_log_that_lost_its_tail_takes_back_what_is_known_of_that():
    bench = Bench(20, order=Order.NONE)
    bench.lease(max_count=10)
    bench.settle(0, 3)
    bench.settle(8, 9)
    assert bench.ledger.decide_lost_tail(0, 10) == []
    bench.apply(bench.ledger.decide_lost_tail(0, 6))
    assert (bench.state.committed, bench.state.delivered_end) == (3, 3)
    assert bench.state.leases.count == 0
    assert bench.lease(max_count=20) == ((3, 20),)


@pytest.mark.parametrize(
    "policy, expected", [(OutOfRange.EARLIEST, 4), (OutOfRange.LATEST, 6), (OutOfRange.ERROR, None)]
)
def test_a_group_whose_place_is_lost_with_the_tail_goes_on_by_its_policy(policy, expected):
    bench = Bench(20, out_of_range=policy)
    bench.apply(bench.ledger.decide_commit(15, 20))
    if expected is None:
        with pytest.raises(OffsetOutOfRangeError):
            bench.ledger.decide_lost_tail(4, 6)
        return
    bench.apply(bench.ledger.decide_lost_tail(4, 6))
    assert bench.state.committed == expected
    assert bench.state.counters.resets == 1


@pytest.mark.parametrize(
    "committed, start, end, lag",
    [(100, 1_000, 1_000, 0), (None, 0, 50, 50), (None, 0, 0, 0), (10, 0, 50, 40)],
    ids=["all expired", "no commit", "never written", "plain"],
)
def test_lag_is_never_negative_and_none_is_not_zero(committed, start, end, lag):
    bench = Bench()
    if committed is not None:
        bench.apply(bench.ledger.decide_commit(committed, 10_000))
    told = progress(bench.ledger, start, end)
    assert (told.committed, told.lag) == (committed, lag)
    assert (first_unsettled(bench.ledger, start, end) is None) is (lag == 0)


def test_lag_leaves_out_what_is_settled_above():
    bench = Bench(order=Order.NONE)
    bench.lease()
    bench.settle(3, 6)
    told = progress(bench.ledger, 1, 10)
    assert (told.next_offset, told.lag, told.leased) == (1, 6, 7)


def test_what_an_answer_waits_for_is_a_property_of_the_event():
    bench = Bench()
    decided = bench.ledger.decide_lease("a", 1, bench.now, high_watermark=9, max_count=9)
    settled = bench.apply(decided) and bench.settle(0, 1, token=1)
    released = bench.ledger.decide_release("a")
    keeping = [[KEEPING[type(one)] for one in each] for each in (decided, settled, released)]
    assert keeping == [[Keeping.LATER], [Keeping.FIRST], [Keeping.NEVER]]
    assert set(KEEPING) == set(LedgerEvent.__args__)


def test_a_reason_is_cut_between_characters():
    assert cut("é" * 2_000) == "é" * 512
    assert cut("x" * 2_000) == "x" * 1_024
    assert cut("short") == "short"


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
