"""Ranges of offsets beside a plain set of them."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from logbroker.record.offset_ranges import OffsetRanges, joined

OFFSETS = st.integers(0, 30)
STEPS = st.lists(st.tuples(st.sampled_from(["add", "remove"]), OFFSETS, OFFSETS), max_size=30)


def made_by(steps):
    ranges, plain = OffsetRanges(), set()
    for verb, first, end in steps:
        getattr(ranges, verb)(first, end)
        (plain.update if verb == "add" else plain.difference_update)(range(first, end))
    return ranges, plain


@given(STEPS)
def test_ranges_hold_what_a_set_holds_and_never_touch(steps):
    ranges, plain = made_by(steps)
    assert list(ranges) == sorted(plain)
    assert ranges.count == len(plain)
    assert bool(ranges) is bool(plain)
    assert ranges.ranges() == joined(sorted(plain))
    assert all(left < right for left, right in pairwise(ranges.edges))
    assert ranges == ranges.copy() == OffsetRanges(ranges.ranges())
    if plain:
        assert (ranges.first, ranges.end) == (min(plain), max(plain) + 1)


@given(STEPS, OFFSETS, OFFSETS)
def test_questions_are_answered_as_a_set_would(steps, first, end):
    ranges, plain = made_by(steps)
    asked = set(range(first, end))
    assert (first in ranges) is (first in plain)
    assert ranges.meets(first, end) is bool(asked & plain) or first >= end
    assert ranges.holds(first, end) is (asked <= plain) or first >= end
    assert ranges.within(first, end) == joined(sorted(asked & plain))
    assert ranges.gaps(first, end) == joined(sorted(asked - plain))
    assert ranges.next_gap(first) == next(at for at in range(first, 99) if at not in plain)
    assert ranges.next_held(first, 50) == next(at for at in range(first, 51) if at in plain | {50})


@given(STEPS, OFFSETS)
def test_what_is_below_an_offset_is_dropped(steps, offset):
    ranges, plain = made_by(steps)
    ranges.drop_below(offset)
    assert list(ranges) == sorted(at for at in plain if at >= offset)
    ranges.clear()
    assert not ranges
