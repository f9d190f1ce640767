"""Segments in, how many to drop out."""

import pytest

from logbroker.config import LogConfig
from logbroker.storage.file.retention import Kept, expired_count, without_needed

NOW = 1_000_000


def by_time(*ages, retention_ms=100):
    segments = [Kept(10, None if age is None else NOW - age) for age in ages]
    return expired_count(segments, LogConfig(retention_ms=retention_ms), NOW)


def by_size(*sizes, retention_bytes):
    segments = [Kept(size, NOW) for size in sizes]
    config = LogConfig(retention_ms=0, retention_bytes=retention_bytes)
    return expired_count(segments, config, NOW)


@pytest.mark.parametrize(
    "ages, count",
    [
        ((), 0),
        ((100,), 0),
        ((101,), 1),
        ((300, 200, 100, 0), 2),
        ((300, 200, 150), 3),
        ((50, 500), 0),
        ((-5_000,), 0),
    ],
)
def test_segments_go_when_their_last_batch_is_too_old(ages, count):
    assert by_time(*ages) == count


@pytest.mark.parametrize(
    "ages, count", [((None, 200, 50), 2), ((None, 50), 0), ((None,), 0), ((200, None), 1)]
)
def test_a_segment_nobody_can_read_goes_with_the_one_behind_it(ages, count):
    assert by_time(*ages) == count


@pytest.mark.parametrize(
    "sizes, limit, count",
    [((), 10, 0), ((5, 5), 10, 0), ((5, 5, 5), 10, 1), ((5, 5, 4), 10, 0), ((99,), 10, 0)],
)
def test_the_oldest_go_as_long_as_enough_remains(sizes, limit, count):
    assert by_size(*sizes, retention_bytes=limit) == count


def test_without_limits_nothing_goes():
    assert by_time(10**9, retention_ms=0) == 0
    assert by_size(10**9, 1, retention_bytes=0) == 0


def test_either_limit_is_enough():
    segments = [Kept(10, NOW - 200), Kept(10, NOW), Kept(10, NOW)]
    assert expired_count(segments, LogConfig(retention_ms=100, retention_bytes=10), NOW) == 2


def by_time_if_needed(needed_from, *ages):
    """Returns how many go of segments of ten offsets each."""
    segments = [Kept(10, NOW - age, 10 * at) for at, age in enumerate(ages, 1)]
    config = LogConfig(retention_ms=100)
    count = expired_count(segments, config, NOW)
    return without_needed(count, segments, config, NOW, needed_from)


@pytest.mark.parametrize("needed_from, count", [(0, 0), (9, 0), (10, 1), (25, 2), (30, 3), (99, 3)])
def test_what_is_needed_stays_and_what_lies_before_it_goes(needed_from, count):
    assert by_time_if_needed(needed_from, 180, 160, 140, 20) == count


def test_what_is_needed_goes_when_it_is_twice_as_old_as_it_may_be():
    assert by_time_if_needed(0, 300, 201, 200, 20) == 2


@pytest.mark.parametrize("size, count", [(15, 0), (20, 0), (29, 0), (30, 1), (35, 1), (45, 2)])
def test_what_is_needed_goes_when_there_is_twice_as_much_as_may_be(size, count):
    segments = [Kept(10, NOW, 1), Kept(10, NOW, 2), Kept(size - 20, NOW, 3)]
    config = LogConfig(retention_ms=0, retention_bytes=10)
    assert expired_count(segments, config, NOW) >= count
    assert without_needed(3, segments, config, NOW, 0) == count
