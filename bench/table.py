"""The results for people."""

from typing import Any

COLUMNS = ("value", "unit", "ratio", "goal", "met")


def table(sections: list[tuple[str, list[dict[str, Any]]]]) -> str:
    """Returns a table with a heading for each question."""
    names = [_name(row) for _, rows in sections for row in rows]
    width = max(map(len, names))
    lines = [_line("", COLUMNS, width)]
    for title, rows in sections:
        lines += ["", title]
        lines += [_line(_name(row), _cells(row), width) for row in rows]
    return "\n".join(lines)


def summary(found: list[dict[str, Any]]) -> str:
    """Returns how many goals were met and missed, and which were missed."""
    met = [row["name"] for row in found if row["met"] is True]
    missed = [row["name"] for row in found if row["met"] is False]
    lines = [f"goals met: {len(met)}, missed: {len(missed)}"]
    return "\n".join([*lines, *(f"  missed: {name}" for name in missed)])


def _name(row: dict[str, Any]) -> str:
    return f"  {row['name']}" + (f"  : {row['limit']}" if row["limit"] else "")


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    ratio, met = row["ratio"], row["met"]
    return (
        _number(row["value"]),
        row["unit"],
        "" if ratio is None else f"{ratio:.2f}",
        row["goal"] or "",
        "" if met is None else "yes" if met else "NO",
    )


def _number(value: float) -> str:
    digits = 0 if value >= 1_000 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}"


def _line(name: str, cells: tuple[str, ...], width: int) -> str:
    value, unit, ratio, goal, met = cells
    return f"{name:<{width}}  {value:>12} {unit:<9} {ratio:>7}  {goal:>7}  {met:>3}".rstrip()
