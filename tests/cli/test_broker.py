import json

import pytest

from cli.conftest import Command

pytestmark = pytest.mark.slow


def test_a_broker_says_what_it_is_and_how_it_is(command: Command, topic: str) -> None:
    command("produce", topic, stdin=b"v\n")
    about = json.loads(command("broker", "describe", "-o", "json").out)
    assert about["version"]
    assert about["limits"]["record_bytes"] == "1048576"
    assert about["stats"]["topic_count"] >= 1
    assert int(about["stats"]["appended_record_count"]) >= 1


def test_a_broker_tells_how_its_groups_are(command: Command, topic: str) -> None:
    group = f"{topic}-group"
    command("produce", topic, stdin=b"1\n2\n3\n")
    command("consume", topic, "-g", group, "-n", "1")
    stats = json.loads(command("broker", "describe", "-o", "json").out)["stats"]
    [found] = [one for one in stats["groups"] if one["group"] == group]
    assert stats["group_count"] >= 1
    assert (found["lag"], found["member_count"], found["failure_count"]) == ("2", 0, "0")
    lines = command("broker", "describe").out.splitlines()
    [titles] = [line for line in lines if line.startswith("GROUP ")]
    [row] = [line for line in lines if line.startswith(group)]
    assert titles.split()[:3] == ["GROUP", "MEMBERS", "LAG"]
    assert row.split()[:3] == [group, "0", "2"]


def test_people_read_units(command: Command, at_server: str) -> None:
    out = command("broker", "describe").out
    assert "limit record_bytes" in out
    assert "1MiB" in out
    assert at_server in out
