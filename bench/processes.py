"""What a process takes of the machine. Linux."""

import resource
from pathlib import Path


def rss_bytes(pid: int) -> int:
    """Returns its resident memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


def cpu_seconds(pid: int) -> float:
    """Returns how long its threads have run, of those that are still there."""
    schedstats = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(one.read_text().split()[0]) for one in schedstats) / 1e9
