"""How much of everything there is in a soak."""

from dataclasses import dataclass

from .growth import Bound

MIB = 1 << 20
PATIENCE_MS = 120_000
"""How long a call may take: that it is slow is for the figures to tell, not for an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Of one soak; times are seconds."""

    idle_topic_count: int
    idle_partition_count: int
    """Of each of them."""
    idle_group_count: int
    idle_consumer_count: int
    idle_channel_count: int
    work_partition_count: int
    records_per_s: int
    member_count: int
    """Of each group that works."""
    member_life_s: float
    """The longest."""
    upset_every_s: float
    """How often each kind of upset happens."""
    sample_every_s: float
    drain_s: float
    """How long the groups may take to finish at the end."""
    bounds: dict[str, Bound]
    latency_factor: float = 4
    least_latency_ms: float = 250
    """A p99 below this is good enough, however quick it once was."""


FULL = Sizes(
    idle_topic_count=20,
    idle_partition_count=97,
    idle_group_count=95,
    idle_consumer_count=500,
    idle_channel_count=10,
    work_partition_count=40,
    records_per_s=400,
    member_count=3,
    member_life_s=12,
    upset_every_s=12,
    sample_every_s=1,
    drain_s=180,
    bounds={
        "RSS": Bound(per_hour=64 * MIB, least=16 * MIB),
        "open files": Bound(per_hour=20, least=12),
        "threads": Bound(per_hour=4, least=4),
    },
)
SMALL = Sizes(
    idle_topic_count=2,
    idle_partition_count=10,
    idle_group_count=4,
    idle_consumer_count=12,
    idle_channel_count=2,
    work_partition_count=4,
    records_per_s=60,
    member_count=2,
    member_life_s=3,
    upset_every_s=3,
    sample_every_s=0.25,
    drain_s=180,
    bounds={
        "RSS": Bound(per_hour=64 * MIB, least=64 * MIB),
        "open files": Bound(per_hour=20, least=25),
        "threads": Bound(per_hour=4, least=8),
    },
    least_latency_ms=PATIENCE_MS,
)
"""For a run of seconds: caches are still filling then, and nothing is known of latencies."""
SIZES = {"full": FULL, "small": SMALL}
