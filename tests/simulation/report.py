"""What is counted in a run, in the order in which it is shown."""

from .machine import Ending

ROWS: dict[str, tuple[str, ...]] = {
    "checked": (
        "records sent",
        "records acknowledged",
        "records checked",
        "records shown",
        "Received",
        "Confirmed",
        "commits confirmed",
        "dead letters",
        "records redriven",
        "groups reset",
        "logs trimmed",
        "simulated seconds",
    ),
    "ended": (
        *Ending,
        "brokers whose storage failed",
        "starts that failed",
        "brokers killed as they started",
        "producers killed",
        "readers killed",
        "members killed",
        "members vanished",
        "members left",
    ),
    "disk": (
        "bytes lost with the power",
        "writes torn",
        "bits flipped",
        "bits of indexes flipped",
        "ENOSPC",
        "ENOSPC of write",
        "EIO of write",
        "EIO of sync",
        "EIO of read",
        "EIO of read_cached",
        "EIO of open",
        "EIO of rename",
        "EIO of truncate",
        "EIO of sync_directory",
        "slow spells of the disk",
    ),
    "network": (
        "connections dropped",
        "connections gone silent",
        "networks parted",
        "messages lost",
        "messages delayed",
        "duplicates answered",
    ),
}

FOUND: dict[str, tuple[str, ...]] = {
    "lost": ("is lost", "given what is lost", "never delivered"),
    "wrongly ordered": ("not in order", "not as it was produced", "behind {", "was through"),
    "twice or a phantom": ("a phantom", "used again", "two records", "two live leases", "again"),
}
"""What faults are called, by words in them; a fault has the first name that fits."""
OTHER = "anything else"


def name_of(fault: str) -> str:
    """Returns what kind of fault it is."""
    for name, words in FOUND.items():
        if any(word in fault for word in words):
            return name
    return OTHER
