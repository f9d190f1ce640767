"""Tables as lines of text: aligned columns, titles in capitals, as narrow as they can be. Pure.

A terminal that is too narrow folds lines, and a folded table cannot be read. So a table says
which of its columns may be left out; those in which no row says anything go first.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from logbroker.cli.text import safe

GAP = "  "
NOTHING = frozenset({"", "-", "0", "none"})
"""Cells that say nothing."""
MORE = "..."
LEAST_WIDTH = 8
"""So much of a cell is always shown."""


class Table(NamedTuple):
    """Rows under the names of their columns, safe to show on a terminal."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> "Table":
        """Returns the table, whatever its cells hold."""
        return cls(tuple(columns), tuple(tuple(map(safe, row)) for row in rows))

    def widths(self) -> list[int]:
        """Returns how wide each column is."""
        by_column = zip(self.columns, *self.rows, strict=True)
        return [max(map(cell_len, cells)) for cells in by_column]

    def width(self) -> int:
        """Returns how wide it is."""
        return sum(self.widths()) + len(GAP) * (len(self.columns) - 1)

    def lines(self) -> list[str]:
        """Returns the titles and the rows. Columns of numbers are aligned right."""
        widths, are_right = self.widths(), self._are_numbers()
        titles = tuple(map(str.upper, self.columns))
        return [
            GAP.join(map(_aligned, cells, widths, are_right)).rstrip()
            for cells in (titles, *self.rows)
        ]

    def without_empty(self, optional: Iterable[str], width: int) -> "Table":
        """Returns it without those of the columns that say nothing, until it is so narrow."""
        found = self
        for name in optional:
            if found.width() <= width:
                break
            if name in found.columns and NOTHING.issuperset(found._cells(name)):
                found = found._without(name)
        return found

    def narrowed(self, optional: Sequence[str], width: int) -> "Table":
        """Returns it no wider than that: less the columns, and the first one cut, if need be."""
        found = self.without_empty(optional, width)
        for name in optional:
            if found.width() > width and name in found.columns:
                found = found._without(name)
        room = max(found.widths()[0] - max(found.width() - width, 0), LEAST_WIDTH)
        rows = tuple((_cut(row[0], room), *row[1:]) for row in found.rows)
        return Table(found.columns, rows)

    def _cells(self, name: str) -> list[str]:
        at = self.columns.index(name)
        return [row[at] for row in self.rows]

    def _without(self, name: str) -> "Table":
        at = self.columns.index(name)
        rows = tuple(row[:at] + row[at + 1 :] for row in self.rows)
        return Table(self.columns[:at] + self.columns[at + 1 :], rows)

    def _are_numbers(self) -> list[bool]:
        return [
            any(map(_is_number, cells))
            and all(_is_number(cell) or cell in NOTHING for cell in cells)
            for cells in map(self._cells, self.columns)
        ]


def _is_number(cell: str) -> bool:
    return (cell[1:] if cell[:1] in ("+", "-") else cell).isdecimal()


def _aligned(cell: str, width: int, is_right: bool) -> str:
    pad = " " * (width - cell_len(cell))
    return pad + cell if is_right else cell + pad


def _cut(cell: str, width: int) -> str:
    if cell_len(cell) <= width:
        return cell
    return set_cell_size(cell, width - len(MORE)) + MORE
