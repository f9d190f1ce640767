"""What is known to be lost: told once, and no longer than it is so."""

import pytest
from structlog.testing import capture_logs

from logbroker.storage.file.damage import KnownDamage
from logbroker.testing.engine_harness import PARTITION


@pytest.fixture
def known():
    made = KnownDamage(PARTITION)
    made.report(20, 30)
    return made


def test_a_range_is_told_once_and_so_is_each_part_of_it(known):
    with capture_logs() as logs:
        for first, end in [(20, 30), (22, 30), (25, 26), (40, 50), (40, 50), (7, 7)]:
            known.report(first, end)
    assert [(line["offset"], line["next_offset"]) for line in logs] == [(40, 50)]
    assert known.ranges(0) == ((20, 30), (40, 50))


def test_what_retention_has_taken_is_not_told_of(known):
    assert known.ranges(25) == ((25, 30),)
    assert known.ranges(30) == ()


def test_what_is_good_again_is_told_and_forgotten(known):
    known.report(60, 70)
    with capture_logs() as logs:
        known.replace(0, 50, [(24, 27), (40, 41)])
    assert known.ranges(0) == ((24, 27), (40, 41), (60, 70))
    told = [(line["event"], line["offset"], line["next_offset"]) for line in logs]
    assert told == [("data lost", 40, 41), ("damage gone", 20, 24), ("damage gone", 27, 30)]
    with capture_logs() as logs:
        known.replace(0, 50, [(24, 27), (40, 41)])
    assert logs == []
