"""What one who takes records holds, and where there may be more for it.

A stream has one as long as it lives; a `Lease` call has one while it looks for something.
"""

import asyncio
from typing import NamedTuple

from logbroker.errors import LogbrokerError
from logbroker.group.assignment import TopicPartition
from logbroker.group.group_events import LedgerId
from logbroker.record.offset_ranges import Range


class TakenBack(NamedTuple):
    """A lease, or a part of it, that is over without an answer."""

    place: TopicPartition
    """Of dead letters, the partition that they come from."""
    token: int
    ranges: tuple[Range, ...]


class Holding:
    """Leases by token, and the ledgers to look into."""

    def __init__(self, name: str, topic_ids: frozenset[str], *, is_stream: bool) -> None:
        self.name = name
        self.topic_ids = topic_ids
        self.is_stream = is_stream
        self.record_count = 0
        """Leased and not settled."""
        self.byte_count = 0
        """Of the batches of leases that hold anything."""
        self.suspects: set[int] = set()
        """Tokens of leases of suspects, beside which nothing else may be held."""
        self.taken_back: list[TakenBack] = []
        """To be told."""
        self.ledgers: dict[LedgerId, None] = {}
        """Where there may be something, the one to look into next at the front."""
        self.has_news = asyncio.Event()
        self.failure: LogbrokerError | None = None
        """What a `Lease` call ends with that still waits."""
        self._sizes: dict[int, int] = {}

    def look_into(self, ledger_id: LedgerId) -> None:
        """Takes note that there may be something."""
        self.ledgers[ledger_id] = None
        self.has_news.set()

    def forget(self, ledger_id: LedgerId) -> None:
        """Takes note that there is nothing, until it is told otherwise."""
        self.ledgers.pop(ledger_id, None)

    def end(self, failure: LogbrokerError) -> None:
        """Ends a wait with this error."""
        self.failure = self.failure or failure
        self.has_news.set()

    def granted(self, token: int, record_count: int, *, is_suspect: bool) -> None:
        """Takes note of a lease."""
        self.record_count += record_count
        if is_suspect:
            self.suspects.add(token)
        self._sizes[token] = 0

    def sized(self, token: int, byte_count: int) -> None:
        """Takes note of how large the batches of a lease are that is still held."""
        if token in self._sizes:
            self.byte_count += byte_count - self._sizes[token]
            self._sizes[token] = byte_count

    def gave(self, token: int, record_count: int, *, is_over: bool) -> None:
        """Takes note that a lease holds so many records less, or nothing any more."""
        self.record_count -= record_count
        if is_over:
            self.byte_count -= self._sizes.pop(token, 0)
            self.suspects.discard(token)
        self.has_news.set()
