"""Segments in, how many to drop out; by append time and by size. Pure.

Record timestamps play no part, so a wrong clock at a producer costs nothing.
"""

from collections.abc import Sequence
from typing import NamedTuple

from logbroker.config import LogConfig


class Kept(NamedTuple):
    """What retention wants to know of a segment."""

    size_bytes: int
    last_append_time_ms: int | None
    """None: unknown, nothing in it can be read. It goes with the segment behind it."""


def expired_count(segments: Sequence[Kept], config: LogConfig, now_ms: int) -> int:
    """Returns how many segments from the first one on may go.

    By time a segment goes when its last batch is older than `retention_ms`, the active one
    too. By size the first ones go as long as `retention_bytes` remain behind them.
    """
    return max(_by_time(segments, config, now_ms), _by_size(segments, config))


def _by_time(segments: Sequence[Kept], config: LogConfig, now_ms: int) -> int:
    if not config.retention_ms:
        return 0
    count = 0
    for index, segment in enumerate(segments):
        if segment.last_append_time_ms is None:
            continue
        if now_ms - segment.last_append_time_ms <= config.retention_ms:
            break
        count = index + 1
    return count


def _by_size(segments: Sequence[Kept], config: LogConfig) -> int:
    if not config.retention_bytes:
        return 0
    left, count = sum(segment.size_bytes for segment in segments), 0
    for segment in segments:
        left -= segment.size_bytes
        if left < config.retention_bytes:
            break
        count += 1
    return count
