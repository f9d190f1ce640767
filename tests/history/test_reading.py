"""What is wrong whatever the order of things was is found and said."""

import pytest

from .events import Confirmed, Reset
from .told import ACK, answered, at, back, check, handled, late, outcome, received

BAD = {
    "a token is used twice": (
        [received(0), received(1, member="b"), *handled(0), *handled(1, member="b")],
        outcome(2),
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
    "delivered, and the group was moved past it": (
        [Reset("t", 0, 0, 1), received(0), *handled(0)],
        outcome(1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_is_found_and_said(what):
    events, end, *orders = BAD[what]
    with pytest.raises(AssertionError, match=what):
        check(events, end, *orders)
