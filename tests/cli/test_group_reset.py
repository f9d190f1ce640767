import json

import pytest
import typer

from cli.conftest import Command, attached
from logbroker.cli.group_reset import parse_reset
from logbroker.cli.moment import Moment
from logbroker.client.group_status import Shift

PLACES = {
    "earliest": "earliest", "LATEST": "latest", "42": 42, "+5": Shift(5), "-5": Shift(-5),
    "-10m": Moment(400_000), "@7": Moment(7), "1970-01-01T00:00:01Z": Moment(1_000),
    "1970-01-01": Moment(0, assumed_utc=True),
}  # fmt: skip


@pytest.mark.parametrize(("text", "place"), PLACES.items())
def test_a_place_to_reset_to_is_read(text: str, place: object) -> None:
    assert parse_reset(text, now_ms=1_000_000) == place


@pytest.mark.parametrize("text", ["", "+", "+5m", "--5", "soon", "5.0"])
def test_what_is_no_place_is_refused_with_what_is(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"\+N or -N .* earliest, latest"):
        parse_reset(text, now_ms=0)


@pytest.mark.slow
def test_a_reset_says_from_where_to_where_and_a_dry_run_changes_nothing(
    command: Command, numbered: str, group: str
) -> None:
    assert command("consume", numbered, "-g", group, "-n", "10", "--raw").code == 0
    dry = command("group", "reset", group, numbered, "--to", "-4", "--dry-run")
    titles, row, sum_line = dry.out.splitlines()
    assert titles.split() == ["TOPIC", "PARTITION", "FROM", "TO", "CHANGE"]
    assert row.split() == [numbered, "0", "10", "6", "-4"]
    would = "would move 1 of 1 partition: 4 records back, 0 on"
    assert sum_line == f"{would} (--dry-run: nothing was changed)"
    done = command("group", "reset", group, numbered, "--to", "+1")
    assert done.out.endswith("\nmoved 1 of 1 partition: 0 records back, 1 on\n")
    assert command("group", "reset", group, numbered, "--to", "10").code == 0
    for to, start, end in (
        ("-4", 10, 6), ("+1", 6, 7), ("99", 7, 20), ("latest", 20, 20), ("earliest", 20, 0),
        ("+999", 0, 20), ("-999", 20, 0), ("@0", 0, 0),
    ):  # fmt: skip
        moved = json.loads(command("group", "reset", group, numbered, "--to", to, "-o", "json").out)
        assert (moved["from_offset"], moved["to_offset"]) == (str(start), str(end)), to
    assert command("consume", numbered, "-g", group, "-n", "2", "--raw").out == "0\n1\n"


@pytest.mark.slow
def test_c26_a_group_in_use_is_reset_only_by_force_and_that_is_said(
    command: Command, numbered: str, at_server: str, group: str
) -> None:
    with attached(at_server, group, numbered):
        refused = command("group", "reset", group, numbered, "--to", "5")
        assert (refused.code, refused.out) == (1, "")
        assert "(GROUP_IN_USE)" in refused.err
        assert "--force" in refused.err
        forced = command("group", "reset", group, numbered, "--to", "5", "--force", "-o", "json")
        assert json.loads(forced.out)["to_offset"] == "5"


@pytest.mark.slow
def test_a_reset_to_an_offset_needs_one_partition(
    command: Command, at_server: str, group: str
) -> None:
    command("topic", "create", group, "-p", "2")
    command("consume", group, "-g", group)
    ran = command("group", "reset", group, group, "--to", "0")
    assert ran.code == 1
    assert "say which (-p)" in ran.err
    one = command("group", "reset", group, group, "--to", "0", "-p", "1", "-o", "json")
    assert json.loads(one.out)["partition"] == 1
    told = command("group", "reset", group, group, "--to", "+1", "--dry-run").out
    assert ": 0 records back, 0 on, 1 from none (--dry-run" in told
    both = command("group", "reset", group, group, "--to", "latest", "-o", "json")
    assert len(both.out.splitlines()) == 2
