import json

import pytest

from cli.conftest import Command

pytestmark = pytest.mark.slow

TIMES_MS = (1_000, 2_000, 3_000)
NUMBERS = "9007199254740993 -9223372036854775808 12345678901234567890123"


@pytest.fixture
def three(command: Command, topic: str) -> str:
    """A topic of three records, one second apart."""
    lines = [
        json.dumps({"value": f"v{at}", "timestamp_ms": str(ms)}) for at, ms in enumerate(TIMES_MS)
    ]
    assert command("produce", topic, "--format", "json", stdin="\n".join(lines).encode()).code == 0
    return topic


RANGES: dict[str, tuple[tuple[str, ...], str]] = {
    "all": ((), "v0 v1 v2"),
    "from an offset": (("--from", "1"), "v1 v2"),
    "from the end": (("--from", "latest"), ""),
    "from a time": (("--from", "@2000"), "v1 v2"),
    "from between two times": (("--from", "1970-01-01T00:00:01.001Z"), "v1 v2"),
    "from a time in another zone": (("--from", "1970-01-01T05:30:03+05:30"), "v2"),
    "from a time of now": (("--from", "-1h"), ""),
    "until an offset": (("--until", "2"), "v0 v1"),
    "until a time": (("--until", "@3000"), "v0 v1"),
    "until a time that is not reached": (("--until", "@9000"), "v0 v1 v2"),
    "from and until": (("--from", "1", "--until", "2"), "v1"),
    "some": (("-n", "2"), "v0 v1"),
    "the last": (("--last", "2"), "v1 v2"),
    "more last ones than there are": (("--last", "9"), "v0 v1 v2"),
}


@pytest.mark.parametrize(("options", "values"), RANGES.values(), ids=RANGES)
def test_a_range_is_read(
    command: Command, three: str, options: tuple[str, ...], values: str
) -> None:
    ran = command("fetch", three, "--raw", *options)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.split() == values.split()


def test_c60_a_time_without_a_zone_is_utc_and_that_is_said(
    command: Command, three: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    ran = command("fetch", three, "--raw", "--from", "1970-01-01T00:00:02")
    assert ran.out == "v1\nv2\n"
    assert ran.err.startswith("--from 1970-01-01T00:00:02 names no zone and means 1970-01-01T00:0")
    assert ran.err.endswith("0:02.000Z (UTC)\n")


def test_c60_every_digit_is_shown(command: Command, topic: str) -> None:
    command("produce", topic, stdin=NUMBERS.encode())
    assert command("fetch", topic, "--raw").out == NUMBERS + "\n"
    assert json.loads(command("fetch", topic, "-o", "json").out)["value"] == NUMBERS
    assert NUMBERS in command("fetch", topic).out


def test_c59_no_escape_code_reaches_the_terminal_unless_raw_is_asked_for(
    command: Command, topic: str
) -> None:
    hostile = b"\x1b]0;x\x07\xff\x00<img onerror=x>"
    command("produce", topic, "--key-separator", "|", "-H", "\u00e9=\x1b[2J",
            stdin=hostile + b"|" + hostile)  # fmt: skip
    for options in ((), ("--full",), ("-o", "json"), ("--format", "{key} {value} {headers}")):
        out = command("fetch", topic, *options).out
        assert out.removesuffix("\n").isprintable()
    assert r"\x1b]0;x\x07\xff\x00<img onerror=x>" in command("fetch", topic).out
    assert "\x1b]0;x\x07" in command("fetch", topic, "--raw").out


def test_c59_a_value_of_a_mebibyte_is_cut_with_its_size(command: Command, topic: str) -> None:
    value = b"[" * 10_000 + b"1" * ((1 << 20) - 10_000 - 100)
    assert command("produce", topic, stdin=value).code == 0
    out = command("fetch", topic).out
    assert f"... ({len(value)} bytes)" in out
    assert len(out) < 500
    assert len(command("fetch", topic, "--full").out) > len(value)


def test_an_offset_that_is_not_there_is_refused_with_what_is(command: Command, three: str) -> None:
    ran = command("fetch", three, "--from", "99")
    assert (ran.code, ran.out) == (1, "")
    assert "(OFFSET_OUT_OF_RANGE)" in ran.err
    assert "0 to " in ran.err


def test_an_offset_needs_one_partition(command: Command, at_server: str) -> None:
    command("topic", "create", "two", "-p", "2")
    command("produce", "two", "-p", "1", stdin=b"a\nb\n")
    ran = command("fetch", "two", "--from", "1")
    assert ran.code == 1
    assert "say which (-p)" in ran.err
    assert command("fetch", "two", "--from", "1", "-p", "1", "--raw").out == "b\n"
    assert command("fetch", "two", "--last", "1", "--raw").out == "b\n"


def test_a_partition_that_is_not_there_is_refused(command: Command, topic: str) -> None:
    ran = command("fetch", topic, "-p", "3")
    assert ran.code == 1
    assert "it has 0 to 0 (PARTITION_NOT_FOUND)" in ran.err


def test_following_ends_after_the_records_that_were_asked_for(command: Command, three: str) -> None:
    assert command("fetch", three, "--follow", "-n", "3", "--raw").out == "v0\nv1\nv2\n"


def test_a_template_says_what_is_printed(command: Command, three: str) -> None:
    ran = command("fetch", three, "--format", "{partition}/{offset} {time}", "-n", "1")
    assert ran.out == "0/0 1970-01-01T00:00:01.000Z\n"
