"""Amounts in a report: three digits, and the unit a reader thinks in."""

import math

import pytest

from bench.report.amounts import amount, factor, is_less_better


@pytest.mark.parametrize(
    "value, unit, text",
    [
        (1_234_567, "records/s", "1.23 M/s"),
        (999_999, "records/s", "1.00 M/s"),
        (64.25, "records/s", "64.2/s"),
        (0, "records/s", "0/s"),
        (311, "records", "311"),
        (2_500_000, "records", "2,500,000"),
        (1_320, "us", "1.32 ms"),
        (999.9, "us", "1.00 ms"),
        (0.4, "us", "400 ns"),
        (12.5, "s", "12.5 s"),
        (0, "s", "0 s"),
        (1_061.5, "MB/s", "1,060 MB/s"),
        (0.11, "%", "0.110 %"),
        (48, "MiB", "48.0 MiB"),
    ],
)
def test_an_amount_has_three_digits_and_a_unit(value: float, unit: str, text: str) -> None:
    assert amount(value, unit) == text


@pytest.mark.parametrize(
    "ratio, text",
    [(0, "0"), (0.00234, "0.0023"), (0.996, "0.996"), (2.414, "2.41"), (162, "162")],
)
def test_a_ratio_has_three_digits_and_two_below_a_tenth(ratio: float, text: str) -> None:
    assert factor(ratio) == text


def test_a_ratio_to_nothing_has_no_end() -> None:
    assert factor(math.inf) == "∞"


def test_times_and_sizes_are_good_when_small_and_rates_when_large() -> None:
    units = ("us", "s", "MiB", "B", "records/s", "MB/s", "%")
    assert [is_less_better(unit) for unit in units] == [True] * 4 + [False] * 3
