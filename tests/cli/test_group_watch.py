import asyncio
import io
import json
import re
import sys

import pytest

from cli.conftest import Command
from logbroker.cli.group_looks import Look
from logbroker.cli.group_watch import heard
from logbroker.cli.main import run
from logbroker.errors import NotFoundError
from logbroker.testing.clock import ManualClock


async def test_a_broker_that_takes_its_time_is_said_not_to_answer_until_it_does() -> None:
    clock, told, answer = ManualClock(), list[int](), asyncio.Future[Look]()

    async def ask() -> Look:
        return await answer

    asked = asyncio.create_task(heard(ask(), clock, told.append))
    for silent_ms in (2_000, 4_000):
        await clock.advance(2_000)
        assert told[-1:] == [silent_ms]
    answer.set_result(Look(0, []))
    assert await asked == Look(0, [])
    assert told == [2_000, 4_000]


async def test_an_error_of_a_look_comes_out_as_it_is() -> None:
    async def fail() -> Look:
        raise NotFoundError("GROUP_NOT_FOUND", "there is no group 'g'", group="g")

    with pytest.raises(NotFoundError):
        await heard(fail(), ManualClock(), lambda _: None)


@pytest.mark.slow
def test_a_watch_in_a_pipe_is_lines_under_one_row_of_titles(
    command: Command, numbered: str, group: str
) -> None:
    command("consume", numbered, "-g", group, "-n", "5")
    ran = command("group", "watch", group, "--count", "3", "--interval", "10ms")
    titles, *lines = ran.out.splitlines()
    assert (ran.code, len(lines)) == (0, 3)
    for line in lines:
        row = dict(zip(re.split("  +", titles), re.split("  +", line), strict=True))
        assert (row["TOPIC"], row["COMMITTED"], row["LAG"]) == (numbered, "5", "15")


@pytest.mark.slow
def test_a_watch_for_programs_is_an_object_for_each_look(
    command: Command, numbered: str, group: str
) -> None:
    command("consume", numbered, "-g", group, "-n", "5")
    options = ("--count", "2", "--interval", "10ms", "-o", "json")
    looks = list(map(json.loads, command("group", "watch", group, *options).out.splitlines()))
    assert [one["lag"] for one in looks] == ["15", "15"]
    assert looks[0]["time_ms"].isdecimal()
    (every,) = map(json.loads, command("group", "watch", "-c", "1", "-o", "json").out.splitlines())
    assert group in [one["group"] for one in every["groups"]]


@pytest.mark.slow
def test_a_watch_on_a_terminal_is_one_table_renewed_in_place(
    command: Command, numbered: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command("consume", numbered, "-g", group, "-n", "5")
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["group", "watch", group, "--count", "3", "--interval", "10ms"]) == 0
    assert terminal.getvalue().count(numbered) >= 3
    assert "\x1b[" in terminal.getvalue()
