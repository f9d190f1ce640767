"""How much is measured: mostly by time, so that a slow system takes no longer than a fast one."""

from dataclasses import dataclass, replace

WARMING = 0.2
"""How much of it the warm-up is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much is measured."""

    rounds: int
    """In each, every row is measured once. The median of them counts."""
    warm_up: bool
    """One more round before the first, which is shorter and does not count."""
    seconds: float
    """How long is published for one row of one round."""
    replay_bytes: int
    """Values in a topic that is replayed, of 1,000 bytes; of 100 bytes a twentieth of it."""
    confirm_count: int
    """Single records for one row of one round, at most."""
    confirm_seconds: float
    """How long they may take."""
    pace_seconds: float
    """How long a rate is kept for one row of one round."""
    consume_seconds: float
    """About how long groups read, and workers work, for one row of one round."""
    consume_counts: tuple[int, int]
    """The least and the most records for that."""
    fill_seconds: float
    """About how long a topic for that may be filled."""
    tool_count: int
    """Records of 100 bytes that a load tool publishes; of 1,000 bytes a third of it."""
    idle_seconds: float
    """How long a server does nothing before its memory is looked at."""
    footprint_count: int
    """Records whose bytes on the disk are counted."""
    restart_bytes: int
    """Values that are there when a server is killed."""
    load_seconds: float
    """How long a server is under load before it is killed."""
    partitions: tuple[int, ...]
    members: tuple[int, ...]
    groups: tuple[int, ...]
    grow_count: int
    """Records that go to all members of a group, or to one group; to each of many a tenth."""

    def warming(self) -> "Scale":
        """Returns what a warm-up measures."""
        return replace(
            self,
            seconds=self.seconds * WARMING,
            confirm_count=max(1, round(self.confirm_count * WARMING)),
            confirm_seconds=self.confirm_seconds * WARMING,
            pace_seconds=self.pace_seconds * WARMING,
            tool_count=max(1, round(self.tool_count * WARMING)),
        )


SCALES = {
    "full": Scale(
        rounds=5,
        warm_up=True,
        seconds=0.8,
        replay_bytes=1 << 30,
        confirm_count=1_000,
        confirm_seconds=2.5,
        pace_seconds=1.5,
        consume_seconds=0.5,
        consume_counts=(8_000, 2_000_000),
        fill_seconds=8,
        tool_count=1_000_000,
        idle_seconds=1,
        footprint_count=50_000,
        restart_bytes=1 << 30,
        load_seconds=1,
        partitions=(1, 100, 1_000),
        members=(1, 200),
        groups=(1, 100),
        grow_count=20_000,
    ),
    "quick": Scale(
        rounds=2,
        warm_up=False,
        seconds=0.2,
        replay_bytes=32 << 20,
        confirm_count=100,
        confirm_seconds=0.5,
        pace_seconds=0.5,
        consume_seconds=0.1,
        consume_counts=(2_000, 100_000),
        fill_seconds=1,
        tool_count=50_000,
        idle_seconds=0.5,
        footprint_count=5_000,
        restart_bytes=32 << 20,
        load_seconds=0.7,
        partitions=(1, 100),
        members=(1, 20),
        groups=(1, 10),
        grow_count=4_000,
    ),
    "tiny": Scale(
        rounds=1,
        warm_up=False,
        seconds=0.05,
        replay_bytes=1 << 20,
        confirm_count=10,
        confirm_seconds=0.5,
        pace_seconds=0.2,
        consume_seconds=0.01,
        consume_counts=(1_000, 5_000),
        fill_seconds=0.5,
        tool_count=2_000,
        idle_seconds=0.1,
        footprint_count=1_000,
        restart_bytes=1 << 20,
        load_seconds=0.5,
        partitions=(1, 10),
        members=(1, 4),
        groups=(1, 3),
        grow_count=4_000,
    ),
}
