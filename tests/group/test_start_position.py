"""Where a group starts, where a reset leads, and what out of range means."""

import pytest

from logbroker.errors import InvalidError, OffsetOutOfRangeError
from logbroker.group.settings import GroupSettings, OutOfRange, Start
from logbroker.group.start_position import Moved, Position, out_of_range, reset_to, start_offset

BOUNDS = {"log_start_offset": 500, "high_watermark": 1_000}


@pytest.mark.parametrize(
    "values, found, offset",
    [
        ({}, None, 500),
        ({"start": Start.LATEST}, None, 1_000),
        ({"start": Start.OFFSET, "start_offset": 700}, None, 700),
        ({"start": Start.OFFSET, "start_offset": 7}, None, 500),
        ({"start": Start.OFFSET, "start_offset": 7_000}, None, 1_000),
        ({"start": Start.TIME, "start_time_ms": 9}, 600, 600),
        ({"start": Start.TIME, "start_time_ms": 9}, None, 1_000),
    ],
)
def test_a_group_starts_where_it_is_set_to(values, found, offset):
    assert start_offset(GroupSettings(**values), found=found, **BOUNDS) == offset


def test_a_partition_younger_than_the_group_is_read_from_its_start():
    settings = GroupSettings(start=Start.LATEST)
    assert start_offset(settings, is_new_partition=True, **BOUNDS) == 500


@pytest.mark.parametrize(
    "position, found, expected",
    [
        (Position(Start.EARLIEST), None, Moved(800, 500, 0)),
        (Position(Start.LATEST), None, Moved(800, 1_000, 200)),
        (Position(Start.OFFSET, 900), None, Moved(800, 900, 100)),
        (Position(Start.TIME, time_ms=3), 850, Moved(800, 850, 50)),
        (Position(Start.OFFSET, shift=-100), None, Moved(800, 700, 0)),
        (Position(Start.OFFSET, shift=-9_999), None, Moved(800, 500, 0)),
        (Position(Start.OFFSET, shift=50), None, Moved(800, 850, 50)),
    ],
)
def test_a_reset_says_where_it_leads_and_what_it_passes_over(position, found, expected):
    assert reset_to(position, committed=800, found=found, **BOUNDS) == expected
    assert (position.looked_up_ms is not None) is (found is not None)


def test_a_negative_offset_is_refused():
    with pytest.raises(InvalidError):
        reset_to(Position(Start.OFFSET, -1), committed=0, **BOUNDS)


@pytest.mark.parametrize(
    "policy, offset, expected",
    [
        (OutOfRange.EARLIEST, 100, Moved(100, 500, 400)),
        (OutOfRange.LATEST, 100, Moved(100, 1_000, 900)),
        (OutOfRange.EARLIEST, 5_000, Moved(5_000, 500, 0)),
        (OutOfRange.LATEST, 5_000, Moved(5_000, 1_000, 0)),
        (OutOfRange.ERROR, 500, None),
        (OutOfRange.EARLIEST, 1_000, None),
    ],
)
def test_out_of_range_goes_by_the_policy_and_never_to_0(policy, offset, expected):
    assert out_of_range(policy, offset, **BOUNDS) == expected


@pytest.mark.parametrize("offset", [100, 5_000])
def test_the_error_names_the_range(offset):
    with pytest.raises(OffsetOutOfRangeError) as raised:
        out_of_range(OutOfRange.ERROR, offset, **BOUNDS)
    assert raised.value.details == {
        "offset": str(offset), "log_start_offset": "500", "high_watermark": "1000",
    }  # fmt: skip
