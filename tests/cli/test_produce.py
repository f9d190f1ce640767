import json
import zlib
from itertools import product
from pathlib import Path

import pytest

from cli.conftest import Command

pytestmark = pytest.mark.slow

PARTITIONS = 12
VECTORS = {
    b"": 0, b"a": 3, b"order-1": 7, b"order-2": 9, b"order-17": 8, "zażółć".encode(): 10,
    b"\xff\x00\xfe": 0, b"customer:000042": 5,
}  # fmt: skip
"""CRC-32 (IEEE, unsigned) modulo 12. Every client has the same."""


def fetched(command: Command, topic: str, *options: str) -> list[dict[str, object]]:
    ran = command("fetch", topic, "-o", "json", *options)
    assert ran.code == 0, ran.err
    return [json.loads(line) for line in ran.out.splitlines()]


def without_places(records: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{name: each[name] for name in each if name != "offset"} for each in records]


def test_each_line_is_a_record(command: Command, topic: str) -> None:
    ran = command("produce", topic, stdin=b"a\n\nb\r\nlast")
    assert ran.code == 0
    assert ran.out == ""
    assert f"4 records stored (synced) in 1 partition of {topic}: " in ran.err
    assert [each["value"] for each in fetched(command, topic)] == ["a", "", "b\r", "last"]


def test_the_summary_for_programs_says_where_the_records_are(command: Command, topic: str) -> None:
    command("produce", topic, stdin=b"before\n")
    summary = json.loads(command("produce", topic, "-o", "json", stdin=b"a\nb\n").out)
    assert summary["record_count"] == 2
    assert summary["durability"] == ["synced"]
    assert summary["partitions"] == [
        {"partition": 0, "record_count": 2, "first_offset": "1", "last_offset": "2"}
    ]


def test_nothing_in_is_nothing_stored(command: Command, topic: str) -> None:
    assert command("produce", topic).err.startswith("0 records stored in 0 partitions")


def test_keys_and_headers_come_from_options(command: Command, topic: str) -> None:
    command("produce", topic, "--key-separator", r"\t", "-H", "n=v=w", stdin=b"k\tv\n\tv\n")
    command("produce", topic, "--key", "", stdin=b"x")
    first, second, third = fetched(command, topic)
    assert (first["key"], first["value"]) == ("k", "v")
    assert first["headers"] == [{"name": "n", "value": "v=w"}]
    assert (second["key"], third["key"]) == ("", "")


def test_a_file_is_one_record_or_many(command: Command, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"a\nb\xff\n")
    assert command("produce", topic, "--file", str(file), "--format", "file").code == 0
    assert command("produce", topic, "--file", str(file)).code == 0
    assert command("fetch", topic, "--raw", "-n", "1").code == 0
    values = [each.get("value", each.get("value_base64")) for each in fetched(command, topic)]
    assert values == ["YQpi/wo=", "a", "Yv8="]


def test_a_directory_is_no_file(command: Command, topic: str, tmp_path: Path) -> None:
    ran = command("produce", topic, "--file", str(tmp_path))
    assert ran.code == 2
    assert "Traceback" not in ran.err


def test_c21_what_fetch_prints_can_be_produced_again_null_and_empty_as_they_were(
    command: Command, topic: str
) -> None:
    pairs = list(product((None, "", "k"), (None, "", "v")))
    lines = [json.dumps({"key": key, "value": value}) for key, value in pairs]
    command("produce", topic, "--format", "json", stdin="\n".join(lines).encode())
    printed = command("fetch", topic, "-o", "json").out
    assert command("produce", topic, "--format", "json", stdin=printed.encode()).code == 0
    records = fetched(command, topic)
    assert [(each["key"], each["value"]) for each in records[:9]] == pairs
    assert without_places(records[:9]) == without_places(records[9:])


def test_c47_headers_go_through_json_out_and_in(command: Command, topic: str) -> None:
    headers = [
        {"name": "k", "value": "1"}, {"name": "k", "value": "2"}, {"name": "K", "value": "3"},
        {"name": "bin", "value_base64": "/wA="}, {"name": "empty", "value": ""},
        {"name": "nul", "value": None}, {"name": "имя", "value": "x"},
        {"name": "large", "value": "v" * (64 << 10)},
    ]  # fmt: skip
    many = [{"name": f"h{at}", "value": "v"} for at in range(200)]
    lines = [json.dumps({"value": "v", "headers": each}) for each in (headers, many)]
    command("produce", topic, "--format", "json", stdin="\n".join(lines).encode())
    printed = command("fetch", topic, "-o", "json").out
    assert command("produce", topic, "--format", "json", stdin=printed.encode()).code == 0
    records = fetched(command, topic)
    assert [each["headers"] for each in records] == [headers, many, headers, many]
    assert without_places(records[:2]) == without_places(records[2:])


def test_c47_too_many_headers_are_refused_with_the_line_and_the_limit(
    command: Command, topic: str
) -> None:
    many = [{"name": "h", "value": "v"}] * 201
    lines = [json.dumps({"value": "v"}), json.dumps({"value": "v", "headers": many}), "{}"]
    ran = command("produce", topic, "--format", "json", stdin="\n".join(lines).encode())
    assert ran.code == 1
    assert ran.err.startswith("error: line 2: ")
    assert "header_count = 200" in ran.err
    assert ran.err.endswith("stored before it: 1 record (TOO_MANY_HEADERS)\n")
    assert len(fetched(command, topic)) == 1


def test_a_line_over_the_limit_is_named_and_ends_the_command(command: Command, topic: str) -> None:
    lines = [b"a", b"b", b"x" * ((1 << 20) + 1), b"c"]
    ran = command("produce", topic, stdin=b"\n".join(lines))
    assert ran.code == 1
    assert ran.err.startswith("error: line 3: ")
    assert "record_bytes = 1048576" in ran.err
    assert [each["value"] for each in fetched(command, topic)] == ["a", "b"]


def test_a_malformed_line_is_named_and_ends_the_command(command: Command, topic: str) -> None:
    lines = b'{"value": "a"}\n\n{"value": 5}\n{"value": "c"}\n'
    ran = command("produce", topic, "--format", "json", "-o", "json", stdin=lines)
    assert (ran.code, ran.out) == (1, "")
    error = json.loads(ran.err)["error"]
    assert error["message"].startswith("line 3: value must be text or null")
    assert error["details"]["line"] == "3"
    assert [each["value"] for each in fetched(command, topic)] == ["a"]


def test_c46_keys_lead_to_the_partitions_that_all_clients_agree_on(
    command: Command, at_server: str
) -> None:
    command("topic", "create", "vectors", "-p", str(PARTITIONS))
    assert {key: zlib.crc32(key) % PARTITIONS for key in VECTORS} == VECTORS
    command("produce", "vectors", "--key-separator", "|",
            stdin=b"".join(key + b"|v\n" for key in VECTORS))  # fmt: skip
    for key, partition in VECTORS.items():
        template = command("fetch", "vectors", "-p", str(partition), "--format", "{key}").out
        shown = {b"": "(empty)", b"\xff\x00\xfe": r"\xff\x00\xfe"}.get(key) or key.decode()
        assert shown in template.splitlines()


def test_c46_the_partition_that_is_named_wins(command: Command, at_server: str) -> None:
    command("topic", "create", "named", "-p", str(PARTITIONS))
    command("produce", "named", "-p", "11", "--key", "a", stdin=b"v\n")
    line = b'{"key": "a", "partition": 11}\n'
    command("produce", "named", "--format", "json", stdin=line)
    command("produce", "named", "--format", "json", "--ignore-partition", stdin=line)
    assert [each["partition"] for each in fetched(command, "named")].count(11) == 2
    assert len(fetched(command, "named", "-p", "3")) == 1


def test_c46_null_keys_are_spread(command: Command, at_server: str) -> None:
    command("topic", "create", "spread", "-p", "2")
    command("produce", "spread", stdin=(b"v" * 1_000 + b"\n") * 6_000)
    assert {each["partition"] for each in fetched(command, "spread")} == {0, 1}


def test_a_partition_that_is_not_there_is_refused(command: Command, topic: str) -> None:
    ran = command("produce", topic, "-p", "7", stdin=b"v\n")
    assert ran.code == 1
    assert "(PARTITION_NOT_FOUND)" in ran.err


def test_a_topic_that_is_not_there_is_refused(command: Command, at_server: str) -> None:
    ran = command("produce", "nope", stdin=b"v\n")
    assert ran.code == 1
    assert "(TOPIC_NOT_FOUND)" in ran.err


def test_batches_may_be_compressed(command: Command, topic: str) -> None:
    assert command("produce", topic, "--codec", "zstd", stdin=b"v\n" * 100).code == 0
    assert len(fetched(command, topic)) == 100
    assert command("produce", topic, "--codec", "lz4", stdin=b"v\n").code == 1
