"""Which token is where: as long as the ledger remembers its lease. And which suspect is next."""

from random import Random

from logbroker.broker.holding import Holding
from logbroker.broker.live_group import FEW_TOKENS, LiveGroup
from logbroker.group.group import TopicRead
from logbroker.group.group_events import InLedger, LedgerId
from logbroker.group.lease_table import ENDED_LEASES
from logbroker.group.ledger_events import Moment
from logbroker.group.ledgers import Ledgers
from logbroker.group.record_state import Cause
from logbroker.group.settings import GroupSettings, Order

NOW = Moment(1_000, 1_700_000_000_000)
PLACES = [LedgerId("g", "t", partition) for partition in range(2)]
MANY = [LedgerId("g", "t", partition) for partition in range(12)]
HIGH_WATERMARK = 1 << 40


def group_of(places):
    state = Ledgers()
    settings = GroupSettings(order=Order.NONE)
    decided = state.catalog.decide_create("g", settings, now_ms=5)
    for event in decided:
        state.apply(event, NOW)
    read = TopicRead(topic="t", topic_id="t", dead_letter_topic_id="")
    for event in state.catalog.decide_attach("g", read):
        state.apply(event, NOW)
    for place in places:
        for event in state.new_ledger(place).decide_start(0):
            state.apply(InLedger(place, event), NOW)
    return state, LiveGroup("g", state, None)


def lease(state, live, token, *, is_settled=True):
    place = PLACES[token % len(PLACES)]
    ledger = state.get(place)
    for event in ledger.decide_lease("a", token, NOW, high_watermark=HIGH_WATERMARK, max_count=1):
        state.apply(InLedger(place, event), NOW)
        live.granted(place, token, "a", 1, is_suspect=False)
    if is_settled:
        held = ledger.state.leases.get(token).held.ranges()
        for event in ledger.decide_settle(token, held, Cause.ACKNOWLEDGE, NOW, None):
            state.apply(InLedger(place, event), NOW)


def test_tokens_are_forgotten_with_their_leases():
    state, live = group_of(PLACES)
    lease(state, live, 0, is_settled=False)
    count = 8 * ENDED_LEASES
    for token in range(1, count):
        lease(state, live, token)
        if token % 500 == 0:
            known = [one for one in range(token + 1) if live.ledger_of(one)]
            assert len(known) <= 2 * len(PLACES) * ENDED_LEASES + FEW_TOKENS + 2
    assert len(known) < count // 1.5
    for token in range(count):
        place = PLACES[token % len(PLACES)]
        if state.get(place).state.leases.knows(token):
            assert live.ledger_of(token) == place
    assert live.ledger_of(0) == PLACES[0]  # it is not settled yet
    assert live.ledger_of(1) is None


def test_few_tokens_are_not_looked_through():
    state, live = group_of(PLACES)
    for token in range(FEW_TOKENS):
        lease(state, live, token)
    assert all(live.ledger_of(token) for token in range(FEW_TOKENS))


def test_the_ledger_that_had_a_suspect_first_is_the_first_to_be_looked_into():
    state, live = group_of(MANY)
    in_turn = MANY[7:] + MANY[:7]
    for place in in_turn:
        ledger = state.get(place)
        decided = ledger.decide_lease("a", 1, NOW, high_watermark=2, max_count=2)
        ledger.apply_all(decided, NOW)
        ledger.apply_all(ledger.decide_vanish("a", NOW, Random(1)), NOW)
        live.look_into(place)
    holding = live.holdings["b"] = Holding("b", frozenset(["t"]), is_stream=True)
    found = []
    for _ in MANY:
        found.append(live.suspects_for(holding))
        ledger = state.get(found[-1])
        ledger.apply_all(ledger.decide_reset(2, "test"), NOW)
    assert found == in_turn
