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
