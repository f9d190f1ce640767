"""Says at the end how many inputs each decoder was given."""

import os

import pytest

from fuzz.runs import COUNTS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if "FUZZ_SECONDS" in os.environ and COUNTS:
        terminalreporter.section("inputs")
        for name, counts in COUNTS.items():
            terminalreporter.write_line(
                f"{name:24} {counts['given']:>10,} given  {counts['taken']:>10,} taken"
            )
