"""What is promised of a log, judged on all that producers were told and readers were shown.

    nothing lost      what was acknowledged, or shown to any reader, is there at the end
    no phantom        what is there was sent, to this partition, with this key
    order             numbers rise with offsets: nothing twice, nothing out of turn
    offsets           an offset shows the same bytes to everybody, whatever the broker survived
    bounds            the log start, the high watermark and the next offset never go back
    commits           a committed offset is what was asked for and confirmed, and never ahead

There is one clock and one process, so nothing here is uncertain but what was sent and not
answered. A record in whose batch bits were flipped may be missing, and is never shown changed.
"""

from collections import Counter, defaultdict
from typing import NamedTuple

from history.events import Place

Partition = tuple[str, int]


class Sent(NamedTuple):
    """A record that a producer sent: perhaps it is stored."""

    topic: str
    partition: int
    key: bytes | None


class LogWatch:
    """Takes what happens to logs; `faults` is what must not have."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.counts: Counter[str] = Counter()
        self.flipped: set[Place] = set()
        """Records whose bytes were changed on the disk."""
        self.starts: dict[Partition, int] = defaultdict(int)
        """Where logs begin, as the broker last said."""
        self.shown: dict[Place, bytes] = {}
        self._sent: dict[tuple[str, bytes], Sent] = {}
        self._acknowledged: dict[Place, bytes] = {}
        self._bounds: dict[Partition, tuple[int, int, int]] = {}
        self._confirmed: dict[Partition, int] = defaultdict(int)
        self._asked: dict[Partition, int] = defaultdict(int)

    def sent(self, value: bytes, sent: Sent) -> None:
        """A producer sends a record; values within a topic are unlike."""
        self._sent[sent.topic, value] = sent
        self.counts["records sent"] += 1

    def acknowledged(self, place: Place, value: bytes) -> None:
        """A producer was told that its record is kept."""
        self.counts["records acknowledged"] += 1
        before = self._acknowledged.setdefault(place, value)
        if before != value:
            self.faults.append(f"two records acknowledged at {place}: {before!r}, {value!r}")
            return
        self._check_same(place, value)

    def show(self, place: Place, key: bytes | None, value: bytes) -> None:
        """A reader is shown a record."""
        self.counts["records shown"] += 1
        sent = self._sent.get((place.topic, value))
        if sent is None:
            self.faults.append(f"a phantom: {value[:40]!r} at {place}")
        elif sent != Sent(place.topic, place.partition, key):
            self.faults.append(f"{value[:40]!r} with key {key!r} at {place}, sent as {sent}")
        self._check_same(place, value)

    def _check_same(self, place: Place, value: bytes) -> None:
        before = self.shown.setdefault(place, value)
        if before != value:
            told = f"{before[:40]!r} and later {value[:40]!r}"
            self.faults.append(f"an offset was used again: {place} was {told}")

    def bounds(self, partition: Partition, start: int, high_watermark: int, end: int) -> None:
        """The broker says where a log begins and ends."""
        found = start, high_watermark, end
        if not start <= high_watermark <= end:
            self.faults.append(f"bounds {found} of {partition}")
        before = self._bounds.get(partition, (0, 0, 0))
        # The next offset counts what is not durable: a crash may take that back.
        if any(now < then for now, then in zip(found[:2], before[:2], strict=True)):
            self.faults.append(f"bounds of {partition} went back from {before} to {found}")
        self._bounds[partition] = found
        self.starts[partition] = max(self.starts[partition], start)

    def known_bounds(self, partition: Partition) -> tuple[int, int]:
        """Returns the log start offset and the high watermark, as far as they are known."""
        start, high_watermark, _ = self._bounds.get(partition, (0, 0, 0))
        return start, high_watermark

    def bounds_answered(
        self, partition: Partition, asked: tuple[int, int], start: int, high_watermark: int
    ) -> None:
        """An answer says so that was under way for a while; `asked` was known when it was asked."""
        if start < asked[0] or high_watermark < asked[1]:
            found = start, high_watermark
            self.faults.append(f"bounds of {partition} went back from {asked} to {found}")
        known = self.known_bounds(partition)
        start, high_watermark = max(start, known[0]), max(high_watermark, known[1])
        self.bounds(partition, start, high_watermark, high_watermark)

    # Commits

    def commit_asked(self, partition: Partition, offset: int) -> None:
        """A reader asks to commit."""
        self._asked[partition] = max(self._asked[partition], offset)

    def commit_confirmed(self, partition: Partition, offset: int) -> None:
        """The broker has taken a commit."""
        self.counts["commits confirmed"] += 1
        self._confirmed[partition] = max(self._confirmed[partition], offset)

    def committed(self, partition: Partition, offset: int) -> None:
        """The broker says what is committed."""
        start = self.starts[partition]  # retention moves a commit up to where the log begins
        low, high = self._confirmed[partition], max(self._asked[partition], start)
        if not low <= offset <= high:
            self.faults.append(f"committed {offset} in {partition}, which is {low} to {high}")

    def known_to_end(self, partition: Partition, committed: int, high_watermark: int) -> None:
        """A group's commit beside its log."""
        if committed > high_watermark:
            told = f"{committed}, the log ends at {high_watermark}"
            self.faults.append(f"a commit ahead of {partition}: {told}")

    # The end

    def check_log(self, log: dict[Place, tuple[bytes | None, bytes]]) -> None:
        """Checks all that can be read at the end."""
        for place, (key, value) in log.items():
            self.show(place, key, value)
        for place, value in self.shown.items():
            is_gone = place.offset < self.starts[place.topic, place.partition]
            if place not in log and not is_gone and place not in self.flipped:
                what = "acknowledged" if place in self._acknowledged else "that was shown"
                self.faults.append(f"a record {what} is lost: {value[:40]!r} of {place}")
        last: dict[Partition, tuple[Place, int]] = {}
        for place in sorted(self.shown):
            partition, number = (place.topic, place.partition), number_of(self.shown[place])
            before = last.get(partition)
            if before and number <= before[1]:
                self.faults.append(f"not in order: {number} at {place}, {before[1]} at {before[0]}")
            last[partition] = place, number
        self.counts["records checked"] += len(self.shown)


def number_of(value: bytes) -> int:
    """Returns the number that a value begins with; the rest of it is there to be large."""
    return int(value)
