"""Waits for what shall become true, and looks at processes from outside."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

INTERVAL_S = 0.01


async def becomes_true(
    condition: Callable[[], bool | Awaitable[bool]], what: str, *, within_s: float = 10
) -> float:
    """Returns after how many seconds it was true; AssertionError saying `what` if it never is."""
    started = time.monotonic()
    while True:
        found = condition()
        if found if isinstance(found, bool) else await found:
            return time.monotonic() - started
        assert time.monotonic() - started < within_s, f"not within {within_s} s: {what}"
        await asyncio.sleep(INTERVAL_S)


def rss_bytes(pid: int) -> int:
    """Returns the resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def open_file_count(pid: int) -> int:
    """Returns how many descriptors a process has."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def percentile(values: list[float], percent: float) -> float:
    """Returns the value that so many percent are not above."""
    return sorted(values)[min(len(values) - 1, int(len(values) * percent / 100))]


def peak_rss_bytes(pid: int) -> int:
    """Returns the most resident memory that a process has had."""
    status = Path(f"/proc/{pid}/status").read_text()
    (kib,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(kib) * 1_024
