"""What a process uses, as the kernel tells; and what a machine must allow for a test."""

import os
from pathlib import Path

import pytest


def require(is_possible: bool, reason: str) -> None:
    """Skips the test where it cannot be done; fails it in CI, where everything must be."""
    if not is_possible:
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


def cpu_s(pid: int) -> float:
    """Returns the CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def open_paths(pid: int) -> list[str]:
    """Returns the paths of a process's open files; what is unlinked ends with `(deleted)`."""
    paths = []
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            paths.append(os.readlink(descriptor))
        except FileNotFoundError:
            continue
    return paths
