"""A distribution as few numbers: more of them towards its slow end."""

from collections.abc import Sequence

PARTS = 8
"""Quantiles for each halving of what is slower."""
HALVINGS = 14
"""The last quantile is 1 - 2 ** -14, which takes 16,384 times to be one of them."""


def quantiles(times: Sequence[float]) -> list[tuple[float, float]]:
    """Returns pairs of a part and the time that this part of them does not exceed."""
    ordered = sorted(times)
    found = []
    for number in range(PARTS * HALVINGS + 1):
        part = 1 - 2 ** (-number / PARTS)
        if number and (1 - part) * len(ordered) < 1:
            break
        found.append((round(part, 6), ordered[min(len(ordered) - 1, int(part * len(ordered)))]))
    return [*found, (1.0, ordered[-1])] if ordered else []
