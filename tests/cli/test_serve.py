"""The command in a process of its own: how it starts, stops, refuses, and writes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from logbroker.client.membership import LEAVE_MS
from logbroker.testing.running_broker import BrokerProcess

pytestmark = pytest.mark.slow

LOCALES: dict[str, dict[str, str]] = {
    "C": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "Turkish": {"LC_ALL": "tr_TR.ISO-8859-9", "PYTHONIOENCODING": "iso8859-9"},
    "German": {"LC_ALL": "de_DE.ISO-8859-1", "PYTHONIOENCODING": "latin-1"},
    "UTF-8 in India": {"LC_ALL": "C.UTF-8", "TZ": "Asia/Kolkata"},
}
LINES = "ż Ω I i \u0131 \u0130 日本 1234567.5\n\x85\u2028\x1b\n".encode() + b"\xff\xfe\n"


def logbroker(
    *arguments: str, python: tuple[str, ...] = (), stdin: bytes = b"", **environ: str
) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, *python, "-m", "logbroker", *arguments]
    return subprocess.run(
        command, input=stdin, capture_output=True, env={**os.environ, **environ}, timeout=30
    )


def test_the_first_line_for_programs_says_where_it_listens(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "logbroker", "serve", "--grpc", "127.0.0.1:0", "-o", "json"]
    command += ["--data-dir", str(tmp_path / "data"), "--durability", "written"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        started = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        logged = [json.loads(line) for line in process.stderr.read().splitlines()]
        assert process.wait() == 0
    assert started["address"].startswith("127.0.0.1:")
    assert started["data_dir"] == str(tmp_path / "data")
    assert started["durability"] == "written"
    assert [line["event"] for line in logged][-1] == "stopped"


def test_people_are_told_a_first_command_to_try(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "logbroker", "serve", "--grpc", "127.0.0.1:0"]
    command += ["--data-dir", str(tmp_path / "data"), "--log-level", "error"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        first = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
        assert (process.wait(), process.stderr.read()) == (0, b"")
    assert first.startswith(b"logbroker ")
    assert b"logbroker topic create hello --server 127.0.0.1:" in rest
    assert str(tmp_path / "data").encode() in rest


def test_a_second_broker_on_a_directory_ends_at_once_and_names_it(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        ran = logbroker("serve", "--data-dir", str(broker.data_dir), "--grpc", "127.0.0.1:0")
        assert ran.returncode == 1
        assert str(broker.data_dir).encode() in ran.stderr
        assert b"(BROKER_RUNNING)" in ran.stderr
        assert broker.stop() == 0


def test_an_address_that_is_taken_is_named(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        ran = logbroker("serve", "--data-dir", str(tmp_path / "other"), "--grpc", broker.address)
    assert ran.returncode == 1
    assert b"error: cannot listen on " + broker.address.encode() in ran.stderr
    assert b"Traceback" not in ran.stderr


def test_an_address_that_others_reach_is_refused_unless_that_is_meant(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    ran = logbroker("serve", "--data-dir", str(data_dir), "--grpc", "0.0.0.0:0")
    assert ran.returncode == 1
    assert b"--insecure" in ran.stderr
    assert not data_dir.exists()
    with BrokerProcess(data_dir, "--grpc", "0.0.0.0:0", "--insecure") as broker:
        assert broker.address.startswith("0.0.0.0:")
        assert "WARNING: no authentication" in broker.log_file.read_text()


def test_a_broker_without_its_assertions_is_refused(tmp_path: Path) -> None:
    ran = logbroker("serve", "--data-dir", str(tmp_path / "data"), python=("-O",))
    assert ran.returncode == 1
    assert b"assertions are off" in ran.stderr


def test_a_flag_counts_more_than_the_environment_and_that_more_than_the_file(
    tmp_path: Path,
) -> None:
    file = tmp_path / "broker.toml"
    file.write_text("[log]\nretention_ms = 1000\nsegment_ms = 1000\nflush_interval_ms = 1000\n")
    environ = {"LOGBROKER_LOG_SEGMENT_MS": "2000", "LOGBROKER_LOG_FLUSH_INTERVAL_MS": "2000"}
    arguments = ("--config", str(file), "--set", "log.flush_interval_ms=3000", "--set",
                 "log.retention_bytes=5", "--retention-bytes", "1GiB")  # fmt: skip
    with BrokerProcess(tmp_path / "data", *arguments, environ=environ) as broker:
        ran = logbroker("topic", "create", "t", "-o", "json", LOGBROKER_SERVER=broker.address)
    settings = json.loads(ran.stdout)["settings"]
    assert settings["retention_ms"] == "1000"
    assert settings["segment_ms"] == "2000"
    assert settings["flush_interval_ms"] == "3000"
    assert settings["retention_bytes"] == "1073741824"


def test_c60_output_has_the_same_bytes_in_each_locale(server: str) -> None:
    logbroker("topic", "create", "locales", LOGBROKER_SERVER=server)
    logbroker("produce", "locales", stdin=LINES, LOGBROKER_SERVER=server)
    for options in ((), ("-o", "json")):
        runs = {
            name: logbroker("fetch", "locales", *options, LOGBROKER_SERVER=server, **environ)
            for name, environ in LOCALES.items()
        }
        assert {run.returncode for run in runs.values()} == {0}
        assert {run.stderr for run in runs.values()} == {b""}
        assert len({run.stdout for run in runs.values()}) == 1
    raw = logbroker("fetch", "locales", "--raw", LOGBROKER_SERVER=server)
    assert raw.stdout == LINES


def test_c60_input_means_the_same_in_each_locale(server: str) -> None:
    logbroker("topic", "create", "inputs", LOGBROKER_SERVER=server)
    for environ in LOCALES.values():
        produced = ("produce", "inputs", "--key", "ż", "-H", "ż=ż")
        assert logbroker(*produced, stdin=LINES, LOGBROKER_SERVER=server, **environ).returncode == 0
    ran = logbroker("fetch", "inputs", "--format", "{key} {headers}", LOGBROKER_SERVER=server)
    assert set(ran.stdout.decode().splitlines()) == {"ż ż=ż"}


@pytest.mark.parametrize("options", [(), ("-o", "json"), ("--raw",)], ids=["", "json", "raw"])
def test_c60_a_reader_that_goes_away_ends_the_command_without_a_word(
    server: str, options: tuple[str, ...]
) -> None:
    logbroker("topic", "create", "piped", LOGBROKER_SERVER=server)
    logbroker("produce", "piped", stdin=b"line\n" * 200_000, LOGBROKER_SERVER=server)
    command = [sys.executable, "-m", "logbroker", "fetch", "piped", *options, "--server", server]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        assert b"line" in process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_an_interrupted_command_ends_without_a_word(server: str) -> None:
    logbroker("topic", "create", "followed", LOGBROKER_SERVER=server)
    logbroker("produce", "followed", stdin=b"line\n", LOGBROKER_SERVER=server)
    command = [sys.executable, "-m", "logbroker", "fetch", "followed", "--follow", "--server"]
    with subprocess.Popen(
        [*command, server], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        assert b"line" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert (process.stdout.read(), process.stderr.read()) == (b"", b"")
        assert process.wait() == 130


def test_damaged_records_are_named_with_the_good_offset_behind_them(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        logbroker("topic", "create", "hurt", LOGBROKER_SERVER=broker.address)
        for value in (b"first", b"second", b"third"):
            logbroker("produce", "hurt", stdin=value, LOGBROKER_SERVER=broker.address)
    (segment,) = (tmp_path / "data").glob("topics/hurt/0/*.log")
    segment.write_bytes(segment.read_bytes().replace(b"second", b"sec0nd"))
    with BrokerProcess(tmp_path / "data") as broker:
        ran = logbroker("fetch", "hurt", "--raw", "--server", broker.address)
        assert (ran.returncode, ran.stdout) == (1, b"first\n")
        assert b"(DAMAGED_BATCH)" in ran.stderr
        assert b"read on behind it with --from 2" in ran.stderr
        ran = logbroker("fetch", "hurt", "--raw", "--skip-damage", "--server", broker.address)
        assert (ran.returncode, ran.stdout) == (0, b"first\nthird\n")
        assert ran.stderr.endswith(b"warning: left out for damage: 1 record\n")


def test_an_interrupted_consumer_does_not_wait_long_for_a_broker_that_hangs(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        logbroker("topic", "create", "followed", LOGBROKER_SERVER=broker.address)
        logbroker("produce", "followed", stdin=b"line\n", LOGBROKER_SERVER=broker.address)
        command = [sys.executable, "-m", "logbroker", "consume", "followed", "--group", "g"]
        with subprocess.Popen(
            [*command, "--follow", "--server", broker.address], stdout=subprocess.PIPE
        ) as process:
            assert process.stdout
            assert b"line" in process.stdout.readline()
            broker.send(signal.SIGSTOP)
            process.send_signal(signal.SIGINT)
            begun = time.monotonic()
            try:
                assert process.wait() == 130
                assert time.monotonic() - begun < LEAVE_MS / 1_000
            finally:
                broker.send(signal.SIGCONT)
