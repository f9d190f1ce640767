import json

import pytest
import typer

from cli.conftest import Command, fail
from logbroker.cli.dead_letter_options import Offsets, parse_offsets
from logbroker.cli.redrive import until_ended
from logbroker.client.client import Client
from logbroker.client.dead_letter_admin import RedriveInfo
from logbroker.errors import UnavailableError
from logbroker.v1.dead_letter_service_pb2 import Redrive

RANGES = {"12": Offsets(12, 13), "12-40": Offsets(12, 41), "12-": Offsets(12, None)}


@pytest.fixture
def failed(command: Command, numbered: str, at_server: str, group: str) -> tuple[str, str]:
    """A group that has given up on the first 5 records of a topic."""
    fail(at_server, group, numbered, 5)
    return group, numbered


@pytest.mark.parametrize(("text", "offsets"), RANGES.items())
def test_offsets_are_read(text: str, offsets: Offsets) -> None:
    assert parse_offsets(text) == offsets


@pytest.mark.parametrize("text", ["", "-", "-5", "5-3", "x", "1-2-3", "1,2"])
def test_what_are_no_offsets_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="must be an offset"):
        parse_offsets(text)


@pytest.mark.slow
def test_dead_letters_are_listed_by_what_restricts_them(
    command: Command, failed: tuple[str, str]
) -> None:
    for options, offsets in {
        (): "01234",
        ("-n", "2"): "01",
        ("--offsets", "1-2"): "12",
        ("--offsets", "3-"): "34",
        ("--reason", "parse 4"): "4",
        ("--reason", "nothing"): "",
        ("--since", "-1h"): "01234",
        ("--until", "-1h"): "",
        ("--key", "k"): "",
        ("-p", "0"): "01234",
    }.items():
        ran = command("dlq", "list", *failed, *options, "-o", "json")
        assert (ran.code, ran.err) == (0, "")
        found = [json.loads(line)["offset"] for line in ran.out.splitlines()]
        assert "".join(found) == offsets, options


@pytest.mark.slow
def test_c59_a_dead_letter_is_shown_with_its_reason_and_without_raw_escapes(
    command: Command, failed: tuple[str, str]
) -> None:
    assert r"cannot \x1b[31m parse 3" in command("dlq", "list", *failed).out
    shown = command("dlq", "show", *failed, "0", "3").out
    assert r"cannot \x1b[31m parse 3" in shown
    assert "\x1b" not in shown
    assert command("dlq", "show", *failed, "0", "3", "--raw").out == "3"
    as_json = json.loads(command("dlq", "show", *failed, "0", "3", "-o", "json").out)
    assert (as_json["source_offset"], as_json["value"], as_json["state"]) == ("3", "3", "parked")
    nowhere = command("dlq", "show", *failed, "0", "99")
    assert nowhere.code == 1
    assert "Traceback" not in nowhere.err


@pytest.mark.slow
def test_a_redrive_gives_dead_letters_back_to_their_group(
    command: Command, failed: tuple[str, str]
) -> None:
    group, topic = failed
    assert command("dlq", "redrive", *failed, "--dry-run").out == "would redrive 5 dead letters\n"
    dry = json.loads(command("dlq", "redrive", *failed, "--dry-run", "-o", "json").out)
    assert (dry.keys() & {"redrive_id", "state"}, dry["selected_count"]) == (set(), "5")
    ran = command("dlq", "redrive", *failed, "-n", "2", "-o", "json")
    done = json.loads(ran.out)
    assert (done["state"], done["redriven_count"]) == ("done", "2")
    assert done["filter"] == {"group": group, "topic": topic, "limit": "2"}
    printed = command("consume", topic, "-g", group, "-n", "17", "-o", "json", "--follow").out
    again = [one for one in map(json.loads, printed.splitlines()) if one["redrives"]]
    assert [one["offset"] for one in again] == ["0", "1"]
    listed = command("dlq", "redrives", group, "-o", "json").out
    assert json.loads(listed)["resolved_count"] == "2"
    assert len(command("dlq", "list", *failed, "-o", "json").out.splitlines()) == 3


@pytest.mark.slow
def test_a_redrive_that_is_left_alone_can_be_seen_and_cancelled(
    command: Command, failed: tuple[str, str]
) -> None:
    ran = command("dlq", "redrive", *failed, "--rate", "0.1", "--detach")
    redrive_id = ran.out.removeprefix("started ").partition(":")[0]
    assert ran.out == f"started {redrive_id}: 5 dead letters\n"
    second = command("dlq", "redrive", *failed)
    assert second.code == 1
    assert "(REDRIVE_RUNNING)" in second.err
    assert f"logbroker dlq cancel {redrive_id}" in second.err
    assert redrive_id in command("dlq", "redrives", failed[0]).out
    assert f"{redrive_id} cancelled" in command("dlq", "cancel", redrive_id).out
    assert "(REDRIVE_NOT_FOUND)" in command("dlq", "cancel", "nope").err


async def test_who_watches_a_redrive_while_the_broker_goes_is_told_that_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def nobody_answers(redrive_id: str) -> RedriveInfo:
        raise UnavailableError("UNREACHABLE", "no broker answers")

    client = Client("127.0.0.1:1")
    monkeypatch.setattr(client.admin, "get_redrive", nobody_answers)
    running = RedriveInfo.of(
        Redrive(redrive_id="r1", state="running", selected_count=5, filter={"group": "mail"})
    )
    with pytest.raises(UnavailableError):
        await until_ended(client, running)
    expected = "redrive r1 goes on when the broker is back; see: logbroker dlq redrives mail\n"
    assert capsys.readouterr().err == expected
    await client.close()


@pytest.mark.slow
def test_dead_letters_are_resolved_for_good(command: Command, failed: tuple[str, str]) -> None:
    dry = command("dlq", "resolve", *failed, "--dry-run")
    assert dry.out == "would resolve 5 dead letters\n"
    one = command("dlq", "resolve", *failed, "--offsets", "2", "--yes")
    assert one.out == "resolved 1 dead letter\n"
    rest = command("dlq", "resolve", *failed, "--discard", "--yes", "-o", "json")
    assert json.loads(rest.out) == {"count": "4", "discard": True, "dry_run": False}
    assert command("dlq", "list", *failed, "-o", "json").out == ""
    assert len(command("dlq", "list", *failed, "--resolved", "-o", "json").out.splitlines()) == 5


@pytest.mark.slow
def test_blocked_records_are_listed_shown_and_moved_where_they_are(
    command: Command, numbered: str, at_server: str, group: str
) -> None:
    command("group", "create", group, "--exhausted", "block", "--order", "none")
    fail(at_server, group, numbered, 3)
    there = (group, numbered)
    listed = command("dlq", "list", *there)
    assert (listed.out, listed.code) == ("", 0)
    assert f"3 records of {numbered} are blocked in their place: add --blocked" in listed.err
    found = command("dlq", "list", *there, "--blocked", "-o", "json").out.splitlines()
    assert [json.loads(line)["offset"] for line in found] == ["0", "1", "2"]
    shown = command("dlq", "show", *there, "0", "1", "--blocked").out
    assert "parse 1" in shown
    assert [line for line in shown.splitlines() if len(line.split()) < 2] == []
    why = command("explain", *there, "0", "1")
    assert why.out.startswith("parked ")
    assert f"logbroker dlq show {group} {numbered} 0 1 --blocked" in why.err
    dry = command("dlq", "redrive", *there, "--blocked", "--dry-run")
    assert dry.out == "would redrive 3 blocked records\n"
    ran = command("dlq", "redrive", *there, "--blocked", "-n", "1")
    assert ran.out.endswith(
        f"done: 1 of 1 blocked record given back to {group}: 0 settled since, 0 failed again\n"
    )
    assert f"{numbered} (blocked)" in command("dlq", "redrives", group).out
    done = command("dlq", "resolve", *there, "--blocked", "--yes")
    assert done.out == "resolved 2 blocked records\n"
    nothing = command("dlq", "resolve", *there, "--blocked", "--yes")
    assert nothing.out == "resolved 0 blocked records\n"
    assert nothing.err == f"no blocked record of group {group} in {numbered} can be resolved\n"


@pytest.mark.slow
def test_a_dead_letter_is_explained_with_where_to_look(
    command: Command, failed: tuple[str, str]
) -> None:
    group, topic = failed
    ran = command("explain", *failed, "0", "3")
    assert ran.out.startswith("dead_lettered ")
    assert f"logbroker dlq show {group} {topic} 0 3" in ran.err
    there = command("explain", group, f"{topic}.{group}.dlq", "0", "3")
    assert there.out.startswith("parked ")
    assert f"logbroker dlq show {group} {topic} 0 3" in there.err


@pytest.mark.slow
def test_what_cannot_be_meant_is_said(command: Command, failed: tuple[str, str]) -> None:
    group, topic = failed
    for arguments, expected in {
        (group, topic, "-p", "9"): "(PARTITION_NOT_FOUND)",
        (group, f"{topic}.{group}.dlq"): "name that topic",
        (group, topic, "--since", "yesterday"): "must be a time, such as 2026-07-01T12:00Z",
        (group, topic, "--since", "12"): "must be a time",
        (group, "no such topic"): "(INVALID_NAME)",
        (group, "nowhere"): "(TOPIC_NOT_FOUND)",
        (group, topic, "--offsets", "x"): "must be an offset",
        (group, topic, "--limit", "-1"): "--limit",
    }.items():
        for verb in ("list", "redrive"):
            ran = command("dlq", verb, *arguments)
            assert (ran.code > 0, ran.out) == (True, ""), arguments
            assert expected in ran.err, ran.err
            assert "Traceback" not in ran.err


@pytest.mark.slow
def test_dead_letters_are_copied_and_stay(
    command: Command, failed: tuple[str, str], topic: str
) -> None:
    name = f"{topic}-copies"
    command("topic", "create", name)
    ran = command("dlq", "copy", *failed, "--to", name, "-n", "3")
    assert ran.out == f"copied 3 dead letters to {name}\n"
    assert command("fetch", name, "--raw").out == "0\n1\n2\n"
    assert len(command("dlq", "list", *failed, "-o", "json").out.splitlines()) == 5
    assert "(TOPIC_NOT_FOUND)" in command("dlq", "copy", *failed, "--to", "nowhere").err


@pytest.mark.slow
def test_a_group_that_has_failed_at_nothing_has_no_dead_letters(
    command: Command, numbered: str, group: str
) -> None:
    command("consume", numbered, "-g", group)
    listed = command("dlq", "list", group, numbered)
    assert (listed.out, listed.code) == ("", 0)
    assert listed.err == f"no dead letter of group {group} in {numbered} is unresolved\n"
    listed = command("dlq", "list", group, numbered, "--reason", "x", "--resolved")
    assert listed.err == f"no dead letter of group {group} in {numbered} is here and matches\n"
    assert command("dlq", "list", group, numbered, "-o", "json").out == ""
    assert command("dlq", "redrive", group, numbered, "--dry-run").code == 0
    assert command("dlq", "redrives", group, "-o", "json").out == ""
    ran = command("dlq", "list", f"{group}-other", numbered)
    assert "(GROUP_NOT_FOUND)" in ran.err
