"""Values with their units, as people write them: three digits, no more."""

import math

BIG = {1e9: "G", 1e6: "M", 1e3: "k"}
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
TIMES = {1.0: "s", 1e-3: "ms", 1e-6: "µs", 1e-9: "ns"}


def is_less_better(unit: str) -> bool:
    """Tells whether a small value is a good one: times and sizes, but not rates."""
    return not (unit.endswith("/s") or unit == "%")


def amount(value: float, unit: str) -> str:
    """Returns a value with its unit: `1.23 M/s` of records/s, `1.32 ms` of us."""
    if unit in SECONDS:
        return duration(value * SECONDS[unit])
    if unit == "records":
        return f"{value:,.0f}"
    if unit.endswith("/s") and unit[0].islower():
        return f"{_short(value)}/s"
    return f"{digits(value)} {unit}"


def duration(seconds: float) -> str:
    """Returns a time in the unit that leaves one to three digits before the point."""
    if not seconds:
        return "0 s"
    for size, name in TIMES.items():
        if float(f"{seconds:.3g}") >= size:
            return f"{digits(seconds / size)} {name}"
    return f"{digits(seconds / 1e-9)} ns"


def factor(ratio: float) -> str:
    """Returns a ratio: `0.912`, `2.41`, `16.2`; below 0.1 two digits."""
    return digits(ratio) if ratio >= 0.1 else f"{ratio:.2g}"


def digits(value: float) -> str:
    """Returns three digits: `1,230`, `123`, `12.3`, `1.23`, `0.123`; whole ones all."""
    if math.isinf(value):
        return "∞"
    if not value:
        return "0"
    value = float(f"{value:.3g}")
    places = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(places, 4)}f}"


def _short(value: float) -> str:
    for size, letter in BIG.items():
        if float(f"{value:.3g}") >= size:
            return f"{digits(value / size)} {letter}"
    return digits(value)
