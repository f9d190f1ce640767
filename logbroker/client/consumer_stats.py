"""What a consumer tells of itself."""

from dataclasses import dataclass
from typing import NamedTuple


class LostRecords(NamedTuple):
    """Records that were answered too late: their lease was over."""

    topic: str
    partition: int
    first_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class ConsumerStats:
    """What a consumer has done since it was made."""

    member_id: str
    """Empty while it is not a member."""
    joined_count: int
    delivered_count: int
    """Records that came from the broker."""
    settled_count: int
    lost_count: int
    """Records whose lease was lost before they were answered, or whose answer came too late."""
    buffered_count: int
    """Records that came and are not handed out."""
