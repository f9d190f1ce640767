import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from logbroker.cli.moment import Moment, Place, parse_place, parse_stop, show_time

NOW_MS = 1_800_000_000_000
NOON_MS = 1_782_907_200_000  # 2026-07-01T12:00:00Z
PLACES: dict[str, Place] = {
    "earliest": "earliest",
    "LATEST": "latest",
    "0": 0,
    "9007199254740993": 9007199254740993,
    "@1782907200000": Moment(NOON_MS),
    "@-1": Moment(-1),
    "-10m": Moment(NOW_MS - 600_000),
    "-1h30m": Moment(NOW_MS - 5_400_000),
    "2026-07-01T12:00:00Z": Moment(NOON_MS),
    "2026-07-01T17:30:00+05:30": Moment(NOON_MS),
    "2026-07-01T12:00:00.250Z": Moment(NOON_MS + 250),
    "2026-07-01T12:00": Moment(NOON_MS, assumed_utc=True),
    "2026-07-01": Moment(NOON_MS - 12 * 3_600_000, assumed_utc=True),
}


@pytest.mark.parametrize(("text", "place"), PLACES.items())
def test_a_place_to_start_is_read(text: str, place: Place) -> None:
    assert parse_place(text, now_ms=NOW_MS) == place


@pytest.mark.parametrize("text", ["", "soon", "-5", "1.5", "2026-13-01", "@", "+1"])
def test_what_is_no_place_is_refused_and_the_message_says_what_is(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="must be earliest, latest or an offset"):
        parse_place(text, now_ms=NOW_MS)


def test_a_stop_is_an_offset_or_a_time() -> None:
    assert parse_stop("7", now_ms=NOW_MS) == 7
    with pytest.raises(typer.BadParameter):
        parse_stop("latest", now_ms=NOW_MS)


def test_c60_a_time_that_some_zones_skip_means_utc() -> None:
    place = parse_place("2027-03-28T02:30", now_ms=NOW_MS)
    assert place == Moment(1_806_201_000_000, assumed_utc=True)
    assert show_time(1_806_201_000_000) == "2027-03-28T02:30:00.000Z"


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_a_time_that_is_shown_can_be_given_back(ms: int) -> None:
    assert parse_place(show_time(ms), now_ms=NOW_MS) == Moment(ms)
