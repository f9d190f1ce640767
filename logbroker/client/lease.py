"""A member's hold on records of one partition, as the client knows it. Pure.

    delivered  =  held  +  answered  +  lost

`held` is not answered yet; `lost` was taken back before it was answered.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from logbroker.record.offset_ranges import OffsetRanges, Range

if TYPE_CHECKING:
    from logbroker.client.settlements import Turn


class Lease:
    """What one token stands for."""

    __slots__ = (
        "dead_letter_topic",
        "held",
        "is_given_up",
        "is_gone",
        "lost",
        "partition",
        "token",
        "topic",
        "topic_id",
        "turn",
        "unanswered_count",
    )

    def __init__(
        self,
        token: int,
        topic: str,
        topic_id: str,
        partition: int,
        ranges: Iterable[Range],
        *,
        dead_letter_topic: str = "",
    ) -> None:
        self.token = token
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition
        self.dead_letter_topic = dead_letter_topic
        """Where redriven records lie; else empty."""
        self.held = OffsetRanges(ranges)
        self.lost: OffsetRanges | None = None
        """None: nothing."""
        self.turn: Turn | None = None
        """Acknowledgements that are gathered now."""
        self.unanswered_count = 0
        """Entries under way to the broker."""
        self.is_given_up = False
        """It is not extended any more."""
        self.is_gone = False
        """The broker knows it no more."""

    @property
    def is_open(self) -> bool:
        """Whether the broker still holds it for us: not all is known to be settled."""
        return bool(self.held) or self.unanswered_count > 0 or self.turn is not None

    def take(self, first: int, end: int) -> list[Range]:
        """Returns what of the range is held, which counts as answered from now on."""
        found = self.held.within(first, end)
        self.held.remove(first, end)
        return found

    def lose(self, first: int, end: int) -> int:
        """Gives up what of the range is held; returns how many records that are."""
        found = self.take(first, end)
        if found:
            self.lost = self.lost or OffsetRanges()
            for start, stop in found:
                self.lost.add(start, stop)
        return sum(stop - start for start, stop in found)

    def lose_all(self) -> int:
        """Gives up all that is held; returns how many records that are."""
        return self.lose(self.held.first, self.held.end) if self.held else 0

    def note_lost(self, offset: int) -> None:
        """Takes note that an answered record is given up: who still has it can see that."""
        self.lost = self.lost or OffsetRanges()
        self.lost.add(offset, offset + 1)

    def has_lost(self, offset: int) -> bool:
        """Tells whether the record was taken back before it was answered."""
        return self.lost is not None and offset in self.lost

    def __repr__(self) -> str:
        return f"<Lease {self.token} on {self.topic}/{self.partition} {self.held.ranges()}>"


def minus(ranges: Iterable[Range], others: OffsetRanges) -> list[Range]:
    """Returns what of the ranges is not among the others."""
    return [gap for first, end in ranges for gap in others.gaps(first, end)]
