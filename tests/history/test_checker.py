"""Nothing is found wrong with a good history, however late its members noted things."""

import pytest

from logbroker.group.settings import Order

from .events import (
    Answered,
    Begun,
    BrokerKilled,
    Confirmed,
    Cut,
    Ended,
    How,
    RedriveAsked,
    Reset,
    Trimmed,
)
from .told import (
    ACK,
    LATER_LIFE,
    REDRIVEN,
    REJECT,
    RELEASE,
    RETRY,
    TWICE,
    answered,
    at,
    back,
    check,
    handled,
    late,
    letter,
    outcome,
    received,
    stored,
)

WHOLE = outcome(3)
WITH_A_GAP = WHOLE._replace(
    log={place: found for place, found in WHOLE.log.items() if place.offset != 1},
    states={place: found for place, found in WHOLE.states.items() if place.offset != 1},
)

GOOD = {
    "one after another": (
        [*stored(0, 1, keys=b"ab"), received(0), received(1), *handled(0), *handled(1)],
        outcome(2, keys=b"ab"),
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
        [
            *(received(0), *answered(0), BrokerKilled()),
            *(received(0, LATER_LIFE, 1), *handled(0, LATER_LIFE)),
        ],
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
        [
            *(received(0), back(0), BrokerKilled()),
            *(received(0, LATER_LIFE, 1), *handled(0, LATER_LIFE)),
        ],
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
        [
            *(received(0), Ended("a", How.LEFT), received(0, 2, 2, member="b")),
            *handled(0, 2, member="b"),
        ],
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
        outcome(2, keys=b"ab"),
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
    "a dead letter nobody saw fail, of a trimmed record whose producer had no answer": (
        [Ended("a"), Ended("a"), Ended("a"), Trimmed("t", 0, 1)],
        outcome(1, first=1, letters=[letter(failures=3)]),
    ),
    "a delivery of which its member hears, and dies, when another has done with it": (
        [
            *(received(0, 2, 2, 1, member="b"), *handled(0, 2, member="b")),
            *(received(1, 3, member="b"), received(0), Begun("a", 1, at(0)), Ended("a")),
            *handled(1, 3, member="b"),
        ],
        outcome(2),
    ),
    "an answer of which its member hears after what waited for it was begun": (
        [
            *(received(0), *answered(0), received(1, 2, member="b"), *handled(1, 2, member="b")),
            Confirmed("a", 1, at(0), ACK),
        ],
        outcome(2),
    ),
    "a delivery swallowed by a member whose end comes after the next one": (
        [
            *(received(0), *handled(0, answer=RELEASE), received(0, 3, 3, 1, member="b")),
            *(*handled(0, 3, member="b"), Ended("c")),
        ],
        outcome(1),
    ),
    "a delivery swallowed by a member whose end was not noticed": (
        [Ended("c"), received(0), *handled(0, answer=RELEASE), received(0, 3, 3), *handled(0, 3)],
        outcome(1),
    ),
    "an answer refused by a broker that was started since": (
        [
            *(received(0), BrokerKilled(), Answered("a", 1, at(0), ACK), late(0)),
            *(received(0, LATER_LIFE, 2), *handled(0, LATER_LIFE)),
        ],
        outcome(1),
    ),
    "an acknowledgement that a killed broker lost, and the delivery behind it": (
        [
            *(received(0), *answered(0), received(1, 2), BrokerKilled()),
            *(received(0, LATER_LIFE), *handled(0, LATER_LIFE)),
            *(received(1, LATER_LIFE + 1), *handled(1, LATER_LIFE + 1)),
        ],
        outcome(2),
    ),
    "given up, and then what is behind it": (
        [*TWICE, received(1, 4), *handled(1, 4)],
        outcome(2, letters=[letter(failures=3)]),
    ),
    "a delivery swallowed with a stream that was cut": (
        [Cut("a"), received(0, 2, 2, 1), *handled(0, 2)],
        outcome(1),
    ),
    "a dead letter nobody saw fail, from before a reset": (
        [
            *(*stored(0), Ended("a"), Ended("a"), Ended("a"), Reset("t", 0, 1, 0)),
            *(received(0, 9), *handled(0, 9)),
        ],
        outcome(1, letters=[letter(failures=3)]),
    ),
    "the same of a record whose producer has no answer before the reset": (
        [
            *(Ended("a"), Ended("a"), Ended("a"), Reset("t", 0, 1, 0), *stored(0)),
            *(received(0, 9), *handled(0, 9)),
        ],
        outcome(1, letters=[letter(failures=3)]),
    ),
    "a gap that a disk has made": (
        [*stored(0, 2), received(0), *handled(0), received(2, 2), *handled(2, 2)],
        WITH_A_GAP._replace(is_whole=False),
    ),
    "pending": (stored(0), outcome(1, s0="pending")),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_a_good_history_is_good(name):
    events, end, *orders = GOOD[name]
    for order in orders or Order:
        check(events, end, order)


def test_a_member_that_leaves_is_not_told_of_what_expires_meanwhile():
    events = [
        *(received(0), Ended("a", How.LEFT), received(0, 2, 2, 1, member="b")),
        *handled(0, 2, member="b"),
    ]
    check(events, outcome(1), lease_ms=1_500)
    with pytest.raises(AssertionError, match="failures 1, which can be 0 to 0"):
        check(events, outcome(1), lease_ms=30_000)


def test_a_gap_that_no_disk_has_made_is_a_fault():
    events = [*stored(0, 2), received(0), *handled(0), received(2, 2), *handled(2, 2)]
    with pytest.raises(AssertionError, match="not as it was produced"):
        check(events, WITH_A_GAP)


def test_a_member_that_hears_nothing_may_swallow_one_delivery_after_another():
    events, end = [Ended("deaf")], outcome(1, letters=[letter(failures=3)])
    check(events, end, lease_ms=1_000, deaf_ms=2_000)
    with pytest.raises(AssertionError, match=r"1 dead letters of .*, not 0"):
        check(events, end, lease_ms=1_000, deaf_ms=1_000)
