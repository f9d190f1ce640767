import json

import pytest

from cli.conftest import Command

pytestmark = pytest.mark.slow

RULE = "1 to 200 of A-Z a-z 0-9 . _ -, not . or .., not starting with - or __"
BAD_NAMES = {
    "empty": "", "dot": ".", "two dots": "..", "up": "../x", "slash": "a/b", "backslash": "a\\b",
    "NUL": "a\0b", "absolute": "/etc/x", "percent": "%2e%2e%2f", "201 characters": "a" * 201,
    "300 characters": "a" * 300, "accents": "zażółć", "reserved": "__x", "a space": "x ",
    "a line end": "x\n", "no text": "\udcff", "escape codes": "\x1b[31m", "an option": "-rf",
}  # fmt: skip
GOOD_NAMES = ("T", "t", "a.b", "a_b", "CON", "a" * 200)
VERBS = (("create",), ("describe",), ("update", "--retention", "1d"), ("grow", "-p", "9"),
         ("delete", "--yes"))  # fmt: skip


@pytest.mark.parametrize("name", BAD_NAMES.values(), ids=BAD_NAMES)
def test_c54_a_bad_name_is_refused_with_the_rule(
    command: Command, at_server: str, name: str
) -> None:
    for verb, *options in VERBS:
        ran = command("topic", verb, *options, "--", name)
        assert (ran.code, ran.out) == (1, "")
        assert RULE in ran.err
        assert "(INVALID_NAME)" in ran.err
        assert "\x1b" not in ran.err


def test_c54_names_that_look_alike_are_different_topics(command: Command, at_server: str) -> None:
    for name in GOOD_NAMES:
        assert command("topic", "create", name).code == 0
    listed = [json.loads(line) for line in command("topic", "list", "-o", "json").out.splitlines()]
    ids = {topic["topic"]: topic["topic_id"] for topic in listed}
    assert set(GOOD_NAMES) <= ids.keys()
    assert len(set(ids.values())) == len(ids)
    for name in GOOD_NAMES:
        assert command("topic", "delete", "--yes", name).out == f"deleted {name}\n"


def test_a_topic_has_the_settings_it_was_made_with(command: Command, at_server: str) -> None:
    ran = command(
        "topic", "create", "set", "-p", "3", "--durability", "written", "--retention", "unlimited",
        "--retention-bytes", "10GiB", "--segment-bytes", "64KiB", "--segment-age", "1h30m",
        "--flush-interval", "250ms", "-o", "json",
    )  # fmt: skip
    made = json.loads(ran.out)
    assert made["partition_count"] == 3
    assert made["settings"] == {
        "durability": "written",
        "flush_interval_ms": "250",
        "retention_ms": "0",
        "retention_bytes": "10737418240",
        "segment_bytes": "65536",
        "segment_ms": "5400000",
    }


def test_an_update_changes_what_is_given_and_nothing_else(command: Command, topic: str) -> None:
    before = json.loads(command("topic", "describe", topic, "-o", "json").out)["settings"]
    ran = command("topic", "update", topic, "--retention", "1d", "-o", "json")
    assert json.loads(ran.out)["settings"] == before | {"retention_ms": "86400000"}


def test_c60_a_large_setting_keeps_every_digit(command: Command, topic: str) -> None:
    ran = command("topic", "update", topic, "--retention-bytes", "4611686018427387903")
    assert ran.code == 0
    described = json.loads(command("topic", "describe", topic, "-o", "json").out)
    assert described["settings"]["retention_bytes"] == "4611686018427387903"


def test_a_setting_out_of_range_is_refused_with_its_rule(command: Command, topic: str) -> None:
    ran = command("topic", "update", topic, "--segment-bytes", "1KiB")
    assert ran.code == 1
    assert "log.segment_bytes: 1024 must be 4096 to" in ran.err


def test_a_description_shows_each_partition(command: Command, topic: str) -> None:
    command("produce", topic, stdin=b"a\nb\n")
    ran = command("topic", "describe", topic)
    assert "durability       synced\n" in ran.out
    titles, row = ran.out.splitlines()[-2:]
    assert titles.split("  ")[0] == "PARTITION"
    assert row.split()[:4] == ["0", "0", "2", "2"]
    described = json.loads(command("topic", "describe", topic, "-o", "json").out)
    (status,) = described["partitions"]
    assert (status["high_watermark"], status["damaged"], status["failure"]) == ("2", [], "")


def test_c46_growth_warns_that_keys_move(command: Command, topic: str) -> None:
    ran = command("topic", "grow", topic, "-p", "4", "-o", "json")
    assert json.loads(ran.out)["partition_count"] == 4
    assert ran.err.startswith("warning: keys ")


def test_a_partition_is_trimmed(command: Command, topic: str) -> None:
    command("produce", topic, stdin=b"a\nb\nc\n")
    ran = command("topic", "trim", topic, "0", "2")
    assert ran.out == f"{topic} partition 0 starts at offset 2\n"
    assert command("fetch", topic, "--raw").out == "c\n"


def test_a_topic_is_deleted_only_when_that_is_meant(command: Command, topic: str) -> None:
    ran = command("topic", "delete", topic)
    assert ran.code == 2
    assert "--yes" in ran.err
    assert command("topic", "describe", topic).code == 0
    assert command("topic", "delete", topic, "--yes", "-o", "json").code == 0
    ran = command("topic", "describe", topic)
    assert ran.err == f"error: there is no topic '{topic}' (TOPIC_NOT_FOUND)\n"


def test_who_types_is_asked_before_a_topic_is_deleted(command: Command, topic: str) -> None:
    command("produce", topic, stdin=b"a\nb\n")
    ran = command("topic", "delete", topic, stdin=b"n\n", is_typed=True)
    assert ran.code == 130
    assert f"Delete {topic} with its 2 records (" in ran.out + ran.err
    ran = command("topic", "delete", topic, stdin=b"y\n", is_typed=True)
    assert ran.code == 0
    assert ran.out.endswith(f"deleted {topic}\n")


def test_a_topic_that_exists_is_not_made_again(command: Command, topic: str) -> None:
    ran = command("topic", "create", topic, "-o", "json")
    assert (ran.code, ran.out) == (1, "")
    assert json.loads(ran.err)["error"]["reason"] == "TOPIC_ALREADY_EXISTS"


def test_the_list_is_a_table_for_people(command: Command, topic: str) -> None:
    titles, *rows = command("topic", "list").out.splitlines()
    assert titles.split()[:3] == ["TOPIC", "PARTITIONS", "DURABILITY"]
    assert any(row.split()[:3] == [topic, "1", "synced"] for row in rows)
