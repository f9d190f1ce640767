"""Groups and their ledgers as one state: made, changed, forgotten, replayed."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logbroker.errors import AlreadyExistsError, NotFoundError, PreconditionError
from logbroker.group import events
from logbroker.group.group import TopicRead
from logbroker.group.group_events import GroupDeleted, InLedger, LedgerId, TokensReserved
from logbroker.group.ledger_events import KEEPING, Keeping, Moment
from logbroker.group.ledgers import Ledgers
from logbroker.group.record_state import Cause
from logbroker.group.redrive import Selection
from logbroker.group.settings import GroupSettings, Order

NOW = Moment(1_000, 1_000_000)
TOPIC = TopicRead(topic="t", topic_id="t1", dead_letter_topic="t.g.dlq", dead_letter_topic_id="d1")
ID = LedgerId("g", "t1", 0)


class Journaled(Ledgers):
    """Writes what it applies."""

    def __init__(self):
        super().__init__()
        self.journal = []

    def commit(self, decided):
        for event in decided:
            if not isinstance(event, InLedger) or KEEPING[type(event.event)] is not Keeping.NEVER:
                self.journal.append(events.encode(event))
            self.apply(event, NOW)

    def commit_in(self, ledger_id, decided):
        self.commit([InLedger(ledger_id, event) for event in decided])


def with_group(settings=None):
    state = Journaled()
    state.commit(state.catalog.decide_create("g", settings or GroupSettings(), now_ms=5))
    state.commit(state.catalog.decide_attach("g", TOPIC))
    state.commit_in(ID, state.new_ledger(ID).decide_start(3))
    return state


def replayed(data):
    state = Ledgers()
    state.restore([events.decode(one) for one in data], NOW)
    return state


def test_a_group_has_one_name_and_is_found_by_it():
    state = with_group()
    with pytest.raises(AlreadyExistsError):
        state.catalog.decide_create("g", GroupSettings(), now_ms=5)
    with pytest.raises(NotFoundError):
        state.catalog.get("h")
    assert [group.group for group in state.catalog.reading("t1")] == ["g"]
    assert state.get(ID).state.committed == 3


def test_a_groups_ledgers_follow_its_settings_and_not_its_order_under_members():
    state = with_group()
    settings = GroupSettings(max_unsettled=7)
    state.commit(state.catalog.decide_update("g", settings, is_in_use=True))
    assert state.get(ID).settings == settings
    with pytest.raises(PreconditionError) as raised:
        state.catalog.decide_update("g", GroupSettings(order=Order.KEY), is_in_use=True)
    assert raised.value.reason == "GROUP_IN_USE"
    state.commit(state.catalog.decide_update("g", GroupSettings(order=Order.KEY), is_in_use=False))
    assert state.get(ID).wanted_keys(9) == (3, 9)
    assert state.catalog.decide_update("g", GroupSettings(order=Order.KEY), is_in_use=False) == []


def test_a_topic_made_again_is_read_anew_without_what_hung_on_the_old_one():
    state = with_group()
    dead = LedgerId("g", "d1", 0)
    state.commit_in(dead, state.new_ledger(dead).decide_start(0))
    assert state.get(dead).state.is_parked_from_birth
    state.commit(state.redrives.decide_start("r", "g", "d1", Selection(), {0: 5}, now_ms=1))
    state.commit(state.catalog.decide_attach("g", TopicRead(topic="t", topic_id="t2")))
    assert state.of("g") == {}
    assert state.redrives.all() == []
    assert state.catalog.get("g").topics == (TopicRead(topic="t", topic_id="t2"),)
    again = replayed(state.journal)
    assert again.snapshot() == state.snapshot()


def test_a_deleted_topic_is_read_by_nobody():
    state = with_group()
    state.commit(state.catalog.decide_forget_topic("t1"))
    assert (state.of("g"), state.catalog.get("g").topics) == ({}, ())
    assert state.catalog.decide_forget_topic("t1") == []


def test_a_group_in_use_is_deleted_only_by_force():
    state = with_group()
    with pytest.raises(PreconditionError):
        state.catalog.decide_delete("g", is_in_use=True)
    state.commit(state.catalog.decide_delete("g", is_in_use=True, is_forced=True))
    assert (state.all(), state.catalog.groups()) == ({}, [])


def test_a_group_is_forgotten_when_it_is_idle_and_never_while_it_has_members():
    catalog = with_group(GroupSettings(group_retention_ms=100_000)).catalog
    assert catalog.decide_forget_unused([], 100_004) == []
    assert catalog.decide_forget_unused([], 100_005) == [GroupDeleted("g")]
    assert catalog.decide_forget_unused(["g"], 1_000_000) == []
    assert catalog.decide_seen(["g", "gone"], 5 + 59_999) == []
    for event in catalog.decide_seen(["g"], 90_000):
        catalog.apply(event)
    assert catalog.decide_forget_unused([], 100_005) == []


def test_tokens_are_never_given_out_twice():
    state = with_group()
    first = state.catalog.reserved_end
    state.commit([TokensReserved(first + (1 << 32))])
    assert replayed(state.journal).catalog.reserved_end == first + (1 << 32)


def test_a_dead_letter_topic_read_as_any_topic_parks_what_is_exhausted():
    state = with_group()
    state.commit(
        state.catalog.decide_attach("g", TopicRead(topic="d", topic_id="d2", parks_exhausted=True))
    )
    ledger = state.new_ledger(LedgerId("g", "d2", 0))
    ledger.apply_all(ledger.decide_lease("a", 1, NOW, high_watermark=1, max_count=1), NOW)
    decided = ledger.decide_settle(1, [(0, 1)], Cause.REJECT, NOW, Random(1))
    ledger.apply_all(decided, NOW)
    assert ledger.state.parked.ranges() == [(0, 1)]
    assert not ledger.state.is_parked_from_birth


@given(st.lists(st.sampled_from([Cause.ACKNOWLEDGE, Cause.RETRY, Cause.REJECT]), max_size=12))
def test_replay_and_snapshot_make_the_same(causes):
    state = with_group(GroupSettings(order=Order.NONE))
    ledger = state.get(ID)
    for token, cause in enumerate(causes, 1):
        decided = ledger.decide_lease("a", token, NOW, high_watermark=99, max_count=2)
        state.commit_in(ID, decided)
        ranges = [(decided[0].ranges[0][0], decided[0].ranges[0][0] + 1)]
        state.commit_in(ID, ledger.decide_settle(token, ranges, cause, NOW, Random(1)))
    again = replayed(state.journal)
    assert again.snapshot() == state.snapshot()
    data = [events.encode(event) for event in state.snapshot()]
    assert replayed(data).snapshot() == state.snapshot()
    assert again.get(ID).state.leases.count == 0


def test_the_ledgers_of_groups_are_all_there_are_whatever_is_forgotten():
    state = Ledgers()

    def attach(group, topic_id, letters=""):
        read = TopicRead(topic=topic_id, topic_id=topic_id, dead_letter_topic_id=letters)
        apply(state.catalog.decide_attach(group, read))
        for number, place in [(1, topic_id), (0, topic_id), *([(0, letters)] if letters else [])]:
            ledger_id = LedgerId(group, place, number)
            apply([InLedger(ledger_id, one) for one in state.new_ledger(ledger_id).decide_start(0)])

    def apply(decided):
        for event in decided:
            state.apply(event, NOW)
        names = [group.group for group in state.catalog.groups()]
        whole = {}
        for name in names:
            assert list(state.of(name)) == sorted(state.of(name))
            whole |= state.of(name)
        assert whole == state.all()

    for name in ("g", "h"):
        apply(state.catalog.decide_create(name, GroupSettings(), now_ms=5))
        attach(name, "t1", letters="d1")
        attach(name, "t2")
    assert [one.partition for one in state.of("g", "t2")] == [0, 1]
    apply(state.catalog.decide_unlink("d1"))
    apply(state.catalog.decide_forget_topic("t1"))
    apply(state.catalog.decide_delete("h", is_in_use=False))
    assert list(state.of("g")) == [LedgerId("g", "t2", 0), LedgerId("g", "t2", 1)]
    assert state.of("h") == {}
    attach("g", "t1")
    state.restore(state.snapshot(), NOW)
    apply([])
    assert len(state.all()) == 4
