import pytest
from hypothesis import given
from hypothesis import strategies as st

from logbroker.cli.text import safe, safe_bytes, shown

FOREIGN = {
    "a colour": ("\x1b[31mred", r"\x1b[31mred"),
    "a window title": ("\x1b]0;owned\x07", r"\x1b]0;owned\x07"),
    "an eight-bit control": ("\x9b31m", r"\u009b31m"),
    "a line end": ("a\r\nb", r"a\x0d\x0ab"),
    "a mark that turns the direction": ("a\u202eb\u2066", r"a\u202eb\u2066"),
    "NUL": ("\0", r"\x00"),
    "half a surrogate pair": ("\ud800", r"\ud800"),
    "beyond the basic plane": ("\U000e0001", r"\U000e0001"),
    "markup stays": ("<img onerror=x>[bold]", "<img onerror=x>[bold]"),
    "letters stay": ("zażółć 日本", "zażółć 日本"),
}


@pytest.mark.parametrize(("text", "escaped"), FOREIGN.values(), ids=FOREIGN)
def test_what_a_terminal_would_act_on_is_escaped(text: str, escaped: str) -> None:
    assert safe(text) == escaped


@given(st.binary())
def test_whatever_the_bytes_all_that_is_shown_prints(data: bytes) -> None:
    assert safe_bytes(data).isprintable()


def test_bytes_that_are_no_utf8_are_shown_one_by_one() -> None:
    assert safe_bytes(b"a\xff\x00\xc3") == r"a\xff\x00\xc3"


def test_null_and_empty_differ() -> None:
    assert (shown(None), shown(b""), shown(b"v")) == ("(null)", "(empty)", "v")


def test_a_long_value_is_cut_with_its_size_and_never_inside_a_letter() -> None:
    assert shown("żż".encode() * 4, limit=5) == "żż... (16 bytes)"
    assert shown(b"\x80" * 9, limit=5) == r"\x80\x80\x80\x80\x80... (9 bytes)"
    assert shown(b"12345", limit=5) == "12345"
    assert shown(b"1" * 999, limit=None) == "1" * 999
