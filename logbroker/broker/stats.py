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
    """Offsets that are lost, by what readers and the scrub have met."""
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
    group_count: int = 0
    member_count: int = 0
    """Open `Consume` streams that are members."""
    damaged_partitions: tuple[str, ...] = ()
    """Those with damaged ranges, as `topic/partition`, the broker's own among them."""
    scrubbed_segment_count: int = 0
    """Sealed segments that the scrub has checked..."""
    scrubbed_bytes: int = 0
    """... and what it has read for that."""
    scrub_finished_time_ms: int = 0
    """When its last whole pass ended, also before the start; 0: never."""
    scrub_failure_count: int = 0
    """Segments that it could not read."""
    loop_lag_ms: int = 0
    """The latest that the event loop has been in the last 10 s."""
    failed_journals: tuple[str, ...] = ()
    """Of the broker's own: they take nothing more since an fsync failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStats:
    """How a group is, all its partitions together."""

    group: str
    member_count: int
    partition_count: int
    lag: int
    """Records that can be read and are not settled."""
    age_ms: int
    """Since the append of the first of them, the greatest of all partitions."""
    leased_count: int
    waiting_count: int
    """Records that wait for the end of their back-off."""
    blocked_count: int
    """Exhausted records that wait in their place for an operator."""
    parked_count: int
    """Dead letters that wait for an operator."""
    failure_count: int
    """Since the group began to read its topics, as all below."""
    dead_letter_count: int
    discarded_count: int
    expired_unsettled_count: int
    """Removed by retention before they were settled."""
    skipped_count: int
    """Passed over where nothing can be read: damage, or a gap."""
    reset_count: int
