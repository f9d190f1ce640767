import json

import pytest

from logbroker.cli import output
from logbroker.cli.output import Output, write_error, write_fields, write_json, write_table
from logbroker.errors import NotFoundError

ERROR = NotFoundError("TOPIC_NOT_FOUND", "there is no topic 'x'", topic="x")


def test_a_table_in_a_pipe_is_aligned_text_without_colours(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_table(("name", "count"), [("long-name", "5"), ("\x1b[31m", "12")])
    assert capsys.readouterr().out.splitlines() == [
        "NAME       COUNT", "long-name      5", r"\x1b[31m      12"
    ]  # fmt: skip


def test_a_table_on_a_terminal_shows_foreign_markup_as_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output.sys.stdout, "isatty", lambda: True)
    write_table(("name",), [("[bold]x[/bold]\x1b[31m",)])
    assert r"[bold]x[/bold]\x1b[31m" in capsys.readouterr().out


def test_an_empty_table_is_its_titles(capsys: pytest.CaptureFixture[str]) -> None:
    write_table(("a", "b"), [])
    assert capsys.readouterr().out == "A  B\n"


def test_fields_stand_under_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    write_fields({"a": "1", "long": "\x07"})
    assert capsys.readouterr().out == "a     1\nlong  \\x07\n"


def test_c60_json_is_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    write_json({"name": "ż", "number": 1.5})
    assert capsys.readouterr().out == '{"name": "\\u017c", "number": 1.5}\n'


def test_an_error_is_a_line_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    write_error(ERROR, Output.TABLE, "try this")
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err == "error: there is no topic 'x' (TOPIC_NOT_FOUND)\ntry this\n"


def test_an_error_for_programs_is_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    write_error(ERROR, Output.JSON, "try this")
    assert json.loads(capsys.readouterr().err) == {
        "error": {
            "reason": "TOPIC_NOT_FOUND",
            "message": "there is no topic 'x'",
            "details": {"topic": "x"},
            "may_retry": False,
            "no_effect": True,
        }
    }
