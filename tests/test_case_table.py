"""The table of cases in tests/README.md: every case there is stands in it, and is there."""

import re
from pathlib import Path

TESTS = Path(__file__).parent
ROW = re.compile(r"^\| (C\d+) \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)
LINK = re.compile(r"\[[^\]]+\]\((cases/[^)]+)\)")


def case_of(path: str) -> str:
    found = re.match(r"cases/test_c(\d+)_", path)
    assert found, f"{path} is not named for a case"
    return f"C{found[1]}"


def test_every_case_is_in_the_table_in_the_row_of_its_number_and_nothing_else_is():
    rows = ROW.findall((TESTS / "README.md").read_text())
    listed = {path: case for case, links in rows for path in LINK.findall(links)}
    there = {f"cases/{path.name}" for path in TESTS.glob("cases/test_c*.py")}
    assert listed.keys() == there, "tests/README.md: add what is missing, drop what is gone"
    assert listed == {path: case_of(path) for path in there}


def test_the_table_is_in_order_and_has_a_row_for_each_case():
    cases = [case for case, _ in ROW.findall((TESTS / "README.md").read_text())]
    assert cases == sorted(set(cases))
