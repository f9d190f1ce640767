"""Where members note what happens: in this process, or in a file that survives its process."""

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from .events import (
    Answer,
    Answered,
    Begun,
    Confirmed,
    Ended,
    Event,
    How,
    Noted,
    Place,
    Received,
    Refused,
    TakenBack,
)

OF_MEMBERS = {
    kind.__name__: kind
    for kind in (Received, Begun, Answered, Confirmed, Refused, TakenBack, Ended)
}


class Notes(Protocol):
    """Takes events as they happen; the order of calls is the order in time."""

    def note(self, event: Event) -> None:
        """Takes an event."""

    def flush(self) -> None:
        """Sees to it that what was noted outlives this process, before others see its effects."""


class History:
    """Everything noted about one group."""

    def __init__(self) -> None:
        self._noted: list[Noted] = []

    def note(self, event: Event) -> None:
        """Takes an event that happens now."""
        self._noted.append(Noted(time.monotonic_ns(), event))

    def flush(self) -> None:
        """Does nothing: this process is not killed."""

    def add(self, noted: Iterable[Noted]) -> None:
        """Takes what others noted; processes of one machine share the clock."""
        self._noted += noted

    def in_order(self) -> list[Noted]:
        """Returns all of it, by time."""
        return sorted(self._noted, key=lambda one: one.at_ns)


class NotesFile:
    """Notes in a file, a line each."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._lines: list[str] = []

    def note(self, event: Event) -> None:
        """Takes an event that happens now."""
        self._lines.append(json.dumps([time.monotonic_ns(), type(event).__name__, event]))

    def flush(self) -> None:
        """Gives what was noted to the kernel, which outlives a SIGKILL."""
        if self._lines:
            data = "".join(f"{line}\n" for line in self._lines).encode()
            self._lines.clear()
            while data:
                data = data[os.write(self._descriptor, data) :]


def read_notes(path: Path) -> list[Noted]:
    """Returns what was noted in a file; a line that was not finished had no effects yet."""
    if not path.exists():
        return []
    *lines, _ = path.read_text().split("\n")
    return [_decode(line) for line in lines]


def _decode(line: str) -> Noted:
    at_ns, kind, fields = json.loads(line)
    cls = OF_MEMBERS[kind]
    values = dict(zip(cls._fields, fields, strict=True))
    if "place" in values:
        values["place"] = Place(*values["place"])
    if "answer" in values:
        values["answer"] = Answer(values["answer"])
    if "how" in values:
        values["how"] = How(values["how"])
    return Noted(at_ns, cls(**values))
