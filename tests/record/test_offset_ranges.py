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
    assert ranges.count_within(first, end) == len(asked & plain)
    assert ranges.missing(range(first, end)) == sorted(asked - plain)
    assert ranges.gaps(first, end) == joined(sorted(asked - plain))
    assert ranges.next_gap(first) == next(at for at in range(first, 99) if at not in plain)
    assert ranges.next_held(first, 50) == next(at for at in range(first, 51) if at in plain | {50})


SETS = st.sets(st.integers(0, 60), max_size=40)
"""Offsets that lie here and there, so that many ranges are handled in one pass."""


@given(SETS, SETS)
def test_many_ranges_at_once_do_what_they_do_one_by_one(here, given_offsets):
    before, ranges = OffsetRanges(joined(sorted(here))), joined(sorted(given_offsets))
    grown, shrunk = before.copy(), before.copy()
    assert joined(sorted(here & given_offsets)) == joined(OffsetRanges(grown.add_all(ranges)))
    shrunk.remove_all(ranges)
    for after, plain in ((grown, here | given_offsets), (shrunk, here - given_offsets)):
        assert after == OffsetRanges(joined(sorted(plain)))
        assert after.count == len(plain)
    assert before.holds_all(ranges) is (given_offsets <= here)


@given(SETS, st.sets(st.integers(0, 6)), st.booleans())
def test_many_ranges_that_all_are_there_or_of_which_none_is(here, passed_over, are_there):
    """What a lease takes and gives back: the way that looks at no range by itself."""
    meant = here if are_there else set(range(61)) - here
    meant = {offset for offset in meant if offset % 7 not in passed_over}
    ranges, held = joined(sorted(meant)), OffsetRanges(joined(sorted(here)))
    assert held.holds_all(ranges) is (are_there or not meant)
    assert OffsetRanges(held.copy().add_all(ranges)) == OffsetRanges(ranges if are_there else ())
    if are_there:
        held.remove_all(ranges)
        assert held == OffsetRanges(joined(sorted(here - meant)))
        held.add_all(ranges)
        assert held == OffsetRanges(joined(sorted(here)))
    else:
        held.add_all(ranges)
        assert held == OffsetRanges(joined(sorted(here | meant)))
        held.remove_all(ranges)
    assert held == OffsetRanges(joined(sorted(here)))
    assert held.count == len(here)


def test_ranges_that_touch_or_overlap_are_taken_in_too():
    ranges = [(0, 2), (2, 4), (3, 9), (12, 13), (13, 14), (20, 21)]
    assert OffsetRanges(ranges).ranges() == [(0, 9), (12, 14), (20, 21)]
    held = OffsetRanges([(30, 31)])
    held.add_all(ranges)
    assert held.ranges() == [(0, 9), (12, 14), (20, 21), (30, 31)]
    held.remove_all(ranges)
    assert held.ranges() == [(30, 31)]


@given(STEPS, OFFSETS, st.integers(1, 12), st.integers(1, 4))
def test_the_lowest_are_the_first_of_a_sorted_set(steps, below, count, range_count):
    ranges, plain = made_by(steps)
    first = [at for at in sorted(plain) if at < below][:count]
    assert list(ranges.lowest(below, count)) == joined(first)
    assert list(ranges.lowest(below, count, range_count)) == joined(first)[:range_count]


def test_ranges_far_apart_are_taken_in_and_out_too():
    ranges = OffsetRanges([(at, at + 1) for at in range(0, 100_000, 2)])
    edges = len(ranges.edges)
    added = [(at, at + 1) for at in range(1, 100_000, 10_000)]
    assert ranges.add_all(added) == []
    assert len(ranges.edges) == edges - 2 * len(added)
    ranges.remove_all(added)
    assert len(ranges.edges) == edges


@given(STEPS, OFFSETS)
def test_what_is_below_an_offset_is_dropped(steps, offset):
    ranges, plain = made_by(steps)
    ranges.drop_below(offset)
    assert list(ranges) == sorted(at for at in plain if at >= offset)
    ranges.clear()
    assert not ranges
