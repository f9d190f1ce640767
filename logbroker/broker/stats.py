"""BrokerStats, gathered from each part's stats()."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStats:
    """What the broker has counted since it started, and how it is."""

    uptime_ms: int
    topic_count: int
    partition_count: int
    failed_partition_count: int
    """Those that take no writes since an fsync failed."""
    damaged_range_count: int
    damaged_topics: tuple[str, ...]
    """Those whose files are there and whose settings are lost."""
    torn_bytes: int
    """Cut from tails at this start."""
    disk_free_bytes: int
    open_file_count: int
    appended_batch_count: int
    appended_record_count: int
    appended_bytes: int
    fetched_bytes: int
    duplicate_batch_count: int
    in_flight_bytes: int
    error_counts: Mapping[str, int] = field(default_factory=dict)
    """Errors answered, by reason."""
    open_stream_count: int = 0
