"""Distributions as few numbers: more of them towards the slow end."""

from collections.abc import Sequence

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
PARTS = 8
"""Quantiles for each halving of what is slower."""
HALVINGS = 14
"""The last quantile is 1 - 2 ** -14, which takes 16,384 times to be one of them."""


def percentiles(times: Sequence[float]) -> dict[str, float]:
    """Returns in microseconds what these parts of the times do not exceed."""
    ordered = sorted(times)
    last = len(ordered) - 1
    return {
        name: ordered[min(last, int(part * (last + 1)))] * 1e6 for name, part in PERCENTILES.items()
    }


def quantiles(times: Sequence[float]) -> list[tuple[float, float]]:
    """Returns pairs of a part and the time that this part of them does not exceed."""
    if not times:
        return []
    ordered = sorted(times)
    found = []
    for number in range(PARTS * HALVINGS + 1):
        part = 1 - 2 ** (-number / PARTS)
        if number and (1 - part) * len(ordered) < 1:
            break
        found.append((round(part, 6), ordered[min(len(ordered) - 1, int(part * len(ordered)))]))
    return [*found, (1.0, ordered[-1])]
