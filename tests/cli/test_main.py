import subprocess
import sys

import pytest

from cli.conftest import Command

NOWHERE = "127.0.0.1:1"
COMMANDS = (
    ("serve",), ("produce",), ("fetch",), ("topic",), ("topic", "create"), ("topic", "list"),
    ("topic", "describe"), ("topic", "update"), ("topic", "grow"), ("topic", "delete"),
    ("topic", "trim"), ("group",), ("group", "create"), ("group", "list"), ("group", "describe"),
    ("group", "update"), ("group", "reset"), ("group", "delete"), ("group", "watch"), ("consume",),
    ("explain",), ("dlq",), ("dlq", "list"), ("dlq", "show"), ("dlq", "redrive"),
    ("dlq", "redrives"), ("dlq", "cancel"), ("dlq", "resolve"), ("dlq", "copy"),
    ("broker", "describe"), ("log",), ("log", "verify"),
)  # fmt: skip
MISTAKES = {
    "no such command": ("nope",),
    "no such option": ("topic", "list", "--nope"),
    "a name that looks like an option": ("topic", "create", "-rf"),
    "a server without a port": ("topic", "list", "--server", "localhost"),
    "a server that is no name": ("topic", "list", "--server", "a b:1"),
    "an output there is not": ("topic", "list", "-o", "yaml"),
    "a duration without a unit": ("topic", "create", "t", "--retention", "7"),
    "a count below one": ("topic", "create", "t", "-p", "0"),
    "nothing to update": ("topic", "update", "t"),
    "a place that is none": ("fetch", "t", "--from", "soon"),
    "two ways to print": ("fetch", "t", "--raw", "-o", "json"),
    "last, and from": ("fetch", "t", "--last", "1", "--from", "5"),
    "a field there is not": ("fetch", "t", "--format", "{nope}"),
    "a file that is not there": ("produce", "t", "--file", "/nope"),
    "a key for JSON lines": ("produce", "t", "--format", "json", "--key", "k"),
    "an empty separator": ("produce", "t", "--key-separator", ""),
    "a header without a value": ("produce", "t", "--header", "n"),
    "a group that looks like an option": ("group", "create", "-rf"),
    "no group": ("consume", "t"),
    "nothing to update of a group": ("group", "update", "g"),
    "an order there is not": ("group", "create", "g", "--order", "random"),
    "a start that is none": ("group", "create", "g", "--start", "soon"),
    "a reset to nowhere": ("group", "reset", "g", "t", "--to", "soon"),
    "a reset without a place": ("group", "reset", "g", "t"),
    "an interval without a unit": ("group", "watch", "g", "--interval", "1"),
    "deleting a group unasked": ("group", "delete", "g"),
    "a new group's place that is none": ("consume", "t", "-g", "g", "--from", "soon"),
    "offsets that run backwards": ("dlq", "list", "g", "t", "--offsets", "9-3"),
    "a time that is an offset": ("dlq", "list", "g", "t", "--since", "9"),
    "a rate below zero": ("dlq", "redrive", "g", "t", "--rate", "-1"),
    "a dry run that is left alone": ("dlq", "redrive", "g", "t", "--dry-run", "--detach"),
    "resolving unasked": ("dlq", "resolve", "g", "t"),
    "a copy to nowhere": ("dlq", "copy", "g", "t"),
    "an offset below zero": ("explain", "g", "t", "0", "-1"),
    "a setting without a value": ("serve", "--set", "log.retention_ms"),
    "a section there is not": ("serve", "--set", "nope.x=1"),
    "a setting there is not": ("serve", "--set", "log.nope=1"),
}


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_every_command_explains_itself(command: Command, arguments: tuple[str, ...]) -> None:
    ran = command(*arguments, "--help")
    assert ran.code == 0
    assert "Usage: logbroker" in ran.out
    assert "[[" not in ran.out


def test_the_version_is_shown(command: Command) -> None:
    assert command("--version").out.startswith("logbroker ")


def test_nothing_to_do_shows_the_help(command: Command) -> None:
    ran = command()
    assert ran.code == 2
    assert "Commands:" in ran.out + ran.err


@pytest.mark.parametrize("arguments", MISTAKES.values(), ids=MISTAKES)
def test_a_command_that_is_not_understood_ends_with_2(
    command: Command, arguments: tuple[str, ...]
) -> None:
    ran = command(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")
    assert not ran.err.startswith("error: Invalid value:")
    assert ran.err.splitlines()[-1].startswith("help:  logbroker")


def test_c59_a_mistake_is_repeated_without_its_escape_codes(command: Command) -> None:
    ran = command("topic", "list", "--\x1b[31m")
    assert ran.code == 2
    assert "\x1b" not in ran.err


def test_where_no_broker_answers_the_address_and_the_way_out_are_said(command: Command) -> None:
    ran = command("topic", "list", "--server", NOWHERE)
    assert (ran.code, ran.out) == (1, "")
    assert f"no broker answers at {NOWHERE} (UNREACHABLE)" in ran.err
    assert "logbroker serve" in ran.err


def test_the_server_may_be_given_by_the_environment(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGBROKER_SERVER", NOWHERE)
    assert NOWHERE in command("broker", "describe").err


@pytest.mark.slow
def test_a_broker_starts_without_the_other_commands():
    program = "import sys; from logbroker.cli.main import run; run(['serve', '--help']); "
    program += "sys.exit('logbroker.cli.client_commands' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert "--data-dir" in done.stdout
