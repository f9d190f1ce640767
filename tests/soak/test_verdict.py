"""The verdict of a soak: a sentence for each thing that is wrong, and none if nothing is."""

import pytest

from .account import Account
from .samples import Sample, Samples
from .sizes import FULL, MIB
from .verdict import verdict_of

GOOD = {
    "acknowledged_count": 100,
    "stored_count": 100,
    "unseen_count": 0,
    "unsettled": {"a": 0},
    "parked": {"a": 0},
}


def samples(rss=lambda at: 200, files=lambda at: 50, threads=lambda at: 10, ms=lambda at: 5):
    """Ten minutes, a sample each second."""
    taken = [
        Sample(float(at), int(rss(at) * MIB), int(files(at)), int(threads(at)), at / 4, ms(at))
        for at in range(600)
    ]
    return Samples(taken, loop_lags_ms=[2.0] * 120)


def faults(found=None, account=None):
    account = Account(**{**GOOD, **(account or {})})
    return verdict_of(found or samples(), account, FULL).faults


def test_a_broker_at_rest_has_no_faults():
    assert faults() == []


@pytest.mark.parametrize(
    "leak, said",
    [
        ({"rss": lambda at: 200 + at / 10}, "RSS grew: 29.9 MiB in the second half (360.0 MiB"),
        ({"files": lambda at: 50 + at / 10}, "open files grew: 2"),
        ({"threads": lambda at: 10 + at / 20}, "threads grew: 1"),
        (
            {"ms": lambda at: 5 + at * at / 100},
            "a publish became slow: p99 224 ms",
        ),
    ],
)
def test_each_thing_that_grows_is_named(leak, said):
    [sentence] = faults(samples(**leak))
    assert sentence.startswith(said)


def test_an_event_loop_that_becomes_late_is_named():
    found = samples()
    found.loop_lags_ms = [5.0] * 60 + [900.0] * 60
    [sentence] = faults(found)
    assert sentence.startswith("the event loop became slow: p99 5 ms")


@pytest.mark.parametrize(
    "wrong, said",
    [
        ({"stored_count": 99}, "99 records are stored: 100 acknowledged, 0 unknown"),
        ({"stored_count": 101}, "101 records are stored"),
        ({"unseen_count": 3}, "3 records were never given to the witness"),
        ({"unsettled": {"a": 7, "b": 0}}, "a: 7 records are not settled"),
        ({"parked": {"a": 2}}, "a: 2 dead letters stay"),
        ({"errors": {"reset: BROKER_FAULT": 4}}, "reset: BROKER_FAULT, 4 times"),
    ],
)
def test_each_thing_that_is_wrong_at_the_end_is_named(wrong, said):
    [sentence] = faults(account=wrong)
    assert sentence.startswith(said)


def test_what_nobody_knows_of_may_be_stored_or_not():
    for stored in (100, 101, 102):
        assert faults(account={"unknown_count": 2, "stored_count": stored}) == []
    assert faults(account={"unknown_count": 2, "stored_count": 103})


def test_an_account_comes_back_from_json():
    account = Account(**GOOD)
    account.done["reset"] += 2
    assert Account.of(account.to_json()) == account
