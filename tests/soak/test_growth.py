"""The verdict: what grows is found, and what only moves is not."""

import math
import random

import pytest

from .growth import Bound, growth_of, slower

MIB = 1 << 20
RSS = Bound(per_hour=64 * MIB, least=16 * MIB)
FILES = Bound(per_hour=10, least=8)


def times(minutes, every_s=1.0):
    return [at * every_s for at in range(int(minutes * 60 / every_s))]


def noisy(values, spread, seed=1):
    chance = random.Random(seed)
    return [value + chance.gauss(0, spread) for value in values]


def flat(at):
    return 200 * MIB


def filling(at):
    """A cache: most of it in the first minutes."""
    return 200 * MIB + 80 * MIB * (1 - math.exp(-at / 40))


def sawtooth(at):
    """A journal that is written anew each 50 s."""
    return 200 * MIB + 60 * MIB * (at % 50) / 50


def step(at):
    """A buffer that some large batch made, once, in the half that is looked at of 10 minutes."""
    return 200 * MIB + (60 * MIB if at > 400 else 0)


def spikes(at):
    return 200 * MIB + (500 * MIB if int(at) % 37 == 0 else 0)


def shrinking(at):
    return 300 * MIB - at * MIB / 10


@pytest.mark.parametrize("minutes", [0.3, 2, 10, 30])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", [flat, filling, sawtooth, step, spikes, shrinking])
def test_what_only_moves_is_no_growth(shape, seed, minutes):
    if minutes < 10 and shape in {filling, sawtooth}:
        pytest.skip("so short a run cannot tell it from a leak")
    at = times(minutes)
    values = noisy(map(shape, at), 2 * MIB, seed)
    assert not growth_of(at, values, RSS).is_growth


@pytest.mark.parametrize("shape", [flat, filling, sawtooth, spikes])
@pytest.mark.parametrize("minutes, per_hour", [(10, 360), (30, 120), (60, 100)])
def test_a_leak_is_found_whatever_else_moves(shape, minutes, per_hour):
    at = times(minutes)
    leaking = [shape(moment) + per_hour * MIB * moment / 3_600 for moment in at]
    found = growth_of(at, noisy(leaking, 2 * MIB), RSS)
    assert found.is_growth
    if shape is not sawtooth:
        assert found.per_hour == pytest.approx(per_hour * MIB, rel=0.25)


def test_a_leak_of_few_whole_things_is_found():
    at = times(10)
    values = [100 + int(moment / 15) for moment in at]  # an open file each quarter of a minute
    found = growth_of(at, values, FILES)
    assert found.is_growth
    assert found.per_hour == pytest.approx(240, rel=0.1)
    assert not growth_of(at, [100 + int(moment / 600) for moment in at], FILES).is_growth


def test_less_than_the_bound_allows_is_no_growth():
    at = times(60)
    values = [100 * MIB + 50 * MIB * moment / 3_600 for moment in at]
    assert not growth_of(at, values, RSS).is_growth
    assert growth_of(at, [2 * value for value in values], RSS).is_growth


@pytest.mark.parametrize("count", range(8))
def test_few_samples_say_nothing(count):
    at = [float(number) for number in range(count)]
    found = growth_of(at, [1_000 * MIB * moment for moment in at], RSS)
    assert found.is_growth == (count >= 7)


def test_many_samples_take_no_longer_than_some():
    at = times(24 * 60)
    assert not growth_of(at, noisy([5.0] * len(at), 1), FILES).is_growth


def test_a_latency_that_has_become_a_multiple_is_told():
    quick, slow = noisy([10] * 100, 1), noisy([90] * 100, 1)
    found = slower(quick + quick + slow, factor=3, least=50)
    assert found.is_slower
    assert (found.first_p99, found.last_p99) == (pytest.approx(12, abs=2), pytest.approx(92, abs=2))
    assert not slower(quick * 3, factor=3, least=50).is_slower
    assert not slower(slow + quick + quick, factor=3, least=50).is_slower
    assert not slower([1] * 50 + [20] * 50, factor=3, least=50).is_slower
    assert not slower([], factor=3, least=50).is_slower
