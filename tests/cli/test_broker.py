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


def test_people_read_units(command: Command, at_server: str) -> None:
    out = command("broker", "describe").out
    assert "limit record_bytes" in out
    assert "1MiB" in out
    assert at_server in out
