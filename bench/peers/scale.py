"""How much is measured."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much is measured."""

    rounds: int
    """In each, every row is measured once. The median of them counts."""
    warm_up: bool
    """One more round before the first, which does not count."""
    seconds: float
    """How long is published for one row of one round."""
    replay_bytes: int
    """Values in a topic that is replayed, of 1,000 bytes; of 100 bytes a tenth of it."""
    confirm_count: int
    """Single records for one row of one round."""
    pace_seconds: float
    """How long a rate is kept for one row of one round."""
    work_count: int
    """Records that workers settle for one row of one round."""
    group_count: int
    """Records that each group reads for one row of one round."""
    join_seconds: float
    """Until members that begin together have joined."""
    tool_count: int
    """Records of 100 bytes that a load tool publishes; of 1,000 bytes a third of it."""
    footprint_count: int
    """Records whose bytes on the disk are counted."""
    restart_bytes: int
    """Values that are there when a server is killed."""
    load_seconds: float
    """How long a server is under load before it is killed."""
    partitions: tuple[int, ...]
    members: tuple[int, ...]
    groups: tuple[int, ...]


SCALES = {
    "full": Scale(
        rounds=5,
        warm_up=True,
        seconds=2,
        replay_bytes=1 << 30,
        confirm_count=1_000,
        pace_seconds=5,
        work_count=30_000,
        group_count=30_000,
        join_seconds=2,
        tool_count=2_000_000,
        footprint_count=50_000,
        restart_bytes=1 << 30,
        load_seconds=2,
        partitions=(1, 100, 1_000),
        members=(1, 200),
        groups=(1, 100),
    ),
    "quick": Scale(
        rounds=2,
        warm_up=False,
        seconds=0.3,
        replay_bytes=16 << 20,
        confirm_count=100,
        pace_seconds=1,
        work_count=4_000,
        group_count=4_000,
        join_seconds=1.5,
        tool_count=50_000,
        footprint_count=5_000,
        restart_bytes=16 << 20,
        load_seconds=0.5,
        partitions=(1, 100),
        members=(1, 20),
        groups=(1, 10),
    ),
    "tiny": Scale(
        rounds=1,
        warm_up=False,
        seconds=0.05,
        replay_bytes=1 << 20,
        confirm_count=10,
        pace_seconds=0.2,
        work_count=500,
        group_count=500,
        join_seconds=1,
        tool_count=2_000,
        footprint_count=1_000,
        restart_bytes=1 << 20,
        load_seconds=0.1,
        partitions=(1, 10),
        members=(1, 4),
        groups=(1, 3),
    ),
}
