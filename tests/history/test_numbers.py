"""Leases on a record that do not follow from those before are found and said."""

import pytest

from logbroker.group.settings import Order

from .events import BrokerKilled, Confirmed, Ended, How, RedriveAsked
from .told import (
    ACK,
    LATER_LIFE,
    REDRIVEN,
    REJECT,
    RELEASE,
    RETRY,
    SECOND,
    TWICE,
    answered,
    at,
    back,
    check,
    handled,
    letter,
    outcome,
    received,
)

BAD = {
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
    "delivery number 1 after 1: .*under 1000001": (
        [
            *(received(0), received(1, 2), *handled(1, 2), BrokerKilled()),
            *(received(0, LATER_LIFE), *handled(0, LATER_LIFE)),
        ],
        outcome(2),
        Order.NONE,
    ),
    "failures 0, which can be 1 to 1": (
        [
            *(received(0), *handled(0, answer=RETRY), BrokerKilled()),
            *(received(0, LATER_LIFE, 2), *handled(0, LATER_LIFE)),
        ],
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
    "two live leases on": (
        [received(0), received(0, 2, 2, member="b"), *handled(0, 2, member="b")],
        outcome(1),
    ),
    "two live leases, the older one was good": (
        [received(0), received(0, 2, 2, member="b"), *handled(0)],
        outcome(1),
    ),
    "two live leases, and nobody was told": (
        [
            *(received(0), received(1, 2), received(0, 3, 2, member="b"), *handled(1, 2)),
            *(Ended("a", How.LEFT), *handled(0, 3, member="b")),
        ],
        outcome(2),
        Order.NONE,
    ),
    "delivered again although confirmed as settled: .*under 2": (
        [received(0), *answered(0), received(0, 2, 2), Confirmed("a", 1, at(0), ACK)],
        outcome(1),
    ),
    "a suspect among others": (
        [
            *(received(0), received(1), Ended("a"), received(0, 2, 2), received(1, 2, 2)),
            *(*handled(0, 2), *handled(1, 2)),
        ],
        outcome(2),
        Order.NONE,
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
    "only dead letters are redriven": (
        [RedriveAsked(), received(0, redrives=1), *handled(0)],
        outcome(1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_what_does_not_follow_is_found_and_said(what):
    events, end, *orders = BAD[what]
    with pytest.raises(AssertionError, match=what):
        check(events, end, *orders)


def test_what_comes_back_too_soon_is_found():
    events = [received(0), *handled(0, answer=RETRY), received(0, 2, 2, 1), *handled(0, 2)]
    check(events, outcome(1), apart_ns=SECOND // 2)
    with pytest.raises(AssertionError, match=r"came back after 40\.0 ms"):
        check(events, outcome(1), apart_ns=20_000_000)
