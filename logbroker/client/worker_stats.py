"""What a worker has done."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkerStats:
    """What a worker has done since it was made."""

    delivered_count: int
    done_count: int
    retry_count: int
    """Handlers that failed, late ones included."""
    reject_count: int
    late_count: int
    """Handlers that took longer than `max_processing_ms`."""
    lost_count: int
    """Records whose lease was lost before they were answered, or whose answer came too late."""
    running_count: int
    """Handlers that run now."""
