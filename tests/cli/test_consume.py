import json

import pytest

from cli.conftest import Command

pytestmark = pytest.mark.slow


def test_what_is_printed_is_settled_and_not_printed_again(
    command: Command, numbered: str, group: str
) -> None:
    first = command("consume", numbered, "-g", group, "-n", "3", "--raw")
    assert (first.code, first.out, first.err) == (0, "0\n1\n2\n", "")
    rest = command("consume", numbered, "-g", group, "--raw")
    assert rest.out.split() == list(map(str, range(3, 20)))
    assert command("consume", numbered, "-g", group, "--raw").out == ""
    other = command("consume", numbered, "-g", f"{group}-other", "--raw")
    assert len(other.out.split()) == 20


def test_what_is_not_settled_comes_again_with_a_greater_delivery_number(
    command: Command, numbered: str, group: str
) -> None:
    options = ("-g", group, "-n", "2", "-o", "json")
    command("consume", numbered, *options, "--no-settle")
    ran = command("consume", numbered, *options)
    lines = list(map(json.loads, ran.out.splitlines()))
    assert [one["offset"] for one in lines] == ["0", "1"]
    assert [one["delivery_number"] for one in lines] == [2, 2]
    assert [one["failures"] for one in lines] == [0, 0]
    assert {one["topic"] for one in lines} == {numbered}
    table = command("consume", numbered, "-g", group, "-n", "1").out.split()
    assert table[0] == numbered


def test_json_of_a_delivery_is_taken_by_produce(
    command: Command, numbered: str, topic: str, group: str
) -> None:
    lines = command("consume", numbered, "-g", group, "-n", "2", "-o", "json").out
    assert command("produce", topic, "--format", "json", stdin=lines.encode()).code == 0


def test_without_settling_no_more_than_the_window_is_read(
    command: Command, numbered: str, group: str
) -> None:
    command("group", "create", group, "--max-unsettled", "5")
    ran = command("consume", numbered, "-g", group, "--no-settle", "--raw")
    assert ran.out.split() == ["0", "1", "2", "3", "4"]
    assert "(max_unsettled)" in ran.err


def test_a_new_group_begins_where_it_is_told_and_an_old_one_goes_on(
    command: Command, numbered: str, group: str
) -> None:
    options = ("-g", group, "-n", "1", "--raw", "--from", "7", "--order", "none")
    assert command("consume", numbered, *options).out == "7\n"
    again = command("consume", numbered, *options)
    assert again.out == "8\n"
    assert "--from has no effect" in again.err
    without_an_order = command("consume", numbered, *options[:-2])
    assert (without_an_order.code, without_an_order.out) == (0, "9\n")
    other_order = command("consume", numbered, "-g", group, "--order", "key")
    assert other_order.code == 1
    assert "has the order none; this member wants key (GROUP_IN_USE)" in other_order.err


def test_several_topics_are_read_at_once(command: Command, numbered: str, group: str) -> None:
    command("topic", "create", group)
    command("produce", group, stdin=b"x\n")
    ran = command("consume", numbered, group, "-g", group, "--format", "{topic} {value}")
    assert len(ran.out.splitlines()) == 21
    assert f"{group} x" in ran.out.splitlines()


def test_c59_a_hostile_record_is_consumed_without_raw_escapes(
    command: Command, topic: str, group: str
) -> None:
    command("produce", topic, "-H", "h=\x1b[2J", stdin=b"\x1b]0;x\x07\xff")
    for options in ((), ("-o", "json"), ("--format", "{value} {headers}")):
        out = command("consume", topic, "-g", group, "--no-settle", *options).out
        assert out.removesuffix("\n").isprintable()


def test_a_topic_that_is_not_there_is_said(command: Command, at_server: str, group: str) -> None:
    ran = command("consume", f"{group}-nowhere", "-g", group)
    assert (ran.code, ran.out) == (1, "")
    assert "(TOPIC_NOT_FOUND)" in ran.err


@pytest.mark.parametrize(
    ("policy", "value"), [("earliest", "10"), ("latest", None), ("error", None)]
)
def test_c22_a_group_whose_place_has_expired_goes_on_as_it_is_set(
    command: Command, numbered: str, group: str, policy: str, value: str | None
) -> None:
    command("group", "create", group, "--out-of-range", policy)
    command("consume", numbered, "-g", group, "-n", "3")
    command("topic", "trim", numbered, "0", "10")
    ran = command("consume", numbered, "-g", group, "--raw")
    if policy == "error":
        assert (ran.code, ran.out) == (1, "")
        assert "(OFFSET_OUT_OF_RANGE)" in ran.err
        assert "10 to 20" in ran.err
        moved = command("group", "reset", group, numbered, "--to", "12", "-o", "json")
        assert json.loads(moved.out) | {"to_offset": "12"} == json.loads(moved.out)
        assert command("consume", numbered, "-g", group, "-n", "1", "--raw").out == "12\n"
        return
    assert ran.code == 0
    assert next(iter(ran.out.split()), None) == value
    found = json.loads(command("group", "describe", group, "-o", "json").out)
    (progress,) = found["progress"]
    assert (progress["committed_offset"], progress["lag"]) == ("20", "0")
