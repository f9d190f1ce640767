"""The checker finds what is wrong with a history, and nothing wrong with a good one."""

import pytest

from logbroker.group.settings import Order

from .checker import Checker
from .events import (
    Answer,
    Answered,
    Begun,
    BrokerKilled,
    Confirmed,
    Ended,
    Letter,
    Outcome,
    Place,
    Received,
    Refused,
    Stored,
    TakenBack,
)

ACK, RETRY, REJECT = Answer.ACKNOWLEDGE, Answer.RETRY, Answer.REJECT


def at(offset, topic="t"):
    return Place(topic, 0, offset)


def stored(*offsets):
    return [Stored(at(offset), b"%d" % offset) for offset in offsets]


def received(offset, token=1, number=1, failures=0, redrives=0, member="a", topic="t"):
    return Received(member, token, at(offset, topic), number, failures, redrives)


def handled(offset, token=1, answer=ACK, member="a", topic="t"):
    place = at(offset, topic)
    return [
        Begun(member, token, place),
        Answered(member, token, place, answer),
        Confirmed(member, token, place, answer),
    ]


def outcome(count, keys=b"k", letters=(), **states):
    log = {at(offset): (keys[offset : offset + 1], b"%d" % offset) for offset in range(count)}
    found = {at(offset): states.get(f"s{offset}", "settled") for offset in range(count)}
    return Outcome(log, found, list(letters))


def letter(offset=0, source=0, state="parked", value=b"0"):
    return Letter(at(offset, "dlq"), at(source), state, 0, value)


def check(events, end, order=Order.PARTITION):
    Checker(events, end, order=order, max_failures=3).check()


GOOD = {
    "one after another": (
        [*stored(0, 1), received(0), received(1), *handled(0), *handled(1)],
        outcome(2),
    ),
    "a retry that comes again before what is behind it": (
        [
            *(received(0), received(1), *handled(0, answer=RETRY), TakenBack("a", 1, at(1))),
            *(received(0, 2, 2, 1), *handled(0, 2), received(1, 3, 2), *handled(1, 3)),
        ],
        outcome(2),
    ),
    "a vanished member's record": (
        [
            *(received(0), Begun("a", 1, at(0)), Ended("a")),
            *(received(0, 2, 3, 1, member="b"), *handled(0, 2, member="b")),
        ],
        outcome(1),
    ),
    "an acknowledgement that a killed broker lost": (
        [
            *(received(0), Begun("a", 1, at(0)), Answered("a", 1, at(0), ACK), BrokerKilled()),
            *(received(0, 1, 1), *handled(0)),
        ],
        outcome(1),
    ),
    "a late answer that is refused": (
        [
            *(received(0), Begun("a", 1, at(0)), received(0, 2, 2, 1, member="b")),
            *(Answered("a", 1, at(0), ACK), Refused("a", 1, at(0)), *handled(0, 2, member="b")),
        ],
        outcome(1),
    ),
    "a dead letter that is redriven": (
        [
            *(received(0), *handled(0, answer=REJECT)),
            *(received(0, 2, 1, 0, 1, topic="dlq"), *handled(0, 2, topic="dlq")),
        ],
        outcome(1, letters=[letter(state="resolved")], s0="parked"),
    ),
    "pending": (stored(0), outcome(1, s0="pending")),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_history_is_good_in_every_order(name):
    for order in Order:
        check(*GOOD[name], order)


BAD = {
    "an acknowledged record is lost": (stored(3), outcome(1, s0="pending")),
    "never delivered, and not pending": (stored(0), outcome(1)),
    "settled, and nobody has acknowledged it": ([received(0)], outcome(1)),
    "delivered again although confirmed": (
        [received(0), *handled(0), received(0, 2, 2)],
        outcome(1),
    ),
    "delivery number 3 after 1": (
        [received(0), *handled(0, answer=RETRY), received(0, 2, 3, 1), *handled(0, 2)],
        outcome(1),
    ),
    "delivery number 1 after 1": (
        [received(0), *handled(0, answer=RETRY), Ended("b"), received(0, 2, 1, 1), *handled(0, 2)],
        outcome(1),
    ),
    "failures 0 after 1": (
        [received(0), *handled(0, answer=RETRY), BrokerKilled(), received(0, 2, 2), *handled(0, 2)],
        outcome(1),
    ),
    "delivered after 3 failures": ([received(0, failures=3), *handled(0)], outcome(1)),
    "two live leases on": (
        [received(0), received(0, 2, 2, member="b"), *handled(0, 2, member="b")],
        outcome(1),
    ),
    "two live leases, the older one was good": (
        [received(0), received(0, 2, 2, member="b"), *handled(0)],
        outcome(1),
    ),
    "taken back, and yet its answer was good": (
        [
            *(received(0), Begun("a", 1, at(0)), Answered("a", 1, at(0), ACK)),
            *(TakenBack("a", 1, at(0)), Confirmed("a", 1, at(0), ACK)),
        ],
        outcome(1),
    ),
    "begun before 0 was through": (
        [received(0), received(1), *handled(1), *handled(0)],
        outcome(2, keys=b"kk"),
    ),
    "2 dead letters of": (
        [received(0), *handled(0, answer=REJECT)],
        outcome(1, letters=[letter(0), letter(1)], s0="parked"),
    ),
    "acknowledged, and yet a dead letter": (
        [received(0), *handled(0)],
        outcome(1, letters=[letter()], s0="parked"),
    ),
    "a dead letter is not the record it was": (
        [received(0), *handled(0, answer=REJECT)],
        outcome(1, letters=[letter(value=b"x")], s0="parked"),
    ),
    "resolved, and nobody has acknowledged it": (
        [received(0), *handled(0, answer=REJECT)],
        outcome(1, letters=[letter(state="resolved")], s0="parked"),
    ),
    "pending although confirmed as settled": (
        [received(0), *handled(0)],
        outcome(1, s0="pending"),
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_history_is_found_and_said(what):
    with pytest.raises(AssertionError, match=what):
        check(*BAD[what])


def test_in_key_order_only_records_of_one_key_wait_for_one_another():
    events = [received(0), received(1), *handled(1), *handled(0)]
    check(events, outcome(2, keys=b"ab"), Order.KEY)
    with pytest.raises(AssertionError, match="begun before 0"):
        check(events, outcome(2, keys=b"aa"), Order.KEY)
    check(events, outcome(2, keys=b"aa"), Order.NONE)
