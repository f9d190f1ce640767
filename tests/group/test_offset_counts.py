"""Counts of offsets beside a plain dict of them."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from logbroker.group.offset_counts import OffsetCounts

STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "clear"]), st.integers(0, 20), st.integers(1, 10)),
    max_size=25,
)


@given(STEPS, st.integers(0, 25), st.integers(0, 25))
def test_counts_are_those_of_a_dict_and_neighbours_differ(steps, low, high):
    counts, plain = OffsetCounts(), Counter()
    for verb, first, length in steps:
        getattr(counts, verb)(first, first + length)
        for at in range(first, first + length):
            plain[at] = plain[at] + 1 if verb == "add" else 0
    assert [counts.at(at) for at in range(35)] == [plain[at] for at in range(35)]
    told = [number for first, end, number in counts.runs(low, high) for _ in range(first, end)]
    assert told == [plain[at] for at in range(low, high)]
    assert all(
        left != right for left, right in zip([0, *counts.counts], counts.counts, strict=False)
    )
    assert list(counts.nonzero(low, high)) == [at for at in range(low, high) if plain[at]]
    counts.drop_below(low)
    assert [counts.at(at) for at in range(low, 35)] == [plain[at] for at in range(low, 35)]


def test_a_plain_run_costs_two_entries_however_long():
    counts = OffsetCounts()
    for first in range(0, 1_000_000, 1_000):
        counts.add(first, first + 1_000)
    assert len(counts) == 2
