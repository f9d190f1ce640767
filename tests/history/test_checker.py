"""The checker finds what is wrong with a history, and nothing wrong with a good one."""

import pytest

from logbroker.broker.groups import TOKENS_RESERVED_AT_ONCE
from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import Order

from .checker import Checker
from .events import (
    Answer,
    Answered,
    Begun,
    BrokerKilled,
    Confirmed,
    Ended,
    How,
    Letter,
    Noted,
    Outcome,
    Place,
    Received,
    RedriveAsked,
    Refused,
    Reset,
    Stored,
    TakenBack,
    Trimmed,
)

ACK, RETRY, RELEASE, REJECT = Answer
SECOND = 1_000_000_000
LATER_LIFE = TOKENS_RESERVED_AT_ONCE + 1
"""A token of a broker that has been started again."""


def at(offset, topic="t"):
    return Place(topic, 0, offset)


def stored(*offsets, keys=b"kkk"):
    return [Stored(at(offset), keys[offset : offset + 1], b"%d" % offset) for offset in offsets]


def received(offset, token=1, number=1, failures=0, redrives=0, member="a", topic="t"):
    return Received(member, token, at(offset, topic), number, failures, redrives)


def answered(offset, token=1, answer=ACK, member="a", topic="t"):
    place = at(offset, topic)
    return [Begun(member, token, place), Answered(member, token, place, answer)]


def handled(offset, token=1, answer=ACK, member="a", topic="t"):
    done = Confirmed(member, token, at(offset, topic), answer)
    return [*answered(offset, token, answer, member, topic), done]


def back(offset, token=1, member="a"):
    return TakenBack(member, token, at(offset))


def late(offset, token=1, member="a", **told):
    return Refused(member, token, at(offset), **told)


def outcome(count, keys=b"kkk", letters=(), redriven=0, first=0, lost=0, **states):
    places = range(first, count)
    log = {at(offset): (keys[offset : offset + 1], b"%d" % offset) for offset in places}
    found = {at(offset): states.get(f"s{offset}", "settled") for offset in places}
    return Outcome(log, found, list(letters), redriven, lost)


def letter(offset=0, source=0, state="parked", value=b"0", failures=0, redrives=0):
    return Letter(at(offset, "dlq"), at(source), state, failures, redrives, b"k", value)


def check(events, end, order=Order.PARTITION, *, apart_ns=SECOND):
    noted = [Noted(index * apart_ns, event) for index, event in enumerate(events)]
    Checker(noted, end, order=order, policy=RetryPolicy(max_failures=3)).check()


REDRIVEN = [
    *(received(0), *handled(0, answer=REJECT), RedriveAsked()),
    *(received(0, 2, 1, 0, 1, topic="dlq"), *handled(0, 2, topic="dlq")),
]
TWICE = [
    *(received(0), *handled(0, answer=RETRY), received(0, 2, 2, 1)),
    *(*handled(0, 2, RETRY), received(0, 3, 3, 2), *handled(0, 3, RETRY)),
]

GOOD = {
    "one after another": (
        [*stored(0, 1), received(0), received(1), *handled(0), *handled(1)],
        outcome(2),
    ),
    "a retry that comes again before what is behind it": (
        [
            *(received(0), received(1), *handled(0, answer=RETRY), back(1)),
            *(received(0, 2, 2, 1), *handled(0, 2), received(1, 3, 2), *handled(1, 3)),
        ],
        outcome(2),
        Order.PARTITION,
    ),
    "a vanished member's record": (
        [
            *(received(0), Begun("a", 1, at(0)), Ended("a")),
            *(received(0, 2, 3, 1, member="b"), *handled(0, 2, member="b")),
        ],
        outcome(1),
    ),
    "an acknowledgement that a killed broker lost": (
        [received(0), *answered(0), BrokerKilled(), received(0, 2, 1), *handled(0, 2)],
        outcome(1),
    ),
    "what a killed broker had sent, read after the kill": (
        [
            *(received(0), *handled(0), BrokerKilled(), received(1, 2), *answered(1, 2)),
            *(Ended("a"), received(1, LATER_LIFE), *handled(1, LATER_LIFE)),
        ],
        outcome(2),
    ),
    "a late answer that is refused": (
        [
            *(received(0), Begun("a", 1, at(0)), received(0, 2, 2, 1, member="b"), back(0)),
            *(Answered("a", 1, at(0), ACK), late(0), *handled(0, 2, member="b")),
        ],
        outcome(1),
    ),
    "an expiry that a killed broker forgot": (
        [received(0), back(0), BrokerKilled(), received(0, 2, 1), *handled(0, 2)],
        outcome(1),
    ),
    "a lease of which its member hears after the next one was granted": (
        [
            *(received(0), received(0, 3, 3, 2, member="c"), received(0, 2, 2, 1, member="b")),
            *(back(0), back(0, 2, "b"), *handled(0, 3, member="c")),
        ],
        outcome(1),
    ),
    "a release": (
        [received(0), *handled(0, answer=RELEASE), received(0, 2, 2), *handled(0, 2)],
        outcome(1),
    ),
    "a member that leaves what it holds": (
        [received(0), Ended("a", How.LEFT), received(0, 2, 2), *handled(0, 2)],
        outcome(1),
    ),
    "failed three times": (TWICE, outcome(1, letters=[letter(failures=3)])),
    "a dead letter that is redriven": (
        REDRIVEN,
        outcome(1, letters=[letter(state="resolved")], redriven=1),
    ),
    "a dead letter that fails again": (
        [
            *(received(0), *handled(0, answer=REJECT), RedriveAsked()),
            *(received(0, 2, 1, 0, 1, topic="dlq"), *handled(0, 2, REJECT, topic="dlq")),
        ],
        outcome(1, letters=[letter(redrives=1)], redriven=1),
    ),
    "a dead letter nobody saw fail": ([Ended("a")] * 3, outcome(1, letters=[letter(failures=3)])),
    "suspects, one by one": (
        [
            *(received(0), received(1), Ended("a"), received(0, 2, 2, member="b")),
            *(*handled(0, 2, member="b"), received(1, 3, 2, member="b")),
            *handled(1, 3, member="b"),
        ],
        outcome(2),
    ),
    "back to the beginning": (
        [
            *(received(0), *handled(0), received(1, 2), *handled(1, 2), Reset("t", 0, 2, 0)),
            *(received(0, 3), *handled(0, 3), received(1, 4), *handled(1, 4)),
        ],
        outcome(2),
    ),
    "moved on": (
        [*stored(0, 1), Reset("t", 0, 0, 1), received(1), *handled(1)],
        outcome(2),
    ),
    "a dead letter from before a reset": (
        [
            *(received(0), *handled(0, answer=REJECT), Reset("t", 0, 1, 0)),
            *(received(0, 2), *handled(0, 2)),
        ],
        outcome(1, letters=[letter()]),
    ),
    "dead twice, before and after a reset": (
        [
            *(received(0), *handled(0, answer=REJECT), Reset("t", 0, 1, 0)),
            *(received(0, 2), *handled(0, 2, REJECT)),
        ],
        outcome(1, letters=[letter(0), letter(1)]),
    ),
    "trimmed": (
        [*stored(0, 1), received(0), *handled(0), Trimmed("t", 0, 1)],
        outcome(2, first=1, s1="pending"),
    ),
    "pending": (stored(0), outcome(1, s0="pending")),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_a_good_history_is_good(name):
    events, end, *orders = GOOD[name]
    for order in orders or Order:
        check(events, end, order)


BAD = {
    "an acknowledged record is lost": (stored(3), outcome(1, s0="pending")),
    "not as it was produced": (
        [],
        outcome(2, s0="pending", s1="pending")._replace(
            log={at(0): (None, b"1"), at(1): (None, b"1")}
        ),
    ),
    "of 1 records only 0 have a state": ([], outcome(1, s0="pending")._replace(states={})),
    "2 records lost to retention": ([], outcome(1, lost=2, s0="pending")),
    "never delivered, and not pending": (stored(0), outcome(1)),
    "settled, and nobody has acknowledged it": ([received(0)], outcome(1)),
    "settled, and nobody has acknowledged it: .*offset=0": (
        [received(0), *answered(0), back(0), late(0), Ended("a")],
        outcome(1),
    ),
    "delivered again although confirmed": (
        [received(0), *handled(0), received(0, 2, 2)],
        outcome(1),
    ),
    "delivered again although confirmed as settled: .*dlq": (
        [
            *(*REDRIVEN, RedriveAsked(), received(0, 3, 2, 0, 2, topic="dlq")),
            *handled(0, 3, topic="dlq"),
        ],
        outcome(1, letters=[letter(state="resolved")], redriven=2),
    ),
    "delivery number 3 after 1": (
        [received(0), *handled(0, answer=RETRY), received(0, 2, 3, 1), *handled(0, 2)],
        outcome(1),
    ),
    "delivery number 1 after 1": (
        [received(0), *handled(0, answer=RETRY), Ended("b"), received(0, 2, 1, 1), *handled(0, 2)],
        outcome(1),
    ),
    "delivery number 1 after 1: .*under 3": (
        [
            *(received(0), received(1, 2), *handled(1, 2), BrokerKilled()),
            *(received(0, 3), *handled(0, 3)),
        ],
        outcome(2),
        Order.NONE,
    ),
    "failures 0, which can be 1 to 1": (
        [received(0), *handled(0, answer=RETRY), BrokerKilled(), received(0, 2, 2), *handled(0, 2)],
        outcome(1),
    ),
    "failures 1, which can be 0 to 0": (
        [received(0), *handled(0, answer=RELEASE), received(0, 2, 2, 1), *handled(0, 2)],
        outcome(1),
    ),
    "failures 1, which can be 0 to 0: .*under 3": (
        [received(0), Ended("a", How.LEFT), received(0, 3, 2, 1), *handled(0, 3)],
        outcome(1),
    ),
    "failures 2, which can be 0 to 1": (
        [received(0), back(0), received(0, 2, 2, 2), *handled(0, 2)],
        outcome(1),
    ),
    "failures 0, which can be 1 to 1: .*under 4": (
        [received(0), back(0), received(0, 4, 2, 0), *handled(0, 4)],
        outcome(1),
        Order.KEY,
    ),
    "failures 3, which can be 0 to 0": (
        [
            *(*TWICE, RedriveAsked(), received(0, 4, 1, 3, 1, topic="dlq")),
            *handled(0, 4, topic="dlq"),
        ],
        outcome(1, letters=[letter(state="resolved", failures=3)], redriven=1),
    ),
    "delivered after 3 failures": ([received(0, failures=3), *handled(0)], outcome(1)),
    "a dead letter after 2 to 2 failures": (
        [
            *(received(0), *handled(0, answer=RETRY), received(0, 2, 2, 1)),
            *(*handled(0, 2, RETRY), received(0, 3, 3, 2), *handled(0, 3, REJECT)),
        ],
        outcome(1, letters=[letter(failures=3)]),
    ),
    "1 dead letters of .*, not 0": (
        [received(0), *handled(0, answer=RETRY)],
        outcome(1, letters=[letter(failures=1)]),
    ),
    "0 dead letters of .*, not 1": ([received(0), *handled(0, answer=REJECT)], outcome(1)),
    "2 dead letters of": (
        [received(0), *handled(0, answer=REJECT)],
        outcome(1, letters=[letter(0), letter(1)]),
    ),
    "a token is used twice": (
        [received(0), received(1, member="b"), *handled(0), *handled(1, member="b")],
        outcome(2),
    ),
    "two live leases on": (
        [received(0), received(0, 2, 2, member="b"), *handled(0, 2, member="b")],
        outcome(1),
    ),
    "two live leases, the older one was good": (
        [received(0), received(0, 2, 2, member="b"), *handled(0)],
        outcome(1),
    ),
    "taken back, and yet its answer was good": (
        [received(0), *answered(0), back(0), Confirmed("a", 1, at(0), ACK)],
        outcome(1),
    ),
    "its member was not told": (
        [received(0), *answered(0), late(0, was_told=False)],
        outcome(1, s0="pending"),
    ),
    "answered without a lease": (answered(0), outcome(1, s0="pending")),
    "begun before 0 was through": (
        [received(0), received(1), *handled(1), *handled(0)],
        outcome(2),
    ),
    "begun before 0 was through: .*token=4": (
        [
            *(received(0), *handled(0), received(1, 2), *handled(1, 2), Reset("t", 0, 2, 0)),
            *(received(1, 4), *handled(1, 4), received(0, 3), *handled(0, 3)),
        ],
        outcome(2),
    ),
    "1 was begun before it was through": (
        [
            *(received(0), *answered(0), Ended("a"), received(1, 2, member="b")),
            *(*handled(1, 2, member="b"), received(0, 3, 2, member="b")),
            *handled(0, 3, member="b"),
        ],
        outcome(2),
    ),
    "a suspect among others": (
        [
            *(received(0), received(1), Ended("a"), received(0, 2, 2), received(1, 2, 2)),
            *(*handled(0, 2), *handled(1, 2)),
        ],
        outcome(2),
        Order.NONE,
    ),
    "delivered, and the group was moved past it": (
        [Reset("t", 0, 0, 1), received(0), *handled(0)],
        outcome(1),
    ),
    "redrives 2 after 0": (
        [
            *(received(0), *handled(0, answer=REJECT), RedriveAsked(), RedriveAsked()),
            *(received(0, 2, 1, 0, 2, topic="dlq"), *handled(0, 2, topic="dlq")),
        ],
        outcome(1, letters=[letter(state="resolved")], redriven=2),
    ),
    "redrives 1, asked for fewer": (
        [event for event in REDRIVEN if event != RedriveAsked()],
        outcome(1, letters=[letter(state="resolved")], redriven=1),
    ),
    "redriven before it was parked again": (
        [
            *(received(0), *handled(0, answer=REJECT), RedriveAsked(), RedriveAsked()),
            *(received(0, 2, 1, 0, 1, topic="dlq"), *handled(0, 2, RELEASE, topic="dlq")),
            *(received(0, 3, 2, 0, 2, topic="dlq"), *handled(0, 3, topic="dlq")),
        ],
        outcome(1, letters=[letter(state="resolved")], redriven=2),
    ),
    "parked again without a reason": (
        [
            *(received(0), *handled(0, answer=REJECT), RedriveAsked()),
            *(received(0, 2, 1, 0, 1, topic="dlq"), *handled(0, 2, RELEASE, topic="dlq")),
        ],
        outcome(1, letters=[letter(redrives=1)], redriven=1),
    ),
    "only dead letters are redriven": (
        [RedriveAsked(), received(0, redrives=1), *handled(0)],
        outcome(1),
    ),
    "2 were redriven, dead letters tell of 1": (
        REDRIVEN,
        outcome(1, letters=[letter(state="resolved")], redriven=2),
    ),
    "of 1 redrives some are forgotten": (
        [
            *(received(0), *handled(0, answer=REJECT), RedriveAsked()),
            *(received(0, 2, 1, 0, 1, topic="dlq"), *handled(0, 2, REJECT, topic="dlq")),
        ],
        outcome(1, letters=[letter(redrives=0)], redriven=1),
    ),
    "acknowledged, and yet a dead letter": (
        REDRIVEN,
        outcome(1, letters=[letter()], redriven=1),
    ),
    "a dead letter that is not listed": (
        [received(0), *handled(0, answer=REJECT)],
        outcome(1, letters=[letter(state="not listed")]),
    ),
    "a dead letter is not the record it was": (
        [*stored(0), received(0), *handled(0, answer=REJECT)],
        outcome(1, letters=[letter(value=b"x")]),
    ),
    "resolved, and nobody has acknowledged it": (
        [received(0), *handled(0, answer=REJECT)],
        outcome(1, letters=[letter(state="resolved")]),
    ),
    "pending although confirmed as settled": (
        [received(0), *handled(0)],
        outcome(1, s0="pending"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_a_bad_history_is_found_and_said(what):
    events, end, *orders = BAD[what]
    with pytest.raises(AssertionError, match=what):
        check(events, end, *orders)


def test_what_comes_back_too_soon_is_found():
    events = [received(0), *handled(0, answer=RETRY), received(0, 2, 2, 1), *handled(0, 2)]
    check(events, outcome(1), apart_ns=SECOND // 2)
    with pytest.raises(AssertionError, match=r"came back after 40\.0 ms"):
        check(events, outcome(1), apart_ns=20_000_000)


def test_in_key_order_only_records_of_one_key_wait_for_one_another():
    events = [received(0), received(1), *handled(1), *handled(0)]
    check(events, outcome(2, keys=b"ab"), Order.KEY)
    with pytest.raises(AssertionError, match="begun before 0"):
        check(events, outcome(2, keys=b"aa"), Order.KEY)
    check(events, outcome(2, keys=b"aa"), Order.NONE)
