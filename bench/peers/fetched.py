"""Where things are that `make bench-peers-setup` fetched, and what else is on the machine."""

import shutil
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.peers.system import Missing

FETCHED = Path(__file__).parent / "fetched"
"""Jars and a Go program; git does not see it."""
SETUP = "make bench-peers-setup"


def program(name: str) -> Path | None:
    """Returns where a program is: fetched, beside this Python, on the PATH, or in sbin."""
    beside = Path(sys.executable).parent
    for directory in (FETCHED / "bin", beside, Path("/usr/sbin")):
        if (directory / name).is_file():
            return directory / name
    found = shutil.which(name)
    return Path(found) if found else None


def missing_packages(*names: str) -> list[Missing]:
    """Returns which of these Python packages are not installed."""
    return [Missing(f"Python package {name}", SETUP) for name in names if not _version(name)]


def missing_programs(*names: str) -> list[Missing]:
    """Returns which of these programs are not installed."""
    return [Missing(f"program {name}", SETUP) for name in names if not program(name)]


def package_versions(*names: str) -> dict[str, str]:
    """Returns the versions of Python packages that are installed."""
    return {name: version(name) for name in names}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
