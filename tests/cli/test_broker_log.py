import json
import logging

import pytest
import structlog

from logbroker.cli.broker_log import LogLevel, configure_log


def test_a_line_is_time_level_message_and_fields(capsys: pytest.CaptureFixture[str]) -> None:
    configure_log(LogLevel.INFO, as_json=False)
    structlog.get_logger().info("listening", address="a:1", path="two words", topic="\x1b[31m")
    time, rest = capsys.readouterr().err.split(" ", 1)
    assert time.endswith("Z")
    assert len(time) == len("2026-07-01T12:00:00.000Z")
    assert rest == 'info    listening address=a:1 path="two words" topic=\\x1b[31m\n'


def test_what_is_below_the_level_is_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    configure_log(LogLevel.WARNING, as_json=False)
    structlog.get_logger().info("listening")
    assert capsys.readouterr().err == ""


def test_lines_for_programs_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    configure_log(LogLevel.INFO, as_json=True)
    structlog.get_logger().warning("torn tail", torn_bytes=5)
    line = json.loads(capsys.readouterr().err)
    assert (line["level"], line["event"], line["torn_bytes"]) == ("warning", "torn tail", 5)


def test_a_traceback_follows_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    configure_log(LogLevel.INFO, as_json=False)
    try:
        raise ValueError("oops\x1b[31m")
    except ValueError:
        structlog.get_logger().exception("unforeseen")
    lines = capsys.readouterr().err.splitlines()
    assert "unforeseen" in lines[0]
    assert lines[-1] == r"ValueError: oops\x1b[31m"


def test_a_client_that_left_is_no_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    class ExecuteBatchError(Exception):
        """As gRPC's is named."""

    configure_log(LogLevel.DEBUG, as_json=False)
    try:
        raise ExecuteBatchError
    except ExecuteBatchError:
        logging.getLogger("grpc._cython.cygrpc").exception("raised in core")
    assert capsys.readouterr().err == ""


def test_what_libraries_warn_of_is_written_too(capsys: pytest.CaptureFixture[str]) -> None:
    configure_log(LogLevel.INFO, as_json=True)
    logging.getLogger("asyncio").warning("slow %s", "callback")
    logging.getLogger("asyncio").info("nothing")
    (line,) = map(json.loads, capsys.readouterr().err.splitlines())
    assert (line["event"], line["logger"]) == ("slow callback", "asyncio")
