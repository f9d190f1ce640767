import pytest
import typer

from logbroker.cli.record_line import line_template, record_line
from logbroker.record.record import Header, Record

RECORD = Record(12, 0, b"k", b"v" * 300, (Header("n\x1b", b"1"), Header("n", None)), 3)


def test_a_record_is_a_line_with_its_place_time_key_value_and_headers() -> None:
    line = record_line(Record(12, 0, None, b"", (Header("a", b"b"),), 3), full=False)
    assert line == "        3          12  1970-01-01T00:00:00.000Z  (null)  (empty)  {a=b}"


def test_c59_a_record_of_escape_codes_is_a_line_that_prints() -> None:
    hostile = b"\x1b]0;x\x07<script>\xff\x00\n\xe2\x80\xae"
    line = record_line(Record(0, 0, hostile, hostile, (Header("\x1b[2J", hostile),)), full=True)
    assert line.isprintable()
    assert "<script>" in line


def test_a_long_value_is_cut_unless_all_is_asked_for() -> None:
    assert "v... (300 bytes)" in record_line(RECORD, full=False)
    assert "v" * 300 in record_line(RECORD, full=True)


def test_a_template_prints_the_fields_it_names() -> None:
    show = line_template(r"{partition}:{offset}\t{size} {headers}|{key}", full=False)
    assert show(RECORD) == "3:12\t300 n\\x1b=1, n=(null)|k\n"


def test_a_template_with_its_own_line_end_gets_no_second_one() -> None:
    assert line_template(r"{offset}\n", full=False)(RECORD) == "12\n"


def test_a_template_with_an_unknown_field_is_refused() -> None:
    with pytest.raises(typer.BadParameter, match="no field 'off'"):
        line_template("{off}", full=False)
