"""Small sums behind the numbers of a run."""

import threading

import pytest

from bench.peers.client import STEP, Consumed
from bench.peers.pace import TICK_S, stamp_of, value_stamp
from bench.peers.quantiles import percentiles, quantiles
from bench.peers.scale import SCALES
from bench.peers.threads import done_within
from bench.peers.workloads.filled import count_of
from bench.peers.workloads.kill import lost_of


def consumed(marks: list[float]) -> Consumed:
    return Consumed(
        count=STEP * len(marks), first=0, last=marks[-1], latencies=[], numbers=[], marks=marks
    )


def test_a_rate_is_without_what_members_may_have_had_at_hand() -> None:
    at_once = [1.0] * 10
    steady = [1.0 + number for number in range(1, 31)]
    assert consumed(at_once + steady).rate == pytest.approx(STEP)


def test_a_rate_of_several_members_is_that_of_all_together() -> None:
    assert consumed([float(at // 2) for at in range(80)]).rate == pytest.approx(2 * STEP, rel=0.05)


def test_too_few_records_tell_no_rate() -> None:
    with pytest.raises(RuntimeError, match="too few"):
        consumed([1.0, 2.0]).rate  # noqa: B018  # it raises


@pytest.mark.parametrize(
    ("ranges", "lost"),
    [
        ([(1, 101)], 0),
        ([(0, 301)], 0),
        ([(1, 50), (51, 101)], 1),
        ([], 100),
        ([(101, 200)], 100),
    ],
)
def test_only_confirmed_numbers_can_be_lost(ranges, lost) -> None:
    assert lost_of(100, ranges) == lost


def test_a_count_to_read_is_bounded_by_reading_by_filling_and_by_the_scale() -> None:
    scale = SCALES["full"]
    least, most = scale.consume_counts
    assert count_of(scale, 1_000, 1e9) == least
    assert count_of(scale, 1e9, 1e9) == most
    assert count_of(scale, 100_000, 1e9) == 100_000 * scale.consume_seconds
    assert count_of(scale, 1e9, 10_000) == 10_000 * scale.fill_seconds


def test_a_warm_up_is_shorter_and_of_the_same_data() -> None:
    scale = SCALES["full"]
    warming = scale.warming()
    assert warming.seconds < scale.seconds
    assert warming.confirm_count < scale.confirm_count
    assert warming.replay_bytes == scale.replay_bytes


def test_a_record_that_is_sent_late_says_when_it_was_due() -> None:
    assert stamp_of(1.0, 1.0 + TICK_S / 2) == 1.0 + TICK_S / 2
    assert stamp_of(1.0, 1.5) == 1.0
    assert int.from_bytes(value_stamp(1.5, 100)[:8], "big") == 1_500_000_000
    assert len(value_stamp(1.5, 100)) == 100


def test_percentiles_are_of_the_ordered_times_in_microseconds() -> None:
    found = percentiles([number / 1_000 for number in range(1_000, 0, -1)])
    assert found == {
        "p50": pytest.approx(501_000),
        "p90": pytest.approx(901_000),
        "p99": pytest.approx(991_000),
        "p99.9": pytest.approx(1_000_000),
        "max": pytest.approx(1_000_000),
    }


def test_quantiles_rise_and_end_with_the_slowest() -> None:
    found = quantiles([number / 1_000 for number in range(1_000)])
    assert [part for part, _ in found] == sorted(part for part, _ in found)
    assert found[-1] == (1.0, 0.999)
    assert quantiles([]) == []


def test_what_hangs_is_left_alone_after_some_time() -> None:
    never = threading.Event()
    try:
        assert not done_within(0.01, never.wait)
        assert done_within(60, lambda: None)
    finally:
        never.set()
