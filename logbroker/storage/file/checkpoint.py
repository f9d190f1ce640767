"""What a partition is and how far it had come: the small file that outlives its segments.

    {"format":1,"topic":"orders","topic_id":"6f...","partition":0,...}
    crc32c 0a1b2c3d

Two lines: the values as JSON, and the CRC-32C of the first line, its end included. It is
written when a partition is made, at a roll, at a trim before any file goes, and at a clean
stop, so offsets never go back, whatever file is left.
"""

from dataclasses import asdict, dataclass

from logbroker.record.partition_id import PartitionId
from logbroker.storage.file import checked_json

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """0 <= log_start_offset <= next_offset."""

    topic: str
    topic_id: str
    partition: int
    log_start_offset: int = 0
    next_offset: int = 0
    """All offsets below it were durable when this was written."""
    append_time_ms: int = 0
    """The last one given."""

    def __post_init__(self) -> None:
        if not 0 <= self.log_start_offset <= self.next_offset:
            raise ValueError("log_start_offset must be from 0 to next_offset")

    @property
    def id(self) -> PartitionId:
        """Which partition it is about."""
        return PartitionId(self.topic, self.topic_id, self.partition)

    def encode(self) -> bytes:
        """Returns the bytes of the file."""
        return checked_json.encode({"format": FORMAT, **asdict(self)})

    @classmethod
    def decode(cls, data: bytes) -> "Checkpoint | None":
        """Returns the checkpoint; None if these are not the bytes of one, all of them."""
        values = checked_json.decode(data, FORMAT)
        try:
            return None if values is None else cls(**values)
        except (ValueError, TypeError):
            return None
