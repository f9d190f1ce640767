"""How much is measured: the same rows, more or less often and on more or less data."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much is measured."""

    rounds: int
    """In each, every row is measured once, in turn. The median of them counts."""
    seconds: float
    """How long records or bare messages are sent for one row of one round."""
    fetch_bytes: int
    """What is read for one row of one round."""
    publish_count: int
    """Single records for one row of one round."""
    segment_count: int
    """Of the topic behind the clean start."""
    unclean_bytes: int
    """In the active segment when the broker is killed."""
    memory_bytes: int
    """Written and read, over all rounds together, while the broker's memory is watched."""
    group_bytes: int
    """What a group reads for one row of one round."""
    group_seconds: float
    """How long several groups read for one row of one round."""
    waiting_count: int
    """Records that wait to be tried again."""
    idle_seconds: float
    """How long a broker with nothing to do is watched for one row of one round."""
    commit_count: int
    """Commits that are in the journal when the broker starts."""


SCALES = {
    "full": Scale(
        rounds=5,
        seconds=0.6,
        fetch_bytes=256 << 20,
        publish_count=2_000,
        segment_count=1_000,
        unclean_bytes=256 << 20,
        memory_bytes=1 << 30,
        group_bytes=64 << 20,
        group_seconds=0.6,
        waiting_count=100_000,
        idle_seconds=2,
        commit_count=100_000,
    ),
    "quick": Scale(
        rounds=3,
        seconds=0.07,
        fetch_bytes=32 << 20,
        publish_count=300,
        segment_count=1_000,
        unclean_bytes=64 << 20,
        memory_bytes=192 << 20,
        group_bytes=8 << 20,
        group_seconds=0.15,
        waiting_count=10_000,
        idle_seconds=0.5,
        commit_count=20_000,
    ),
    "tiny": Scale(
        rounds=1,
        seconds=0.01,
        fetch_bytes=2 << 20,
        publish_count=20,
        segment_count=20,
        unclean_bytes=2 << 20,
        memory_bytes=4 << 20,
        group_bytes=1 << 20,
        group_seconds=0.05,
        waiting_count=1_000,
        idle_seconds=0.2,
        commit_count=1_000,
    ),
}
