"""The table of states, walked whole."""

from itertools import product

import pytest

from logbroker.errors import ConflictError
from logbroker.group.record_state import FAILURES, TRANSITIONS, Cause, State, next_state


@pytest.mark.parametrize(
    "state, cause", list(product(State, Cause)), ids=lambda value: value.name.lower()
)
def test_a_move_is_in_the_table_or_refused(state, cause):
    if (state, cause) in TRANSITIONS:
        assert next_state(state, cause) is TRANSITIONS[state, cause] or cause is Cause.REJECT
    else:
        with pytest.raises(ConflictError, match=r"cannot .*, it is "):
            next_state(state, cause)


@pytest.mark.parametrize("hopeless", [State.SETTLED, State.PARKED])
@pytest.mark.parametrize("cause", [*sorted(FAILURES, key=str), Cause.REJECT])
def test_the_hopeless_go_where_the_policy_says(cause, hopeless):
    assert next_state(State.LEASED, cause, is_exhausted=True, hopeless=hopeless) is hopeless


def test_only_failures_are_exhausted_and_a_reject_always_is():
    done = next_state(State.LEASED, Cause.RELEASE, is_exhausted=True, hopeless=State.PARKED)
    assert done is State.AVAILABLE
    assert next_state(State.LEASED, Cause.REJECT, hopeless=State.PARKED) is State.PARKED


def test_a_suspect_is_suspect_again_when_it_would_be_available():
    for state, cause in [(State.WAITING, Cause.DUE), (State.LEASED, Cause.RELEASE)]:
        assert next_state(state, cause, is_suspect=True) is State.SUSPECT


def test_a_settled_record_stays_settled():
    assert not [move for move in TRANSITIONS if move[0] is State.SETTLED]
