"""Settings of groups and their retries: what is refused, and how back-offs grow."""

import re
from pathlib import Path
from random import Random

import pytest

from logbroker.errors import InvalidError
from logbroker.group.record_state import State
from logbroker.group.retry_policy import Exhausted, RetryPolicy
from logbroker.group.settings import BOUNDS, AfterDeadLetter, GroupSettings, Order

BAD = [
    (GroupSettings, {"order": "sideways"}),
    (GroupSettings, {"order": "key"}),  # text is not the choice itself
    (GroupSettings, {"lease_ms": 99}),
    (GroupSettings, {"lease_ms": True}),
    (GroupSettings, {"max_unsettled": 0}),
    (GroupSettings, {"start_offset": -1}),
    (GroupSettings, {"group_retention_ms": -1}),
    (GroupSettings, {"order": Order.NONE, "after_dead_letter": AfterDeadLetter.HOLD}),
    (RetryPolicy, {"initial_ms": 0}),
    (RetryPolicy, {"initial_ms": 2_000, "max_ms": 1_000}),
    (RetryPolicy, {"multiplier": 0.5}),
    (RetryPolicy, {"max_failures": 0}),
    (RetryPolicy, {"exhausted": "drop"}),
]


@pytest.mark.parametrize("kind, values", BAD, ids=str)
def test_what_is_out_of_range_is_refused_and_named(kind, values):
    with pytest.raises(InvalidError) as raised:
        kind(**values)
    assert raised.value.reason == "INVALID_SETTING"
    assert raised.value.details["setting"].removeprefix("retry.") in values


@pytest.mark.parametrize("name", ["lease_ms", "max_unsettled"])
def test_the_bounds_are_those_of_the_settings_in_the_proto(name):
    text = Path("proto/logbroker/v1/group.proto").read_text()
    [comment] = re.findall(rf"((?:  // .*\n)+)  optional \w+ {name} =", text)
    [bounds] = re.findall(r"([\d,]+) to ([\d,]+)", comment.replace("\n  //", ""))
    low, high = (int(number.replace(",", "")) for number in bounds)
    assert (low, high) == BOUNDS[name]
    for value in (low, high):
        assert getattr(GroupSettings(**{name: value}), name) == value
    for value in (low - 1, high + 1):
        with pytest.raises(InvalidError, match=f"{low} to {high}"):
            GroupSettings(**{name: value})


def test_a_back_off_grows_is_capped_and_loses_at_most_half():
    policy, random = RetryPolicy(initial_ms=100, multiplier=3, max_ms=1_000), Random(1)
    for failures, ceiling in [(1, 100), (2, 300), (3, 900), (4, 1_000), (1_000, 1_000)]:
        waits = {policy.backoff_ms(failures, random) for _ in range(200)}
        assert ceiling // 2 <= min(waits) < max(waits) <= ceiling


def test_only_block_parks():
    assert {how: RetryPolicy(exhausted=how).hopeless for how in Exhausted} == {
        Exhausted.DEAD_LETTER: State.SETTLED,
        Exhausted.DISCARD: State.SETTLED,
        Exhausted.BLOCK: State.PARKED,
    }
