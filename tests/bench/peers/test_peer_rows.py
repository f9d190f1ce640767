"""Rows, goals and tables of what was measured side by side."""

import pytest

from bench.peers.goals import BEST, goals
from bench.peers.rows import alone, beside, is_more_better, level_of, measured
from bench.peers.system import Level
from bench.peers.table import goal_table, is_reason, workload_table
from bench.rows import AtLeast, AtMost, Samples

WHAT = "publish 100 B, synced"
ROWS = beside(WHAT, "records/s", ["logbroker"], ["kafka", "nats"], lambda _, __: AtLeast(2))


def samples_of(**values: list[float]) -> Samples:
    samples = Samples()
    for who, found in values.items():
        for value in found:
            samples.add(f"{WHAT}, {who}", value)
    return samples


def test_a_pair_has_our_value_and_the_ratio_of_the_medians() -> None:
    found = measured(ROWS, samples_of(logbroker=[10, 30, 20], kafka=[4, 5, 6], nats=[40]))
    by_name = {row["name"]: row for row in found}
    pair = by_name[f"{WHAT}, logbroker / kafka"]
    assert (pair["value"], pair["ratio"], pair["met"]) == (20, 4, True)
    assert (pair["limit"], pair["goal"], pair["their"]) == (f"{WHAT}, kafka", ">= 2", "kafka")
    assert by_name[f"{WHAT}, logbroker / nats"]["met"] is False
    own = by_name[f"{WHAT}, kafka"]
    assert (own["what"], own["who"], own["level"]) == (WHAT, "kafka", "synced")
    assert (own["samples"], own["value"], own["higher_is_better"]) == ([4, 5, 6], 5, True)


def test_what_was_not_measured_has_no_row_and_no_ratio() -> None:
    found = measured(ROWS, samples_of(logbroker=[10], nats=[0]))
    assert [row["name"] for row in found] == [f"{WHAT}, logbroker", f"{WHAT}, nats"]


def test_a_goal_says_what_it_is_of_and_whether_it_is_met() -> None:
    (kafka, nats) = goals("publish", ROWS, samples_of(logbroker=[10], kafka=[4]))
    assert kafka["goal"] == f"{WHAT}: at least 2 x kafka"
    assert (kafka["limit"], kafka["value"], kafka["met"]) == (">= 2", 2.5, True)
    assert (kafka["level"], kafka["row"]) == ("synced", f"{WHAT}, logbroker / kafka")
    assert (nats["value"], nats["met"]) == (None, None)


def test_a_goal_beside_the_best_is_one_row_that_names_the_best() -> None:
    rows = beside(WHAT, "us", ["logbroker"], ["kafka", "nats"], lambda _, __: BEST)
    (goal,) = goals("confirm", rows, samples_of(logbroker=[10], kafka=[40], nats=[8]))
    assert (goal["their"], goal["value"], goal["met"]) == ("nats", 1.25, False)


def test_at_least_once_a_peer_is_no_goal_beside_the_best() -> None:
    rows = beside(WHAT, "records/s", ["logbroker"], ["kafka"], lambda _, __: AtLeast(1))
    (goal,) = goals("publish", rows, samples_of(logbroker=[10], kafka=[4]))
    assert (goal["goal"], goal["met"]) == (f"{WHAT}: at least 1 x kafka", True)


def test_a_goal_of_a_value_is_met_by_the_value() -> None:
    rows = alone(WHAT, "records", ["logbroker"], lambda _: AtMost(0))
    (goal,) = goals("kill", rows, samples_of(logbroker=[0, 1, 1]))
    assert (goal["value"], goal["met"], goal["unit"]) == (1, False, "records")


def test_a_table_has_a_line_for_each_and_says_why_one_failed() -> None:
    samples = samples_of(logbroker=[10, 12], kafka=[4, 4])
    found = measured(ROWS, samples)
    failed = {f"{WHAT}, nats": ["RuntimeError: publish: no answer after 60 s"]}
    text = workload_table("Publish", ROWS, found, failed)
    assert "logbroker 2.75 x (>= 2: met)" in text
    assert "failed: RuntimeError: publish: no answer after 60 s" in text
    assert "10.0 to 12.0" in text


def test_a_table_of_goals_counts_them() -> None:
    text = goal_table(goals("publish", ROWS, samples_of(logbroker=[10], kafka=[6])))
    assert "MISSED" in text
    assert "met: 0, missed: 1, not measured: 1" in text


@pytest.mark.parametrize(
    ("failed", "what", "is_one"),
    [
        ("confirmed, synced", "confirmed, synced, p50", True),
        ("confirmed, synced", "confirmed, written, p50", False),
        ("SIGKILL under load, synced", "confirmed and lost, synced", True),
        ("SIGKILL under load, synced", "confirmed and lost, written", False),
        ("publish 100 B", "publish 1,000 B", False),
        ("start, synced", "publish 100 B, synced", True),
        ("fill to work, written", "work queue, 1 worker, written", True),
    ],
)
def test_a_failure_is_the_reason_for_what_it_would_have_given(failed, what, is_one) -> None:
    assert is_reason(failed, what, "SIGKILL under load") == is_one


def test_a_level_is_read_from_what_is_measured() -> None:
    assert level_of("end to end at 1,000/s, written, p99") is Level.WRITTEN
    assert level_of("RSS idle") is None


def test_times_and_sizes_are_better_when_small() -> None:
    assert [is_more_better(unit) for unit in ("records/s", "us", "MiB", "s")] == [
        True,
        False,
        False,
        False,
    ]
