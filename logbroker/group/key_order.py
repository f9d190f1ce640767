"""Whose turn it is among the records of a key, in `key` order. Pure.

The one part of a group that works per record. It is a view: of the keys that the caller
gives, and of the ledger, which says what becomes of offsets. After a restart it is empty
and is given the keys again, from the committed offset on.

    a record has its turn when no unsettled record of its key lies before it
    `ready` is what has its turn, is available and whose key is not held
    a record without a key always has its turn; an empty key is a key
    in a dead-letter topic what is parked is not in anybody's way, and is not known here: its
    keys are `wanted` when it is redriven, and it comes behind those of its key that are open
    a key that cannot be read is passed over; if its record was not available then, as after a
    failure, it is `wanted` once that is, and what reads it again passes over the record, too
"""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain, starmap

from logbroker.record.offset_ranges import OffsetRanges, Range, joined


class KeyQueue(deque[int]):
    """The unsettled records of a key, in their order: the first of them has its turn."""

    __slots__ = ("key",)

    def __init__(self, key: bytes) -> None:
        super().__init__()
        self.key = key


UNKNOWN = KeyQueue(b"")
"""Stands for the queue of a record that is settled, or whose key was not learned."""


class KeyOrder:
    """The keys of the unsettled records from the committed offset up to `learned_end`."""

    def __init__(self, offset: int) -> None:
        self.learned_end = offset
        """Keys are known below this offset, and asked for from there on."""
        self.wanted = OffsetRanges()
        """What below it is not known either, and is free now: it was parked, or not readable."""
        self.ready = OffsetRanges()
        self._queues: dict[bytes, KeyQueue] = {}
        self._queue_of: dict[int, KeyQueue | None] = {}
        """By offset; None: the record has no key."""
        self._held: dict[bytes, set[int]] = {}
        """Keys that dead letters hold, and the offsets these had."""

    @property
    def open_count(self) -> int:
        """Returns how many records are known and not settled."""
        return len(self._queue_of)

    def learn(
        self, first: int, keys: Sequence[bytes | None], settled: OffsetRanges, taken: OffsetRanges
    ) -> None:
        """Takes in the keys of the records from `first` on; those known before are passed over."""
        end = first + len(keys)
        if self.wanted:
            self._learn_wanted(first, keys, taken)
        start = max(first, self.learned_end)
        if start >= end:
            return
        has_settled, has_taken = settled.meets(start, end), taken.meets(start, end)
        queues, queue_of, ready = self._queues, self._queue_of, []
        for offset, key in enumerate(keys[start - first :], start):
            if has_settled and offset in settled:
                continue
            if key is None:
                queue_of[offset] = None
            else:
                queue = queues.get(key)
                if queue is None:
                    queue = queues[key] = KeyQueue(key)
                queue.append(offset)
                queue_of[offset] = queue
                if queue[0] != offset or key in self._held:
                    continue
            if not has_taken or offset not in taken:
                ready.append(offset)
        self.ready.add_all(joined(ready))
        self.learned_end = end

    def pass_over(self, end: int) -> None:
        """Takes note that below this offset there is no key to be read any more."""
        self.learned_end = max(self.learned_end, end)

    def key_of(self, offset: int) -> bytes | None:
        """Returns the key of an unsettled record; None without one, or where it is not known."""
        queue = self._queue_of.get(offset)
        return queue.key if queue is not None else None

    def has_turn(self, offset: int) -> bool:
        """Returns whether no other record, and no dead letter, holds this one up."""
        queue = self._queue_of.get(offset, UNKNOWN)
        if not queue:
            return queue is None
        return queue[0] == offset and queue.key not in self._held

    def waits_for(self, offset: int) -> int | None:
        """Returns the offset of the record, or of the dead letter, whose turn is before."""
        queue = self._queue_of.get(offset)
        if queue is None:
            return None
        if queue.key in self._held:
            return min(self._held[queue.key])
        return queue[0] if queue[0] != offset else None

    def free(self, first: int, end: int) -> None:
        """Takes note that the range is available."""
        self.want(first, end)
        for offset in range(first, min(end, self.learned_end)):
            if self.has_turn(offset):
                self.ready.add(offset, offset + 1)

    def take(self, ranges: Sequence[Range]) -> None:
        """Takes note that the ranges are not available."""
        self.ready.remove_all(ranges)

    def want(self, first: int, end: int) -> None:
        """Takes note that the range may be leased, alone perhaps: its keys must be known."""
        for offset in range(first, min(end, self.learned_end)):
            if offset not in self._queue_of:
                self.wanted.add(offset, offset + 1)

    def settle(self, ranges: Sequence[Range], taken: OffsetRanges) -> None:
        """Takes note that the ranges are settled, or parked, as some of it may have been before."""
        self.ready.remove_all(ranges)
        if self.wanted:
            self.wanted.remove_all(ranges)
        queue_of, heads = self._queue_of, set[int]()
        for offset in self._known_in(ranges):
            queue = queue_of.pop(offset, None)
            if queue is None:
                continue
            if queue[0] != offset:
                queue.remove(offset)
                continue
            queue.popleft()
            heads.discard(offset)
            if not queue:
                del self._queues[queue.key]
            elif not self._held or queue.key not in self._held:
                heads.add(queue[0])
        self.ready.add_all(joined(taken.missing(sorted(heads))))
        if ranges[-1][1] > self.learned_end:
            for first, end in ranges:
                if first <= self.learned_end < end:
                    self.learned_end = end

    def hold(self, offset: int, key: bytes) -> None:
        """Takes note that a dead letter holds its key."""
        self._held.setdefault(key, set()).add(offset)
        if queue := self._queues.get(key):
            self.ready.remove(queue[0], queue[0] + 1)

    def let_go(self, offset: int, key: bytes, taken: OffsetRanges) -> None:
        """Takes note that this dead letter holds its key no more."""
        offsets = self._held.get(key, set())
        offsets.discard(offset)
        if offsets:
            return
        self._held.pop(key, None)
        queue = self._queues.get(key)
        if queue and queue[0] not in taken:
            self.ready.add(queue[0], queue[0] + 1)

    def _learn_wanted(self, first: int, keys: Sequence[bytes | None], taken: OffsetRanges) -> None:
        wanted = self.wanted.within(first, first + len(keys))
        self.wanted.remove_all(wanted)
        for offset in chain.from_iterable(starmap(range, wanted)):
            key = keys[offset - first]
            queue = None
            if key is not None:
                queue = self._queues.setdefault(key, KeyQueue(key))
                queue.append(offset)
            self._queue_of[offset] = queue
            if self.has_turn(offset) and offset not in taken:
                self.ready.add(offset, offset + 1)

    def _known_in(self, ranges: Sequence[Range]) -> Iterable[int]:
        """Returns offsets of the ranges, all that are known among them."""
        many = 2 * len(self._queue_of)
        is_short = ranges[-1][1] - ranges[0][0] <= many
        if is_short or sum(end - first for first, end in ranges) <= many:
            return chain.from_iterable(starmap(range, ranges))
        within = OffsetRanges(ranges)
        return sorted(offset for offset in self._queue_of if offset in within)
