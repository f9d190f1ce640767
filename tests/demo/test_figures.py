"""A total that differs is named, with what it should be."""

import io

import pytest
from rich.console import Console

from demo.figures import PUBLISHED, Comparison, FiguresDifferError, check
from demo.screen import Screen


def test_the_published_figures_agree_with_each_other():
    assert sum(PUBLISHED.by_carrier.values()) == PUBLISHED.flight_count == 336_776
    assert len(PUBLISHED.by_carrier) == 16
    assert max(PUBLISHED.by_carrier.items(), key=lambda item: item[1]) == ("UA", 58_665)


def test_totals_that_agree_pass():
    check([Comparison("flights", 3, 3), Comparison("carriers", 0, 0)])


def test_every_total_that_differs_is_named():
    totals = [Comparison("flights", 1, 1_000), Comparison("ok", 2, 2), Comparison("UA", 4, 3)]
    with pytest.raises(FiguresDifferError) as raised:
        check(totals)
    assert str(raised.value) == (
        "the totals differ: flights: 1, but it should be 1,000; UA: 4, but it should be 3"
    )


def test_differing_totals_are_shown_before_they_are_raised():
    output = io.StringIO()
    screen = Screen(Console(file=output))
    with pytest.raises(FiguresDifferError):
        screen.compare([Comparison("flights", 7, 8), Comparison("carriers", 2, 2)])
    first, second = output.getvalue().splitlines()
    assert first.split() == ["DIFFERS", "flights", "7", "should", "be", "8"]
    assert second.split() == ["ok", "carriers", "2"]


def test_progress_is_lines_where_there_is_no_terminal():
    output = io.StringIO()
    with Screen(Console(file=output)).progress("eleven months", 1_000) as show:
        for done in (0, 100, 300, 800, 999, 1_000):
            show(done)
    lines = [line.strip() for line in output.getvalue().splitlines()]
    assert lines == [f"eleven months: {done} of 1,000" for done in ("300", "800", "1,000")]
