"""Where things are that `make bench-peers-setup` fetched, and what else is on the machine."""

import os
import shutil
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.peers.system import Missing

DIRECTORY = "LOGBROKER_PEERS_DIR"
"""The environment variable that says where fetched things are; otherwise the user's cache."""
SETUP = "make bench-peers-setup"
SYSTEM_DIRECTORIES = (Path("/usr/sbin"),)
"""Where servers are, and the PATH of users is not."""


def fetched() -> Path:
    """Returns the directory of jars and of a Go program. It is outside the repository, for all."""
    if said := os.environ.get(DIRECTORY):
        return Path(said)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "logbroker-peers"


def program(name: str) -> Path | None:
    """Returns where a program is: fetched, beside this Python, on the PATH, or in sbin."""
    beside = Path(sys.executable).parent
    for directory in (fetched() / "bin", beside, *SYSTEM_DIRECTORIES):
        if (directory / name).is_file():
            return directory / name
    found = shutil.which(name)
    return Path(found) if found else None


def missing_packages(*names: str) -> list[Missing]:
    """Returns which of these Python packages are not installed."""
    return [Missing(f"Python package {name}", SETUP) for name in names if not _version(name)]


def missing_programs(*names: str, how: str = SETUP) -> list[Missing]:
    """Returns which of these programs are not installed, and what brings them."""
    return [Missing(f"program {name}", how) for name in names if not program(name)]


def package_versions(*names: str) -> dict[str, str]:
    """Returns the versions of Python packages that are installed."""
    return {name: version(name) for name in names}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
