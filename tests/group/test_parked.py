"""Dead letters of a group: parked, redriven, resolved, parked again; and the jobs that do it."""

from random import Random

import pytest

from logbroker.errors import ConflictError, InvalidError, NotFoundError
from logbroker.group import redrive
from logbroker.group.ledger import Ledger
from logbroker.group.ledger_events import Moment
from logbroker.group.parked import (
    decide_redrive,
    decide_redrive_step,
    decide_resolve,
    parked_counts,
)
from logbroker.group.record_state import Cause, State
from logbroker.group.redrive import DeadLetterFacts, Redrives, RedriveState, Selection
from logbroker.group.retry_policy import Exhausted, RetryPolicy
from logbroker.group.settings import GroupSettings, Order
from logbroker.group.snapshot import snapshot

NOW = Moment(1_000, 1_000_000)
FACTS = [DeadLetterFacts(at, b"k%d" % (at % 3), 100 + at, f"reason {at % 2}") for at in range(10)]


def new_ledger(order=Order.PARTITION):
    settings = GroupSettings(order=order, retry=RetryPolicy(max_failures=1))
    return Ledger(settings, is_parked_from_birth=True)


def lease(ledger, token, max_count=100):
    decided = ledger.decide_lease("a", token, NOW, high_watermark=10, max_count=max_count)
    ledger.apply_all(decided, NOW)
    return decided[0].ranges if decided else ()


def settle(ledger, token, first, end, cause):
    ledger.apply_all(ledger.decide_settle(token, [(first, end)], cause, NOW, Random(1)), NOW)


def started(selection, ends, **values):
    redrives = Redrives()
    for event in redrives.decide_start("r", "g", "dlq", selection, ends, now_ms=1, **values):
        redrives.apply(event)
    return redrives


def run(ledger, redrives, max_count=2, meant=None):
    while walk := redrives.get("r").next_walk():
        job = redrives.get("r")
        count = min(max_count, job.budget(0, 0))
        step = decide_redrive_step(ledger, job, walk, max_count=count, meant=meant, meant_end=10)
        ledger.apply_all(step.events, NOW)
        for event in redrives.decide_advance("r", walk.partition, step.next_offset, step.redriven):
            redrives.apply(event)
    for event in redrives.decide_end("r", 2):
        redrives.apply(event)
    return redrives.get("r")


@pytest.mark.parametrize("order", [Order.PARTITION, Order.NONE])
def test_a_dead_letter_is_parked_redriven_and_resolved_or_parked_again(order):
    ledger = new_ledger(order)
    assert lease(ledger, 1) == ()
    assert parked_counts(ledger, 0, 10) == (10, 0, 0)
    ledger.apply_all(decide_redrive(ledger, [(2, 4), (6, 7)]), NOW)
    assert parked_counts(ledger, 0, 10) == (7, 3, 0)
    assert lease(ledger, 1) == ((2, 4), (6, 7))
    [first, _] = ledger.delivered_runs(((2, 4), (6, 7)))
    assert (first.deliveries, first.failures, first.redrives) == (1, 0, 1)
    settle(ledger, 1, 2, 3, Cause.ACKNOWLEDGE)
    settle(ledger, 1, 6, 7, Cause.ACKNOWLEDGE)
    settle(ledger, 1, 3, 4, Cause.REJECT)
    assert parked_counts(ledger, 0, 10) == (8, 0, 2)
    ledger.apply_all(decide_redrive(ledger, [(0, 10)]), NOW)
    assert [run[2:] for run in ledger.delivered_runs([(3, 4)])] == [(1, 0, 2)]
    fresh = new_ledger(order)
    fresh.apply_all(snapshot(ledger.state), NOW)
    assert snapshot(fresh.state) == snapshot(ledger.state)


def test_what_waits_or_is_suspect_does_not_stop_for_the_parked_before_it():
    ledger = new_ledger()
    ledger.apply_all(decide_redrive(ledger, [(5, 7)]), NOW)
    lease(ledger, 1)
    ledger.apply_all(ledger.decide_vanish("a", NOW, Random(1)), NOW)
    assert lease(ledger, 2) == ((5, 6),)
    settle(ledger, 2, 5, 6, Cause.ACKNOWLEDGE)
    assert lease(ledger, 3) == ((6, 7),)


@pytest.mark.parametrize("order", [Order.PARTITION, Order.NONE])
def test_an_operator_gives_up_all_that_no_member_holds(order):
    ledger = Ledger(
        GroupSettings(order=order, retry=RetryPolicy(max_failures=2)), is_parked_from_birth=True
    )
    ledger.apply_all(decide_redrive(ledger, [(1, 6)]), NOW)
    assert lease(ledger, 1, max_count=2) == ((1, 3),)
    settle(ledger, 1, 2, 3, Cause.RETRY)
    assert ledger.state.state_of(2) is State.WAITING
    ledger.apply_all(decide_resolve(ledger, [(0, 4), (5, 7)]), NOW)
    assert ledger.state.waiting.offsets.count == 0
    states = [ledger.state.state_of(at) for at in range(8)]
    done, free, held, parked = State.SETTLED, State.AVAILABLE, State.LEASED, State.PARKED
    assert states == [done, held, done, done, free, done, done, parked]
    settle(ledger, 1, 1, 2, Cause.ACKNOWLEDGE)
    assert lease(ledger, 2) == ((4, 5),)
    assert decide_resolve(ledger, [(0, 4)]) == []
    with pytest.raises(InvalidError):
        decide_resolve(ledger, [(3, 3)])


def test_of_what_is_blocked_an_operator_gives_up_nothing_else():
    retry = RetryPolicy(max_failures=1, exhausted=Exhausted.BLOCK)
    ledger = Ledger(GroupSettings(order=Order.NONE, retry=retry))
    lease(ledger, 1)
    settle(ledger, 1, 3, 5, Cause.REJECT)
    settle(ledger, 1, 0, 1, Cause.RELEASE)
    ledger.apply_all(decide_resolve(ledger, [(0, 4)]), NOW)
    states = [ledger.state.state_of(at) for at in range(5)]
    assert states == [State.AVAILABLE, State.LEASED, State.LEASED, State.SETTLED, State.PARKED]


def test_retention_removes_resolved_and_parked_ones_and_counts_neither():
    ledger = new_ledger()
    ledger.apply_all(decide_redrive(ledger, [(1, 2)]), NOW)
    ledger.apply_all(ledger.decide_trim(4), NOW)
    assert parked_counts(ledger, 4, 10) == (6, 0, 0)
    assert ledger.state.counters.expired_unsettled == 1, "the one that was on its way"


@pytest.mark.parametrize(
    "selection, expected",
    [
        (Selection(), set(range(10))),
        (Selection(first_offset=2, end_offset=5), {2, 3, 4}),
        (Selection(limit=3), {0, 1, 2}),
        (Selection(key=b"k1"), {1, 4, 7}),
        (Selection(reason="n 1", limit=2), {1, 3}),
        (Selection(from_time_ms=103, until_time_ms=105), {3, 4}),
        (Selection(partition=1), set()),
    ],
    ids=str,
)
def test_a_redrive_takes_exactly_what_is_selected(selection, expected):
    ledger = new_ledger()
    meant = [one.offset for one in FACTS if selection.means(one)]
    done = run(
        ledger, started(selection, {0: 10}), meant=meant if selection.needs_records else None
    )
    found = {at for first, end in lease(ledger, 1) for at in range(first, end)}
    assert found == expected
    assert (done.redriven, done.state, done.share) == (len(expected), RedriveState.DONE, 1.0)


def test_what_fails_again_meanwhile_is_not_taken_up_again():
    ledger, redrives = new_ledger(), started(Selection(), {0: 10})
    walk = redrives.get("r").next_walk()
    step = decide_redrive_step(ledger, redrives.get("r"), walk, max_count=4)
    ledger.apply_all(step.events, NOW)
    redrives.apply(*redrives.decide_advance("r", 0, step.next_offset, step.redriven))
    lease(ledger, 1)
    settle(ledger, 1, 0, 4, Cause.REJECT)
    assert redrives.get("r").share == 0.4
    assert run(ledger, redrives).redriven == 10
    assert parked_counts(ledger, 0, 10) == (4, 6, 0)


def test_a_second_redrive_over_the_same_records_is_refused_while_the_first_runs():
    redrives = started(Selection(end_offset=5), {0: 10})
    start = redrives.decide_start
    with pytest.raises(ConflictError) as raised:
        start("s", "g", "dlq", Selection(first_offset=4), {0: 10}, now_ms=1)
    assert raised.value.reason == "REDRIVE_RUNNING"
    start("s", "g", "dlq", Selection(), {0: 10}, now_ms=1, is_dry_run=True)
    start("s", "g", "dlq", Selection(first_offset=5), {0: 10}, now_ms=1)
    start("s", "other", "dlq", Selection(), {0: 10}, now_ms=1)
    redrives.apply(*redrives.decide_end("r", 5, is_cancelled=True))
    assert redrives.get("r").state is RedriveState.CANCELLED
    assert redrives.decide_end("r", 6) == []
    start("s", "g", "dlq", Selection(), {0: 10}, now_ms=1)
    with pytest.raises(NotFoundError):
        redrives.get("s")


def test_a_rate_bounds_how_many_go():
    found = started(Selection(), {0: 10}, rate=100).get("r")
    assert [found.budget(elapsed_ms, 0) for elapsed_ms in (0, 10, 1_000)] == [1, 2, 101]


def test_redrives_come_back_from_their_snapshot_and_old_ones_are_forgotten():
    redrives = Redrives()
    for number in range(150):
        at = (Selection(), {0: 10})
        redrives.apply(*redrives.decide_start(f"r{number}", "g", "dlq", *at, now_ms=1))
        redrives.apply(*redrives.decide_end(f"r{number}", 5))
    assert [one.redrive_id for one in redrives.all()] == [f"r{at}" for at in range(50, 150)]
    again = Redrives()
    for event in redrives.snapshot():
        again.apply(event)
    assert again.all() == redrives.all()


def test_what_a_redrive_took_is_few_ranges_and_of_many_ended_ones_the_oldest_go(monkeypatch):
    monkeypatch.setattr(redrive, "TAKEN_RANGES", 5)
    redrives = Redrives()
    for name, steps in {
        "a": [(0, 2), (2, 4), (5, 6)],
        "b": [(0, 1), (2, 3), (4, 5), (6, 7)],
    }.items():
        redrives.apply(*redrives.decide_start(name, "g", "dlq", Selection(), {0: 10}, now_ms=1))
        for step in steps:
            redrives.apply(*redrives.decide_advance(name, 0, step[1], 1, [step]))
        if name == "a":
            assert redrives.get("a").taken == ((0, 0, 4), (0, 5, 6))
        redrives.apply(*redrives.decide_end(name, 5))
    assert [one.redrive_id for one in redrives.all()] == ["b"]
