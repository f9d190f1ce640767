"""Durations and sizes as people write them: `7d`, `10GiB`. Pure.

duration   number and unit: ms s m h d w; several in a row: `1h30m`
size       number and unit: B KiB MiB GiB TiB, KB MB GB TB; a bare number is bytes
either     `unlimited`: 0, which the broker takes as without limit
"""

import re
from fractions import Fraction

import typer

DURATIONS = {
    "w": 7 * 86_400_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1,
}  # fmt: skip
SIZES = {
    "TiB": 1 << 40, "GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10,
    "TB": 10**12, "GB": 10**9, "MB": 10**6, "KB": 10**3, "B": 1,
}  # fmt: skip
UNLIMITED = "unlimited"
MOST = (1 << 63) - 1

_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|[smhdw]))+")
_DURATION_PART = re.compile(r"([0-9.]+)(ms|[smhdw])")
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([kmgt]i?b|b|)", re.IGNORECASE)
_SIZE_UNITS = {unit.lower(): size for unit, size in SIZES.items()}


def duration_ms(text: str) -> int:
    """Returns the ms, above 0; typer.BadParameter says how to write one."""
    given = text.strip().lower()
    if not _DURATION.fullmatch(given):
        rule = "must be a number and a unit (ms s m h d w), such as 500ms, 90s, 1h30m, 7d"
        raise typer.BadParameter(f"{text!r} {rule}")
    parts = _DURATION_PART.findall(given)
    return _whole(text, sum(Fraction(number) * DURATIONS[unit] for number, unit in parts))


def duration_or_unlimited_ms(text: str) -> int:
    """Returns the ms; 0 for `unlimited`."""
    return 0 if text.strip().lower() == UNLIMITED else duration_ms(text)


def size_bytes(text: str) -> int:
    """Returns the bytes, above 0; typer.BadParameter says how to write them."""
    match = _SIZE.fullmatch(text.strip())
    if not match:
        rule = "must be a number and a unit (B KiB MiB GiB TiB, KB MB GB TB), such as 10GiB"
        raise typer.BadParameter(f"{text!r} {rule}")
    number, unit = match.groups()
    return _whole(text, Fraction(number) * _SIZE_UNITS[unit.lower() or "b"])


def size_or_unlimited_bytes(text: str) -> int:
    """Returns the bytes; 0 for `unlimited`."""
    return 0 if text.strip().lower() == UNLIMITED else size_bytes(text)


def show_duration(ms: int) -> str:
    """Returns the shortest exact text: `7d`, `1h30m`; `duration_ms` reads it back."""
    if ms == 0:
        return "0ms"
    parts = []
    for unit, unit_ms in DURATIONS.items():
        if unit != "w" and ms >= unit_ms:
            parts.append(f"{ms // unit_ms}{unit}")
            ms %= unit_ms
    return "".join(parts)


def show_age(ms: int) -> str:
    """Returns the two greatest units of it, as `3d4h` or `12s`; below 1 s the ms."""
    if ms < DURATIONS["s"]:
        return f"{ms}ms"
    for unit, part in (("d", "h"), ("h", "m"), ("m", "s")):
        if ms >= DURATIONS[unit]:
            return show_duration(ms - ms % DURATIONS[part])
    return show_duration(ms - ms % DURATIONS["s"])


def show_size(size: int) -> str:
    """Returns it with one decimal at most: `12.5MiB`; below 1 KiB in bytes."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size >= SIZES[unit]:
            return f"{size / SIZES[unit]:.1f}".removesuffix(".0") + unit
    return f"{size}B"


def _whole(text: str, exact: Fraction | int) -> int:
    if exact < 1:
        raise typer.BadParameter(f"{text!r} is too small; for no limit say {UNLIMITED!r}")
    if exact > MOST:
        raise typer.BadParameter(f"{text!r} is too large")
    return int(exact)
