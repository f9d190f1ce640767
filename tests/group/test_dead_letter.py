"""The headers of a dead letter: told apart, replaced, read back."""

import pytest

from logbroker.errors import DataLossError
from logbroker.group.dead_letter import (
    DeadLetter,
    dead_letter_of,
    is_dead_letter,
    own_headers,
    with_dead_letter,
)
from logbroker.record.record import Header

OWN = (Header("a", b"1"), Header("a", None), Header("b", b"\xff"))
LETTER = DeadLetter("t", "id", 3, 40, 1_000, "g", 5, 2_000, 3_000, "no departure time é", 2)


def test_our_headers_come_behind_the_records_own_and_off_again():
    headers = with_dead_letter(OWN, LETTER)
    assert headers[:3] == OWN
    assert own_headers(headers) == OWN
    assert dead_letter_of(headers) == LETTER
    assert is_dead_letter(headers)
    assert not is_dead_letter(OWN)


def test_a_second_dead_letter_replaces_the_first():
    first = with_dead_letter(OWN, LETTER)
    second = with_dead_letter(first, LETTER._replace(group="other", reason=""))
    assert len(second) == len(first)
    assert dead_letter_of(second).group == "other"


def test_a_long_reason_is_cut():
    letter = dead_letter_of(with_dead_letter((), LETTER._replace(reason="x" * 5_000)))
    assert letter.reason == "x" * 1_024


@pytest.mark.parametrize("headers", [OWN, with_dead_letter(OWN, LETTER)[:-1]])
def test_what_is_incomplete_is_not_guessed(headers):
    with pytest.raises(DataLossError):
        dead_letter_of(headers)
