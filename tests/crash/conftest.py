"""Says at the end at how many points brokers died, when all are tried."""

import pytest
from cases.effort import IS_FULL

from crash.points import COUNTS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if IS_FULL and COUNTS:
        terminalreporter.section("brokers that died")
        for name, counts in COUNTS.items():
            told = ", ".join(f"{count} {death}" for death, count in counts.items())
            terminalreporter.write_line(f"{name:12} {counts.total():>5} points: {told}")
