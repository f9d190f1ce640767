"""How often records were delivered, beside a plain dict of it."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from logbroker.group.deliveries import Deliveries
from logbroker.record.offset_ranges import OffsetRanges, joined

TURNS = st.lists(st.sets(st.integers(0, 40), min_size=1, max_size=25), max_size=8)


@given(TURNS, st.integers(0, 45), st.integers(0, 45))
def test_deliveries_are_those_of_a_dict(turns, low, high):
    deliveries, plain = Deliveries(), Counter()
    for offsets in turns:
        deliveries.add(joined(sorted(offsets)))
        plain.update(offsets)
    assert [deliveries.at(at) for at in range(45)] == [plain[at] for at in range(45)]
    runs = deliveries.runs(low, high)
    told = [number for first, end, number in runs for _ in range(first, end)]
    assert told == [plain[at] for at in range(low, high)]
    again = Deliveries(run for run in deliveries.runs(0, 45) if run.number)
    assert [again.at(at) for at in range(45)] == [plain[at] for at in range(45)]


@given(TURNS, st.integers(0, 45), st.sets(st.integers(0, 40)))
def test_what_is_not_settled_is_never_forgotten(turns, committed, settled):
    deliveries, plain = Deliveries(), Counter()
    for offsets in turns:
        deliveries.add(joined(sorted(offsets)))
        plain.update(offsets)
    deliveries.forget(committed, OffsetRanges(joined(sorted(settled))))
    for at in set(range(committed, 45)) - settled:
        assert deliveries.at(at) == plain[at]


def test_what_was_delivered_again_and_is_settled_is_forgotten_in_time():
    deliveries, settled = Deliveries(), OffsetRanges()
    for first in range(1, 2_001, 2):
        for _ in range(2):
            deliveries.add(((first, first + 1),))
        settled.add(first, first + 1)
        deliveries.forget(0, settled)
    assert len(deliveries.again) < 200
