import io
import json
import re
import sys
from typing import Any

import pytest

from cli.conftest import Command, attached, fail
from cli.test_topic import BAD_NAMES, GOOD_NAMES, RULE
from logbroker.cli.group_view import show_assignment
from logbroker.cli.main import run
from logbroker.client.audience import TopicPartition

pytestmark = pytest.mark.slow

VERBS = (
    ("group", "create", "--", "NAME"),
    ("group", "describe", "--", "NAME"),
    ("group", "update", "--max-failures", "2", "--", "NAME"),
    ("group", "reset", "--to", "earliest", "--", "NAME", "some-topic"),
    ("group", "delete", "--yes", "--", "NAME"),
    ("group", "watch", "--count", "1", "--", "NAME"),
    ("consume", "-gNAME", "some-topic"),
    ("explain", "--", "NAME", "some-topic", "0", "0"),
    ("dlq", "list", "--", "NAME", "some-topic"),
    ("dlq", "show", "--", "NAME", "some-topic", "0", "0"),
    ("dlq", "redrive", "--", "NAME", "some-topic"),
    ("dlq", "redrives", "--", "NAME"),
    ("dlq", "resolve", "--yes", "--", "NAME", "some-topic"),
    ("dlq", "copy", "--to", "x", "--", "NAME", "some-topic"),
)


def describe(command: Command, group: str) -> dict[str, Any]:
    ran = command("group", "describe", group, "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    found: dict[str, Any] = json.loads(ran.out)
    return found


@pytest.mark.parametrize("name", BAD_NAMES.values(), ids=BAD_NAMES)
def test_c54_a_bad_group_name_is_refused_with_the_rule(
    command: Command, at_server: str, name: str
) -> None:
    for verb in VERBS if name in ("", "-rf", "\x1b[31m", "../x") else VERBS[:1]:
        ran = command(*(argument.replace("NAME", name) for argument in verb))
        if name == "" and verb[0] == "consume":
            continue  # -g takes the next argument then, and the topic is missing
        assert (ran.code, ran.out) == (1, ""), verb
        assert RULE in ran.err
        assert "(INVALID_NAME)" in ran.err
        assert "\x1b" not in ran.err


def test_c54_group_names_that_look_alike_are_different_groups(
    command: Command, at_server: str
) -> None:
    for name in GOOD_NAMES:
        assert command("group", "create", name).code == 0
    listed = [json.loads(line) for line in command("group", "list", "-o", "json").out.splitlines()]
    names = [one["group"] for one in listed]
    assert set(GOOD_NAMES) <= set(names)
    assert names == sorted(set(names))
    for name in GOOD_NAMES:
        assert command("group", "delete", "--yes", name).out == f"deleted {name}\n"


def test_c54_a_dead_letter_topic_with_too_long_a_name_is_refused_in_advance(
    command: Command, topic: str
) -> None:
    ran = command("dlq", "redrive", "g" * 200, topic)
    assert ran.code == 1
    assert RULE in ran.err


def test_a_group_has_the_settings_it_was_made_with(
    command: Command, at_server: str, group: str
) -> None:
    ran = command(
        "group", "create", group, "--order", "key", "--lease", "5s", "--retry-initial", "200ms",
        "--retry-multiplier", "1.5", "--retry-max", "1m", "--max-failures", "3",
        "--exhausted", "block", "--after-dead-letter", "hold", "--max-unsettled", "99",
        "--start", "@1782900000000", "--out-of-range", "error", "--group-retention", "unlimited",
        "-o", "json",
    )  # fmt: skip
    made = json.loads(ran.out)
    assert made["topics"] == []
    assert made["settings"] == {
        "order": "key",
        "lease_ms": "5000",
        "retry_initial_ms": "200",
        "retry_multiplier": 1.5,
        "retry_max_ms": "60000",
        "max_failures": 3,
        "exhausted": "block",
        "after_dead_letter": "hold",
        "max_unsettled": 99,
        "start": "time",
        "start_timestamp_ms": "1782900000000",
        "out_of_range": "error",
        "group_retention_ms": "0",
    }
    updated = command("group", "update", group, "--max-failures", "7", "--start", "latest")
    lines = dict(line.split(maxsplit=1) for line in updated.out.splitlines()[1:])
    assert updated.out.startswith(f"updated {group}\n")
    assert lines["start"] == "latest"
    settings = describe(command, group)["settings"]
    assert (settings["max_failures"], settings["lease_ms"]) == (7, "5000")


def test_settings_that_cannot_be_are_refused(command: Command, at_server: str, group: str) -> None:
    for options in (
        ("--retry-multiplier", "99"), ("--order", "none", "--after-dead-letter", "hold"),
        ("--retry-initial", "1h", "--retry-max", "1s"), ("--lease", "9d"),
    ):  # fmt: skip
        ran = command("group", "create", group, *options)
        assert (ran.code, ran.out) == (1, "")
        assert "(INVALID_SETTING)" in ran.err


def test_a_group_that_is_not_there_or_is_there_already_is_said(
    command: Command, at_server: str, group: str
) -> None:
    for verb in ("describe", "update --max-failures 2", "delete --yes", "watch"):
        ran = command("group", *verb.split(), group)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.endswith("(GROUP_NOT_FOUND)\nsee what there is: logbroker group list\n")
    assert command("group", "create", group).code == 0
    again = command("group", "create", group, "-o", "json")
    assert json.loads(again.err)["error"]["reason"] == "GROUP_ALREADY_EXISTS"


def test_c26_a_group_in_use_is_deleted_only_by_force_and_that_is_said(
    command: Command, numbered: str, at_server: str, group: str
) -> None:
    with attached(at_server, group, numbered):
        refused = command("group", "delete", "--yes", group)
        assert refused.code == 1
        assert "(GROUP_IN_USE)" in refused.err
        assert "--force" in refused.err
        order = command("group", "update", group, "--order", "none")
        assert "(GROUP_IN_USE)" in order.err
        assert "--force" not in order.err
        assert command("group", "delete", "--yes", "--force", group).out == f"deleted {group}\n"


def test_c23_a_member_that_has_consumed_nothing_is_listed_with_its_partition(
    command: Command, numbered: str, at_server: str, group: str
) -> None:
    with attached(at_server, group, numbered) as member:
        assert member.poll(10_000) is not None
        found = describe(command, group)
        (one,) = found["members"]
        assert one["assignment"] == [{"topic": numbered, "partition": 0}]
        (progress,) = found["progress"]
        assert progress["member_id"] == one["member_id"]
        assert (progress["committed_offset"], progress["lag"]) == (None, "20")
        assert progress["lag_from"] == "start"
        ran = command("group", "describe", group)
    assert "worker é" in ran.out
    assert "none: nothing is settled there yet" in ran.out
    assert f"{numbered}/0" in ran.out
    lines = dict(line.split(maxsplit=1) for line in ran.out.splitlines()[:6])
    assert (lines["members"], lines["lag"]) == ("1", "20")
    assert lines["age"] != "-"


def test_partitions_of_a_member_are_told_as_runs() -> None:
    partitions = [TopicPartition("a", number) for number in (*range(100), 102, 104, 105)]
    assert show_assignment([*partitions, TopicPartition("b", 0)]) == "a/0-99,102,104-105, b/0"


def test_of_many_partitions_those_with_lag_are_told_alone_if_asked_for(
    command: Command, at_server: str, group: str
) -> None:
    command("topic", "create", f"{group}-wide", "-p", "20")
    command("consume", f"{group}-wide", "-g", group)
    command("produce", f"{group}-wide", "-p", "7", stdin=b"x")
    ran = command("group", "describe", group, "--behind", "-o", "json")
    found = json.loads(ran.out)
    assert [(one["partition"], one["lag"]) for one in found["progress"]] == [(7, "1")]
    assert found["lag"] == "1"
    assert len(describe(command, group)["progress"]) == 20


def test_without_lag_there_is_no_age(command: Command, numbered: str, group: str) -> None:
    command("consume", numbered, "-g", group)
    rows = [line.split() for line in command("group", "list").out.splitlines()]
    (row,) = [dict(zip(rows[0], row, strict=False)) for row in rows if row[0] == group]
    assert (row["LAG"], row["AGE"], row["BLOCKED"]) == ("0", "-", "0")


def test_a_group_that_is_stuck_is_told_with_how_many_and_where_to_ask_why(
    command: Command, numbered: str, at_server: str, group: str
) -> None:
    command("group", "create", group, "--exhausted", "block")
    command("consume", numbered, "-g", group, "-n", "7")
    fail(at_server, group, numbered, 1)
    listed = map(json.loads, command("group", "list", "-o", "json").out.splitlines())
    (one,) = [each for each in listed if each["group"] == group]
    assert (one["blocked_count"], one["parked_count"]) == ("1", "0")
    ran = command("group", "describe", group)
    assert ran.err == f"why it waits: logbroker explain {group} {numbered} 0 7\n"
    place = ran.err.split("explain ")[1].split()
    assert command("explain", *place).out.startswith("parked ")


def test_on_a_narrow_terminal_a_group_is_described_without_what_says_nothing(
    numbered: str, command: Command, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command("consume", numbered, "-g", group, "-n", "5")
    assert "EXPIRED" in command("group", "describe", group).out
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdout", terminal)
    for columns, is_there in ((80, False), (200, True)):
        monkeypatch.setenv("COLUMNS", str(columns))
        terminal.seek(0)
        terminal.truncate()
        assert run(["group", "describe", group]) == 0
        assert ("EXPIRED" in terminal.getvalue()) == is_there
        shown = re.sub(r"\x1b\[[0-9]*m", "", terminal.getvalue())
        assert max(map(len, shown.splitlines())) <= columns


def test_c23_lag_is_zero_where_nothing_was_written_and_where_all_has_expired(
    command: Command, numbered: str, group: str
) -> None:
    command("topic", "create", f"{group}-empty", "-p", "2")
    assert command("consume", f"{group}-empty", "-g", group).code == 0
    assert command("consume", numbered, "-g", group, "-n", "10").code == 0
    before = {(one["topic"], one["partition"]): one for one in describe(command, group)["progress"]}
    assert before[numbered, 0]["lag"] == "10"
    assert [before[f"{group}-empty", at]["lag"] for at in (0, 1)] == ["0", "0"]
    command("topic", "trim", numbered, "0", "20")
    after = {(one["topic"], one["partition"]): one for one in describe(command, group)["progress"]}
    assert (after[numbered, 0]["lag"], after[numbered, 0]["age_ms"]) == ("0", "0")
    (listed,) = [
        one
        for line in command("group", "list", "-o", "json").out.splitlines()
        if (one := json.loads(line))["group"] == group
    ]
    assert listed["lag"] == "0"


def test_why_a_record_is_not_delivered_is_explained(
    command: Command, numbered: str, at_server: str, group: str
) -> None:
    with attached(at_server, group, numbered) as member:
        assert member.poll(10_000) is not None
        ran = command("explain", group, numbered, "0", "0")
        assert ran.out.startswith("leased ")
        beyond = json.loads(command("explain", group, numbered, "0", "99", "-o", "json").out)
    assert (beyond["state"], beyond["offset"]) == ("beyond_end", "99")
    assert "(PARTITION_NOT_FOUND)" in command("explain", group, numbered, "7", "0").err
