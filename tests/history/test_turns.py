"""Who did not wait for its turn is found and said."""

import pytest

from logbroker.group.settings import Order

from .events import BrokerKilled, Ended, Reset
from .told import LATER_LIFE, RELEASE, RETRY, answered, check, handled, outcome, received

BAD = {
    "begun before 0 was through": (
        [received(0), received(1), *handled(1), *handled(0)],
        outcome(2),
    ),
    "delivered before 0 was through: .*under 4": (
        [
            *(received(0), *handled(0), received(1, 2), *handled(1, 2), Reset("t", 0, 2, 0)),
            *(received(1, 4), *handled(1, 4), received(0, 3), *handled(0, 3)),
        ],
        outcome(2),
    ),
    "delivered before 0 was through: .*under 2": (
        [
            *(received(0), *answered(0), Ended("a"), received(1, 2, member="b")),
            *(*handled(1, 2, member="b"), received(0, 3, 2, member="b")),
            *handled(0, 3, member="b"),
        ],
        outcome(2),
    ),
    "delivered before 0 was through: .*under 3": (
        [
            *(received(0), *handled(0, answer=RETRY), received(1, 3), *handled(1, 3)),
            *(received(0, 4, 2, 1), *handled(0, 4)),
        ],
        outcome(2),
    ),
    "delivered before 0 was through: .*under 5": (
        [
            *(received(0), received(1, 5, member="b"), *handled(0)),
            *handled(1, 5, member="b"),
        ],
        outcome(2),
    ),
    "delivered before 0 was through: .*under 6": (
        [received(0), *handled(0, answer=RELEASE), received(1, 6), *handled(1, 6)],
        outcome(2, s0="pending"),
    ),
    "delivered before 0 was through: .*under 7": (
        [
            *(received(1, 7), *handled(1, 7), BrokerKilled()),
            *(received(0, LATER_LIFE), *handled(0, LATER_LIFE)),
        ],
        outcome(2),
        Order.KEY,
    ),
    "begun although what is before it has failed": (
        [
            *(received(0), received(1), *handled(0, answer=RETRY), *handled(1)),
            *(received(0, 2, 2, 1), *handled(0, 2)),
        ],
        outcome(2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_what_did_not_wait_is_found_and_said(what):
    events, end, *orders = BAD[what]
    with pytest.raises(AssertionError, match=what):
        check(events, end, *orders)


def test_in_key_order_only_records_of_one_key_wait_for_one_another():
    events = [received(0), received(1), *handled(1), *handled(0)]
    check(events, outcome(2, keys=b"ab"), Order.KEY)
    with pytest.raises(AssertionError, match="delivered before 0"):
        check(events, outcome(2, keys=b"aa"), Order.KEY)
    check(events, outcome(2, keys=b"aa"), Order.NONE)
