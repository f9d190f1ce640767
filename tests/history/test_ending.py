"""What is wrong with how a run has ended is found and said."""

import pytest

from .events import Ended, RedriveAsked, Trimmed
from .told import (
    REDRIVEN,
    REJECT,
    RELEASE,
    RETRY,
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
    "parked again without a reason": (
        [
            *(received(0), *handled(0, answer=REJECT), RedriveAsked()),
            *(received(0, 2, 1, 0, 1, topic="dlq"), *handled(0, 2, RELEASE, topic="dlq")),
        ],
        outcome(1, letters=[letter(redrives=1)], redriven=1),
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
    "a dead letter is not the record it was: .*offset=1": (
        [received(1), *handled(1, answer=REJECT), Trimmed("t", 0, 1)],
        outcome(1, letters=[letter(source=1)]),
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
def test_a_bad_end_is_found_and_said(what):
    events, end, *orders = BAD[what]
    with pytest.raises(AssertionError, match=what):
        check(events, end, *orders)
