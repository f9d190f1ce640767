"""Which partition of which topic."""

from typing import NamedTuple

from crc32c import crc32c

INTERNAL = "__"
"""The names of the broker's own topics begin so, and no others."""


class PartitionId(NamedTuple):
    """One partition of one incarnation of a topic."""

    topic: str
    topic_id: str
    partition: int
    """From 0."""

    @property
    def seed(self) -> int:
        """What seeds header checksums: a batch in a wrong file is not a batch."""
        return crc32c(f"{self.topic_id}/{self.partition}".encode())

    @property
    def is_internal(self) -> bool:
        """Whether it is one of the broker's own, whose topic id is the topic's name."""
        return self.topic.startswith(INTERNAL) and self.topic_id == self.topic

    def log_fields(self) -> dict[str, str | int]:
        """Returns what a line of the log says of it."""
        return {"topic": self.topic, "partition": self.partition}

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"
