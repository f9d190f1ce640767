"""The answer to a produce: where the records are, and how well they are kept."""

from typing import NamedTuple

from logbroker.config import Durability


class Receipt(NamedTuple):
    """About the records at `base_offset` up to `base_offset + record_count` of a partition."""

    topic: str
    topic_id: str
    partition: int
    base_offset: int
    record_count: int
    append_time_ms: int
    """When the broker took them, in ms since 1970."""
    durability: Durability
    """What was true when the broker answered."""
    duplicate: bool = False
    """They had been stored before; nothing was stored again."""
