"""A ledger beside a naive model, in all three orders, and its events replayed."""

import os
from functools import partial
from itertools import pairwise
from random import Random

import pytest
from hypothesis import settings as run_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from logbroker.errors import ConflictError
from logbroker.group import events
from logbroker.group.commits import decide_commit
from logbroker.group.events import InLedger, LedgerId
from logbroker.group.ledger import Ledger
from logbroker.group.ledger_events import KEEPING, Keeping, Moment
from logbroker.group.parked import decide_redrive, decide_release_key, decide_resolve
from logbroker.group.record_state import Cause, State
from logbroker.group.retry_policy import Exhausted, RetryPolicy
from logbroker.group.settings import AfterDeadLetter, GroupSettings, Order
from logbroker.group.snapshot import snapshot
from logbroker.group.waiting import TICK_MS
from tests.group.model import Model

MEMBERS = st.sampled_from(["a", "b", "c"])
KEYS = st.sampled_from([None, b"", b"x", b"y", b"z"])
ID = LedgerId("g", "t", 0)
EXAMPLES = 400 if os.environ.get("LOGBROKER_TEST_FULL") else 15
DELAY_MS, LEASE_MS = 40, 100


class LedgerMachine(RuleBasedStateMachine):
    order = Order.NONE
    exhausted = Exhausted.DEAD_LETTER
    holds = False

    def __init__(self):
        super().__init__()
        policy = RetryPolicy(max_failures=3, exhausted=self.exhausted)
        self.settings = GroupSettings(
            order=self.order,
            retry=policy,
            lease_ms=LEASE_MS,
            max_unsettled=30,
            after_dead_letter=AfterDeadLetter.HOLD if self.holds else AfterDeadLetter.CONTINUE,
        )
        self.ledger = Ledger(self.settings)
        self.model = Model(self.order, policy.max_failures, policy.hopeless, self.holds)
        self.random = Random(7)
        self.now = Moment(1_000, 1_000_000)
        self.token = 0
        self.deadlines = {}
        self.journal = []
        self.was_reset = False

    def apply(self, decided):
        for event in decided:
            if KEEPING[type(event)] is not Keeping.NEVER:
                self.journal.append((self.now, events.encode(InLedger(ID, event))))
            self.ledger.apply(event, self.now)

    @rule(keys=st.lists(KEYS, min_size=1, max_size=12))
    def write(self, keys):
        self.model.write(keys)

    @rule(member=MEMBERS, count=st.integers(1, 12))
    def lease(self, member, count):
        end = len(self.model.entries)
        while wanted := self.ledger.wanted_keys(end):
            self.ledger.learn_keys(wanted[0], self.model.keys[wanted[0] : wanted[1]])
        self.token += 1
        decided = self.ledger.decide_lease(
            member, self.token, self.now, high_watermark=end, max_count=count
        )
        if not decided:
            self.nothing_was_there_for(member)
            return
        [leased] = decided
        assert 0 < sum(high - low for low, high in leased.ranges) <= count
        assert all(left[1] < right[0] for left, right in pairwise(leased.ranges))
        offsets = [at for low, high in leased.ranges for at in range(low, high)]
        holds = [self.model.entries[at] for at in self.model.held_of(member)]
        assert not any(entry.is_marked for entry in holds), "nothing beside a suspect"
        if self.model.entries[offsets[0]].state is State.SUSPECT:
            assert not holds, "a suspect beside nothing"
        self.model.lease(self.token, member, offsets)
        self.deadlines[self.token] = self.now.mono_ms + LEASE_MS
        self.apply(decided)
        runs = self.ledger.delivered_runs(leased.ranges)
        told = [at for run in runs for at in range(run.first, run.end)]
        assert told == offsets
        for run in runs:
            for at in range(run.first, run.end):
                entry = self.model.entries[at]
                assert (run.deliveries, run.failures) == (entry.deliveries, entry.failures)

    def nothing_was_there_for(self, member):
        model = self.model
        if self.ledger.is_window_full or model.held_of(member):
            return
        if self.order is Order.PARTITION and any(entry.token for entry in model.entries):
            return
        for at, entry in enumerate(model.entries):
            if entry.state in (State.AVAILABLE, State.SUSPECT):
                assert model.must_wait(at), f"{at} could have been delivered"

    @precondition(lambda self: any(entry.token for entry in self.model.entries))
    @rule(
        data=st.data(),
        cause=st.sampled_from(
            sorted(Cause, key=str)[:0]
            or [
                Cause.ACKNOWLEDGE,
                Cause.ACKNOWLEDGE,
                Cause.RETRY,
                Cause.RELEASE,
                Cause.REJECT,
            ]
        ),
    )
    def settle(self, data, cause):
        model = self.model
        token = data.draw(st.sampled_from(sorted({e.token for e in model.entries if e.token})))
        offsets = data.draw(
            st.lists(st.sampled_from(model.held_by(token)), min_size=1, unique=True)
        )
        offsets.sort()
        ranges = [(at, at + 1) for at in offsets]
        self.apply(
            self.ledger.decide_settle(
                token, ranges, cause, self.now, self.random, reason="why", delay_ms=DELAY_MS
            )
        )
        for at in offsets:
            match cause:
                case Cause.ACKNOWLEDGE:
                    model.settle(at)
                    model.acknowledged.setdefault(token, set()).add(at)
                case Cause.RELEASE:
                    model.free(at)
                case Cause.RETRY:
                    model.fail(at, self.now.mono_ms + DELAY_MS, is_marked=False)
                case Cause.REJECT:
                    model.fail(at, 0, is_marked=False, counts=False)
        if cause is not Cause.ACKNOWLEDGE:
            model.take_back_behind(offsets)

    @rule(data=st.data(), cause=st.sampled_from([Cause.ACKNOWLEDGE, Cause.RETRY]))
    def settle_what_is_not_held(self, data, cause):
        model = self.model
        if not model.entries or not self.token:
            return
        token = data.draw(st.integers(1, self.token))
        at = data.draw(st.integers(0, len(model.entries) - 1))
        if model.entries[at].token == token:
            return
        settle = partial(
            self.ledger.decide_settle, token, [(at, at + 1)], cause, self.now, self.random
        )
        if cause is Cause.ACKNOWLEDGE and at in model.acknowledged.get(token, set()):
            assert settle() == []
        else:
            with pytest.raises(ConflictError) as raised:
                settle()
            assert raised.value.reason == "LEASE_LOST"

    @rule(member=MEMBERS)
    def vanish(self, member):
        offsets = self.model.held_of(member)
        self.apply(self.ledger.decide_vanish(member, self.now, self.random))
        for at in offsets:
            if len(offsets) == 1:
                self.fail_with_backoff(at, is_marked=True)
            else:
                self.model.entries[at].is_marked = True
                self.model.free(at)

    @rule(member=MEMBERS)
    def end_in_order(self, member):
        self.apply(self.ledger.decide_release(member))
        for at in self.model.held_of(member):
            self.model.free(at)

    @rule(ms=st.integers(1, 80))
    def pass_time(self, ms):
        self.now = Moment(self.now.mono_ms + ms, self.now.wall_ms + ms)
        self.expire()
        next_ms = self.ledger.next_deadline_ms()
        due = self.ledger.decide_due(self.now)
        assert not due or (next_ms is not None and next_ms <= self.now.mono_ms)
        self.apply(due)
        for at, entry in enumerate(self.model.entries):
            if entry.state is State.WAITING and -(-entry.due_ms // 10) * 10 <= self.now.mono_ms:
                self.model.free(at)

    def expire(self):
        model = self.model
        tokens = {entry.token for entry in model.entries if entry.token}
        expired = [token for token in tokens if self.deadlines[token] <= self.now.mono_ms]
        self.apply(self.ledger.decide_expire(self.now, self.random))
        held = sorted(at for token in expired for at in model.held_by(token))
        if self.order is Order.PARTITION:
            for at in held[:1]:
                self.fail_with_backoff(at, is_marked=model.entries[at].is_marked)
                for behind in range(at, len(model.entries)):
                    if model.entries[behind].token:
                        model.free(behind)
        else:
            for at in held:
                self.fail_with_backoff(at, is_marked=model.entries[at].is_marked)

    def fail_with_backoff(self, at, *, is_marked):
        self.model.fail(at, 0, is_marked=is_marked)
        if self.model.entries[at].state is State.WAITING:
            self.model.entries[at].due_ms = self.ledger.state.waiting.due_ms(at)

    @precondition(lambda self: any(entry.token for entry in self.model.entries))
    @rule(data=st.data())
    def extend(self, data):
        token = data.draw(st.sampled_from(sorted({e.token for e in self.model.entries if e.token})))
        self.apply(self.ledger.decide_extend(token, 300, self.now))
        self.deadlines[token] = self.now.mono_ms + 300

    @rule(data=st.data())
    def commit(self, data):
        offset = data.draw(st.integers(0, len(self.model.entries)))
        before = self.ledger.state.committed
        self.apply(decide_commit(self.ledger, offset, len(self.model.entries), is_automatic=True))
        for at in range(min(offset, len(self.model.entries)) if offset >= before else 0):
            if self.model.entries[at].state is not State.SETTLED:
                self.model.settle(at)

    @rule(data=st.data())
    def trim(self, data):
        model = self.model
        offset = data.draw(st.integers(0, len(model.entries)))
        unsettled = [at for at in range(offset) if model.entries[at].state is not State.SETTLED]
        before = self.ledger.state.counters.expired_unsettled
        self.apply(self.ledger.decide_trim(offset))
        assert self.ledger.state.counters.expired_unsettled == before + len(unsettled)
        for at in unsettled:
            model.settle(at)

    @rule(data=st.data())
    def reset(self, data):
        log_start = self.ledger.state.log_start_offset
        offset = data.draw(st.integers(log_start, max(len(self.model.entries), log_start)))
        self.apply(self.ledger.decide_reset(offset, "test"))
        self.model.reset(offset)

    @precondition(lambda self: self.model.entries)
    @rule(data=st.data())
    def skip(self, data):
        begun = min(self.ledger.state.delivered_end, len(self.model.entries) - 1)
        first = data.draw(st.integers(0, begun))
        end = min(first + 2, len(self.model.entries))
        self.apply(self.ledger.decide_skip(first, end))
        for at in range(first, end):
            if self.model.entries[at].state in (State.AVAILABLE, State.SUSPECT):
                self.model.settle(at)

    @precondition(lambda self: self.model.held)
    @rule(data=st.data())
    def let_go(self, data):
        at = data.draw(st.sampled_from(sorted(self.model.held)))
        self.apply(decide_release_key(self.ledger, at))
        self.model.held.remove(at)

    @precondition(lambda self: any(e.state is State.PARKED for e in self.model.entries))
    @rule(data=st.data(), is_redriven=st.booleans())
    def move_parked(self, data, is_redriven):
        parked = [at for at, e in enumerate(self.model.entries) if e.state is State.PARKED]
        at = data.draw(st.sampled_from(parked))
        if is_redriven:
            self.apply(decide_redrive(self.ledger, [(at, at + 1)]))
            self.model.entries[at].failures = 0
            self.model.free(at)
        else:
            self.apply(decide_resolve(self.ledger, [(at, at + 1)]))
            self.model.settle(at)

    @rule(member=MEMBERS)
    def restart(self, member):
        self.ledger = self.replayed()
        for at, entry in enumerate(self.model.entries):
            if entry.token:
                self.model.free(at)
            if entry.state is State.WAITING:
                due_ms = self.ledger.state.waiting.due_ms(at)
                if due_ms is None:
                    assert entry.due_ms < self.now.mono_ms + TICK_MS, "it was over but for a tick"
                    self.model.free(at)
                else:
                    entry.due_ms = due_ms
        self.model.acknowledged.clear()

    @invariant()
    def states_are_the_models(self):
        state, model = self.ledger.state, self.model
        assert state.committed == model.committed()
        assert [state.state_of(at) for at in range(len(model.entries))] == [
            entry.state for entry in model.entries
        ]
        assert state.leases.count == sum(bool(entry.token) for entry in model.entries)
        for at, entry in enumerate(model.entries):
            if entry.state is not State.SETTLED:
                assert self.ledger.failures_of(at) == entry.failures
                assert state.deliveries.at(at) == entry.deliveries
        assert state.open_count <= self.settings.max_unsettled or self.order is Order.KEY

    def replayed(self):
        ledger = Ledger(self.settings)
        for _, data in self.journal:
            event = events.decode(data)
            assert isinstance(event, InLedger)
            ledger.apply(event.event, self.now)
        return ledger

    def teardown(self):
        replayed = self.replayed()
        later = Moment(self.now.mono_ms + TICK_MS, self.now.wall_ms + TICK_MS)
        for ledger in (replayed, self.ledger):
            ledger.apply_all(ledger.decide_due(later), later)
        assert snapshot(replayed.state) == snapshot(self.ledger.state)
        restored = Ledger(self.settings)
        restored.apply_all(snapshot(self.ledger.state), self.now)
        assert snapshot(restored.state) == snapshot(self.ledger.state)


CASES = [(order, exhausted, False) for order in Order for exhausted in Exhausted]
CASES += [(order, Exhausted.DEAD_LETTER, True) for order in (Order.PARTITION, Order.KEY)]


@pytest.mark.parametrize("order, exhausted, holds", CASES, ids=str)
def test_a_ledger_is_what_the_model_is_and_replay_makes_the_same(order, exhausted, holds):
    chosen = {"order": order, "exhausted": exhausted, "holds": holds}
    kind = type("Machine", (LedgerMachine,), chosen)
    case = kind.TestCase
    case.settings = run_settings(max_examples=EXAMPLES, stateful_step_count=40, deadline=None)
    case("runTest").runTest()
