"""Names: one rule, stated by every error."""

import pytest

from logbroker.errors import InvalidError
from logbroker.topic.names import CATALOG_TOPIC, PRODUCERS_TOPIC, RULE, check_label, check_name

BAD = [
    "", ".", "..", "../x", "a/b", "a\\b", "a\0b", "/etc/x", "%2e%2e%2f", "x" * 201, "x" * 250,
    "żółć", "-rf", "__x", "a ", " a", "a\n", "a\nb", "a:b", "a*", "~", "$HOME", "a\u202eb", "٣",
    "__topics",
]  # fmt: skip
GOOD = [
    "a",
    "T",
    "t",
    "a.b",
    "a_b",
    "CON",
    "_x",
    "...",
    ".a",
    "a..",
    "x" * 200,
    "0",
    "a-",
    "a.g.dlq",
]


@pytest.mark.parametrize("name", BAD)
def test_a_bad_name_is_refused_with_the_rule(name):
    with pytest.raises(InvalidError) as raised:
        check_name(name)
    assert raised.value.reason == "INVALID_NAME"
    assert RULE in str(raised.value)
    assert repr(name)[1:-1] in str(raised.value) or len(name) > 200
    assert str(raised.value).isprintable(), "control characters go to no terminal"


@pytest.mark.parametrize("name", GOOD)
def test_a_good_name_is_returned_as_it_is(name):
    assert check_name(name) == name


def test_a_long_name_is_shown_in_part():
    with pytest.raises(InvalidError) as raised:
        check_name("\0" * 100_000)
    assert len(str(raised.value)) < 1_200


@pytest.mark.parametrize("name", [CATALOG_TOPIC, PRODUCERS_TOPIC])
def test_internal_topics_have_names_that_users_cannot_take(name):
    with pytest.raises(InvalidError):
        check_name(name)


@pytest.mark.parametrize("label", ["", "my worker 7", "host:1", "zażółć", "x" * 200])
def test_a_member_can_be_told_by_any_printable_text(label):
    check_label("client_id", label)


@pytest.mark.parametrize(
    "label", ["a\0b", "a\n", "\x1b[31m", "a\u202eb", "x" * 201, "\0" * 100_000]
)
def test_what_is_no_text_for_people_is_refused_with_the_rule(label):
    with pytest.raises(InvalidError) as raised:
        check_label("client_id", label)
    assert raised.value.reason == "INVALID_NAME"
    assert "client_id is at most 200 printable characters" in str(raised.value)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 1_200
