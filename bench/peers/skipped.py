"""What is not installed is not measured, and is told."""

from collections.abc import Iterable, Sequence

from bench.peers.system import System
from bench.peers.systems import OURS, SYSTEMS


def installed(names: Iterable[str]) -> list[System]:
    """Returns logbroker and those of the named systems that are all there."""
    return [OURS, *(SYSTEMS[name] for name in names if not SYSTEMS[name].missing())]


def skipped(names: Iterable[str]) -> list[str]:
    """Returns a line for each named system, or its load tool, that is not all there."""
    return [line for name in names for line in _lines(SYSTEMS[name])]


def _lines(system: System) -> Sequence[str]:
    if missing := system.missing():
        return [f"{system.title}: not installed: {', '.join(map(str, missing))}"]
    if system.tool and (missing := system.tool_missing()):
        return [
            f"{system.title}, {system.tool.name}: not installed: {', '.join(map(str, missing))}"
        ]
    return []
