"""Does a series grow? A verdict over what was sampled. Pure.

Looked at is the second half: the first has what fills once, caches and pools. Two numbers
must both say that it grows by more than is allowed for that time: the slope of Theil and Sen,
the median over all pairs of samples, which some spikes do not move; and the median rise of the
floor from quarter to quarter of the half, which neither a step nor a sawtooth moves. A leak
raises both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import median
from typing import NamedTuple

MOST_SAMPLES = 300
"""So many of a half are looked at: pairs are many."""
QUARTERS = 4
FLOOR_PERCENT = 2
"""So many of the samples of a quarter lie below its floor."""


class Bound(NamedTuple):
    """How much a quantity may grow."""

    per_hour: float
    least: float
    """Less than this in all is no growth, however short the time."""


class Growth(NamedTuple):
    """How a quantity went on in the second half."""

    per_hour: float
    """The slope."""
    amount: float
    """What it makes over the half..."""
    floor_amount: float
    """... and what the rise of the floor does."""
    allowed: float
    is_growth: bool


@dataclass(frozen=True, slots=True)
class Slower:
    """How a latency has changed, from the first quarter to the last."""

    first_p99: float
    last_p99: float
    is_slower: bool


def growth_of(times_s: Sequence[float], values: Sequence[float], bound: Bound) -> Growth:
    """Returns what the second half of a series says."""
    assert len(times_s) == len(values)
    half = len(values) // 2
    step = max((len(values) - half) // MOST_SAMPLES, 1)
    points = list(zip(times_s[half::step], values[half::step], strict=True))
    if len(points) < QUARTERS:
        return Growth(0, 0, 0, 0, is_growth=False)
    slope = median((b - a) / (t - s) for (s, a), (t, b) in combinations(points, 2) if t > s)
    seconds = points[-1][0] - points[0][0]
    amount, floor_amount = slope * seconds, QUARTERS * _median_rise(values[half:])
    allowed = max(bound.per_hour * seconds / 3_600, bound.least)
    is_growth = min(amount, floor_amount) > allowed
    return Growth(slope * 3_600, amount, floor_amount, allowed, is_growth)


def _median_rise(values: Sequence[float]) -> float:
    edges = [len(values) * number // QUARTERS for number in range(QUARTERS + 1)]
    floors = [percentile(values[start:end], FLOOR_PERCENT) for start, end in pairwise(edges)]
    return median(after - before for before, after in pairwise(floors))


def slower(values: Sequence[float], *, factor: float, least: float) -> Slower:
    """Returns whether the p99 of the last quarter is more than `factor` times the first's.

    And above `least`: what is quick may be noisy.
    """
    quarter = len(values) // 4
    if not quarter:
        return Slower(0, 0, is_slower=False)
    first, last = percentile(values[:quarter], 99), percentile(values[-quarter:], 99)
    return Slower(first, last, is_slower=last > max(factor * first, least))


def percentile(values: Sequence[float], percent: float) -> float:
    """Returns the value that so many percent are not above; 0 of none."""
    return sorted(values)[min(len(values) - 1, int(len(values) * percent / 100))] if values else 0
