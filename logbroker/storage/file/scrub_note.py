"""How far the scrub has come, kept over restarts in a small file; and when a pass is due. Pure.

    {"format":1,"finished_time_ms":1800000000000,"topic":"orders","partition":0,"offset":120}
    crc32c 0a1b2c3d

A hint: where it is lost or cannot be read, a pass begins from the start.
"""

from dataclasses import asdict, dataclass

from logbroker.storage.file import checked_json

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubNote:
    """What is behind, and where to go on."""

    finished_time_ms: int = 0
    """When the last whole pass ended; 0: never."""
    topic: str = ""
    """Where the pass under way goes on, or empty: there is none."""
    partition: int = 0
    offset: int = 0

    def is_due(self, now_ms: int, interval_ms: int) -> bool:
        """Returns whether to go on, or to begin a pass. A clock that was set back begins one."""
        return bool(self.topic) or not 0 <= now_ms - self.finished_time_ms < interval_ms

    def encode(self) -> bytes:
        """Returns the bytes of the file."""
        return checked_json.encode({"format": FORMAT, **asdict(self)})

    @classmethod
    def decode(cls, data: bytes) -> "ScrubNote":
        """Returns the note; that of a beginning if these are not the bytes of one, all of them."""
        try:
            return cls(**(checked_json.decode(data, FORMAT) or {}))
        except TypeError:
            return cls()
