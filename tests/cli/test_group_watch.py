import io
import json
import re
import sys

import pytest

from cli.conftest import Command
from logbroker.cli.group_view import PROGRESS_COLUMNS
from logbroker.cli.group_watch import COLUMNS, Look, Table
from logbroker.cli.main import run
from logbroker.client.group_status import GroupDescription, GroupInfo, PartitionProgress
from logbroker.group.settings import GroupSettings


def seen(now_ms: int, committed: int | None) -> Look:
    progress = PartitionProgress(
        topic="t", partition=0, committed_offset=committed, high_watermark=100,
        log_start_offset=0, lag=100 - (committed or 0), age_ms=5_000, leased_count=0,
        waiting_count=0, parked_count=0, failed_count=0, expired_unsettled_count=0, member_id="",
        waits_for="",
    )  # fmt: skip
    group = GroupInfo("g", GroupSettings(), 0, ("t",))
    return Look(now_ms, GroupDescription(group, (), (progress,), ()))


def test_from_the_second_look_on_it_is_seen_how_fast_a_group_settles() -> None:
    table = Table()
    columns = [table.of(seen(now_ms, at)) for now_ms, at in ((0, None), (500, 0), (1_000, 40))]
    rates = [dict(zip(names, rows[0], strict=True))["settled/s"] for names, rows in columns]
    assert rates == ["-", "-", "80"]
    assert set(COLUMNS) - set(PROGRESS_COLUMNS) == {"settled/s"}


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
