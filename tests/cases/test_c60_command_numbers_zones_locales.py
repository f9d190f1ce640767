"""C60, the command line's part: every digit, one meaning of a time, the same bytes everywhere."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cases.commands import logbroker, many, output_of
from logbroker.client.blocking import BlockingClient
from logbroker.record.record import Header
from logbroker.storage.file.checkpoint import Checkpoint
from logbroker.testing.running_broker import BrokerProcess

NUMBERS = (
    '{"n":9007199254740993,"least":-9223372036854775808,"large":12345678901234567890123,'
    '"fraction":0.1000000000000000055511151231257827}'
)
ABOVE_2_53 = (1 << 53) + 1
LONGEST_MS = 1 << 62
MOMENT_MS = 1_806_201_000_000
"""2027-03-28T02:30Z: an hour that Berlin does not have."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker in another zone than its users."""
    data_dir = tmp_path_factory.mktemp("c60") / "data"
    with BrokerProcess(data_dir, environ={"TZ": "Asia/Kolkata"}) as broker:
        yield broker.address


def fill(server: str, topic: str, *values: bytes) -> None:
    with BlockingClient(server) as client:
        client.admin.create_topic(topic)
        with client.producer(topic) as producer:
            for value in values:
                producer.send(value)


def all_of(*commands: str, server: str) -> list[str]:
    """Returns what the commands wrote to stdout; all must succeed, and say nothing else."""
    ended = many([command.split() for command in commands], server=server)
    assert [(each.code, each.stderr) for each in ended] == [(0, "")] * len(commands)
    return [each.stdout for each in ended]


def test_every_digit_of_a_value_is_shown(server):
    fill(server, "numbers")
    output_of("produce", "numbers", server=server, stdin=NUMBERS.encode())
    raw, as_json, full = all_of(
        "fetch numbers --raw", "fetch numbers -o json", "fetch numbers --full", server=server
    )
    assert raw == NUMBERS + "\n"
    assert json.loads(as_json)["value"] == NUMBERS
    assert NUMBERS in full


def test_large_settings_are_shown_to_the_last_digit_or_refused(server):
    retention = f"--retention {LONGEST_MS}ms --retention-bytes {LONGEST_MS}"
    made, described = all_of(
        f"topic create large {retention} -o json", "topic describe large -o json", server=server
    )
    settings = json.loads(described)["settings"]
    assert (settings["retention_ms"], settings["retention_bytes"]) == (str(LONGEST_MS),) * 2
    assert json.loads(made)["settings"] == settings
    over = ["topic", "create", "larger", "--retention", "9223372036854775807ms"]
    (refused,) = many([over], server=server)
    assert refused.code == 1
    assert "9223372036854775807" in refused.stderr


def test_offsets_above_2_to_53_keep_their_digits(tmp_path):
    """In JSON they are strings: a number would be read as 9007199254740992."""
    broker = BrokerProcess(tmp_path / "data")
    with broker:
        fill(broker.address, "t")
    for file in (tmp_path / "data" / "topics" / "t").rglob("*"):
        if file.name == "checkpoint":
            found = Checkpoint.decode(file.read_bytes())
            assert found
            moved = replace(found, log_start_offset=ABOVE_2_53, next_offset=ABOVE_2_53)
            file.write_bytes(moved.encode())
        elif file.is_file():
            file.unlink()
    with broker:
        with BlockingClient(broker.address) as client, client.producer("t") as producer:
            assert producer.publish(b"a").offset == ABOVE_2_53
            assert producer.publish(b"b").offset == ABOVE_2_53 + 1
        as_json, table, second, described = all_of(
            "fetch t -o json",
            "fetch t",
            f"fetch t --from {ABOVE_2_53 + 1} --raw",
            "topic describe t -o json",
            server=broker.address,
        )
    offsets = [json.loads(line)["offset"] for line in as_json.splitlines()]
    assert offsets == [str(ABOVE_2_53), str(ABOVE_2_53 + 1)]
    assert str(ABOVE_2_53) in table
    assert second == "b\n"
    (partition,) = json.loads(described)["partitions"]
    assert partition["log_start_offset"] == str(ABOVE_2_53)
    assert partition["next_offset"] == str(ABOVE_2_53 + 2)


def int64_fields(value: object) -> Iterator[tuple[str, object]]:
    """Yields what names itself an int64: offsets, sizes and times."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name.endswith(("_ms", "_bytes", "offset")) or name == "offset":
                yield name, each
            yield from int64_fields(each)
    elif isinstance(value, list):
        for each in value:
            yield from int64_fields(each)


def test_all_int64_in_json_are_strings(server, tmp_path):
    fill(server, "strings")
    file = tmp_path / "lines"
    file.write_text("v\n")
    written = all_of(
        f"produce strings -f {file} -o json",
        "fetch strings -o json",
        "topic describe strings -o json",
        "broker describe -o json",
        server=server,
    )
    found = [field for text in written for field in int64_fields(json.loads(text))]
    assert len(found) > 15
    assert [name for name, value in found if not isinstance(value, str)] == []


def test_a_time_without_a_zone_is_utc_in_every_zone_and_the_command_says_so(server):
    with BlockingClient(server) as client:
        client.admin.create_topic("zones")
        with client.producer("zones") as producer:
            for number in range(-2, 3):
                producer.send(b"%d" % number, timestamp_ms=MOMENT_MS + number * 1_800_000)
    for zone in ("America/St_Johns", "Europe/Berlin", "UTC"):
        bare = ("fetch", "zones", "--from", "2027-03-28T02:30")
        done = logbroker(*bare, server=server, environ={"TZ": zone})
        times = [line.split()[2] for line in done.stdout.decode().splitlines()]
        assert times == [
            "2027-03-28T02:30:00.000Z",
            "2027-03-28T03:00:00.000Z",
            "2027-03-28T03:30:00.000Z",
        ], zone
        assert b"2027-03-28T02:30:00.000Z (UTC)" in done.stderr, "what it was taken for"
    shown_again, with_zone = all_of(
        f"fetch zones --from {times[1]} --raw",
        "fetch zones --from 2027-03-28T00:30-02:30 --raw",
        server=server,
    )
    assert shown_again == with_zone == "1\n2\n", "what is shown can be given back"


LOCALES = {
    "C": "C",
    "C pure": "C",
    "tr_TR": "tr_TR.ISO-8859-9",
    "de_DE": "de_DE.ISO-8859-1",
    "de_DE.UTF-8": "de_DE.UTF-8",
}
MAIN = """
import json, os, sys
from logbroker.cli.main import main

for arguments in json.loads(sys.argv[1]):
    sys.argv[1:] = [os.fsdecode(each.encode()) for each in arguments]  # as they are typed
    try:
        main()
    except SystemExit as ended:
        print("ended with", ended.code, flush=True)
"""
VIEWS = [
    ["topic", "list"],
    ["topic", "list", "-o", "json"],
    ["topic", "describe", "locales"],
    ["topic", "describe", "locales", "-o", "json"],
    ["fetch", "locales"],
    ["fetch", "locales", "--full"],
    ["fetch", "locales", "--raw"],
    ["fetch", "locales", "-o", "json"],
    ["fetch", "locales", "--format", "{time} {key} {value} {headers}"],
    ["fetch", "locales", "--from", "2027-03-28T02:30"],
    ["topic", "create", "locales"],
    ["topic", "create", "ungültig"],
    ["topic", "create", "İıŞş-I-i"],
    ["fetch", "locales", "--from", "übermorgen"],
    ["fetch", "--help"],
]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the locales are, as far as this machine can make them."""
    directory = tmp_path_factory.mktemp("locales")
    for name in sorted(set(LOCALES.values()) - {"C"}):
        language, charset = name.split(".")
        command = ["localedef", "-i", language, "-f", charset, str(directory / name)]
        try:
            subprocess.run(command, capture_output=True, check=False, timeout=30)
        except FileNotFoundError:
            break  # then all of them mean C
    return directory


def test_output_is_the_same_in_every_locale(server, compiled):
    fill(server, "locales")
    with BlockingClient(server) as client, client.producer("locales") as producer:
        headers = [Header("имя", "\u0131 \u0130 ß".encode()), Header("b", b"\xff")]
        producer.send("zażółć 1.234,5".encode(), "ключ".encode(), headers, MOMENT_MS)
        producer.send(b"\xff\x00\x1b[31m", b"\xfe", (), MOMENT_MS + 1_234_567)
    outputs = {}
    for name, locale in LOCALES.items():
        environ = {"LC_ALL": locale, "LOCPATH": str(compiled), "LOGBROKER_SERVER": server}
        if "pure" in name:
            environ |= {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        outputs[name] = subprocess.run(
            [sys.executable, "-c", MAIN, json.dumps(VIEWS)],
            capture_output=True,
            env={**os.environ, **environ},
            timeout=60,
            check=False,
        )
    first = outputs["C"]
    assert first.stdout.count(b"ended with 0") == 11, first.stderr.decode()
    assert b"Traceback" not in first.stderr
    assert "zażółć 1.234,5".encode() in first.stdout
    for name, done in outputs.items():
        assert (done.stdout, done.stderr) == (first.stdout, first.stderr), name


@pytest.mark.parametrize("locale", LOCALES)
def test_arguments_are_the_bytes_that_were_typed_in_every_locale(server, compiled, locale):
    topic = f"typed-{locale}".replace(" ", "-")
    environ = {
        "LC_ALL": LOCALES[locale],
        "LOCPATH": str(compiled),
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
    }
    fill(server, topic)
    typed = ("produce", topic, "--key", "ключ", "-H", "имя=zażółć")
    output_of(*typed, server=server, stdin=b"v\n", **environ)
    with BlockingClient(server) as client, client.reader(topic) as reader:
        (record,) = reader
    assert record.key == "ключ".encode()
    assert record.headers == (("имя", "zażółć".encode()),)


@pytest.fixture(scope="module")
def long(server: str) -> str:
    """The name of a topic that fills more than a pipe."""
    fill(server, "long", *(b"%d" % number for number in range(20_000)))
    return "long"


@pytest.mark.parametrize(
    "options, unbuffered",
    [
        ((), ""),
        (("-o", "json"), ""),
        (("--raw",), ""),
        (("--follow",), ""),
        (("--follow",), "1"),
        (("--raw",), "1"),
    ],
    ids=str,
)
def test_a_reader_that_goes_away_ends_the_command_quietly(server, long, options, unbuffered):
    command = subprocess.Popen(
        [sys.executable, "-m", "logbroker", "fetch", long, *options, "--server", server],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    assert command.stdout
    assert command.stderr
    assert b"0" in command.stdout.readline()
    command.stdout.close()
    assert command.stderr.read() == b""
    command.stderr.close()
    assert command.wait(timeout=30) == 141


def test_head_1_takes_one_line_and_nobody_complains(server):
    fill(server, "head", b"first", *[b"other"] * 50_000)
    fetch = f"{sys.executable} -m logbroker fetch head --raw --server {server}"
    done = subprocess.run(
        ["bash", "-c", f"{fetch} | head -1"], capture_output=True, timeout=30, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == (b"first\n", b"", 0)


def test_no_file_name_holds_what_windows_forbids(tmp_path):
    with BrokerProcess(tmp_path / "data", "--segment-bytes", "4KiB") as broker:
        fill(broker.address, "a.b_c-D", *(b"%d" % number * 100 for number in range(300)))
    names = [path.name for path in (tmp_path / "data").rglob("*")]
    assert len(names) > 10
    allowed = re.compile(r"[A-Za-z0-9._-]*[A-Za-z0-9_-]")
    assert [name for name in names if not allowed.fullmatch(name)] == []
