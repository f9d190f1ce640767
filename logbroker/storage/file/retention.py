"""Segments in, how many to drop out; by append time and by size. Pure.

Record timestamps play no part, so a wrong clock at a producer costs nothing. What somebody
still needs is kept longer, and not for good: until it is NEEDED_TIMES as old, or there is
NEEDED_TIMES as much of it, as the limits allow.
"""

from collections.abc import Sequence
from typing import NamedTuple

from logbroker.config import LogConfig

NEEDED_TIMES = 2


class Kept(NamedTuple):
    """What retention wants to know of a segment."""

    size_bytes: int
    last_append_time_ms: int | None
    """None: unknown, nothing in it can be read. It goes with the segment behind it."""
    next_offset: int = 0


def expired_count(segments: Sequence[Kept], config: LogConfig, now_ms: int) -> int:
    """Returns how many segments from the first one on may go.

    By time a segment goes when its last batch is older than `retention_ms`, the active one
    too. By size the first ones go as long as `retention_bytes` remain behind them.
    """
    return _expired_count(segments, config.retention_ms, config.retention_bytes, now_ms)


def without_needed(
    count: int, segments: Sequence[Kept], config: LogConfig, now_ms: int, needed_from: int
) -> int:
    """Returns how many of those that may go do go where somebody needs what is from there on."""
    unneeded = sum(segment.next_offset <= needed_from for segment in segments)
    limits = config.retention_ms * NEEDED_TIMES, config.retention_bytes * NEEDED_TIMES
    return min(count, max(unneeded, _expired_count(segments, *limits, now_ms)))


def _expired_count(
    segments: Sequence[Kept], retention_ms: int, retention_bytes: int, now_ms: int
) -> int:
    return max(_by_time(segments, retention_ms, now_ms), _by_size(segments, retention_bytes))


def _by_time(segments: Sequence[Kept], retention_ms: int, now_ms: int) -> int:
    if not retention_ms:
        return 0
    count = 0
    for index, segment in enumerate(segments):
        if segment.last_append_time_ms is None:
            continue
        if now_ms - segment.last_append_time_ms <= retention_ms:
            break
        count = index + 1
    return count


def _by_size(segments: Sequence[Kept], retention_bytes: int) -> int:
    if not retention_bytes:
        return 0
    left, count = sum(segment.size_bytes for segment in segments), 0
    for segment in segments:
        left -= segment.size_bytes
        if left < retention_bytes:
            break
        count += 1
    return count
