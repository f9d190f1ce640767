import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from logbroker.cli.units import (
    duration_ms,
    duration_or_unlimited_ms,
    show_age,
    show_duration,
    show_size,
    size_bytes,
    size_or_unlimited_bytes,
)

DURATIONS = {
    "500ms": 500, "90s": 90_000, "1.5h": 5_400_000, "1h30m": 5_400_000, "7d": 604_800_000,
    "2w": 1_209_600_000, " 3M ": 180_000,
}  # fmt: skip
SIZES = {
    "1": 1, "4096": 4096, "1B": 1, "1KiB": 1024, "1.5 MiB": 3 << 19, "10gib": 10 << 30,
    "2TiB": 2 << 40, "1KB": 1_000, "3GB": 3_000_000_000,
}  # fmt: skip
NO_DURATIONS = ("", "7", "d", "-7d", "7 days", "0s", "1e3s", "7d!", "99999999999999999w", "\u0661s")
NO_SIZES = ("", "GiB", "-1", "0", "1XB", "1e3", "99999999TiB", "unlimited!")


@pytest.mark.parametrize(("text", "ms"), DURATIONS.items())
def test_a_duration_is_read(text: str, ms: int) -> None:
    assert duration_ms(text) == ms


@pytest.mark.parametrize(("text", "size"), SIZES.items())
def test_a_size_is_read(text: str, size: int) -> None:
    assert size_bytes(text) == size


@pytest.mark.parametrize("text", NO_DURATIONS)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        duration_ms(text)


@pytest.mark.parametrize("text", NO_SIZES)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        size_bytes(text)


def test_unlimited_is_zero() -> None:
    assert duration_or_unlimited_ms("unlimited") == 0
    assert size_or_unlimited_bytes("Unlimited") == 0


@given(st.integers(1, 1 << 50))
def test_a_duration_that_is_shown_can_be_read_back(ms: int) -> None:
    assert duration_ms(show_duration(ms)) == ms


def test_sizes_are_shown_with_one_decimal_at_most() -> None:
    shown = [show_size(size) for size in (0, 1023, 1024, 1536, 10 << 30)]
    assert shown == ["0B", "1023B", "1KiB", "1.5KiB", "10GiB"]


@pytest.mark.parametrize(
    ("ms", "text"),
    {0: "0ms", 999: "999ms", 1_999: "1s", 61_000: "1m1s", 5_459_999: "1h30m", 97_200_000: "1d3h",
     86_400_000: "1d"}.items(),
)  # fmt: skip
def test_an_age_has_its_two_greatest_units(ms: int, text: str) -> None:
    assert show_age(ms) == text
