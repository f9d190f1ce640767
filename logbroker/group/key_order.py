"""Whose turn it is among the records of a key, in `key` order. Pure.

The one part of a group that works per record. It is a view: of the keys that the caller
gives, and of the ledger, which says what becomes of offsets. After a restart it is empty
and is given the keys again, from the committed offset on.

    a record has its turn when no unsettled record of its key lies before it
    `ready` is what has its turn, is available and whose key is not held
    a record without a key always has its turn; an empty key is a key
"""

from collections import deque
from collections.abc import Sequence

from logbroker.record.offset_ranges import OffsetRanges


class KeyOrder:
    """The keys of the unsettled records from the committed offset up to `learned_end`."""

    def __init__(self, offset: int) -> None:
        self.learned_end = offset
        """Keys are known below this offset, and asked for from there on."""
        self.ready = OffsetRanges()
        self.open_count = 0
        """How many records are known and not settled."""
        self._keys: dict[int, bytes] = {}
        self._queues: dict[bytes, deque[int]] = {}
        self._held: dict[bytes, set[int]] = {}
        """Keys that dead letters hold, and the offsets these had."""

    def learn(
        self, first: int, keys: Sequence[bytes | None], settled: OffsetRanges, taken: OffsetRanges
    ) -> None:
        """Takes in the keys of the records from `first` on; those known before are passed over."""
        ready: list[int] = []
        for offset, key in enumerate(keys, first):
            if offset < self.learned_end or offset in settled:
                continue
            self.open_count += 1
            has_turn = True
            if key is not None:
                self._keys[offset] = key
                queue = self._queues.get(key)
                if queue is None:
                    self._queues[key] = deque((offset,))
                    has_turn = key not in self._held
                else:
                    queue.append(offset)
                    has_turn = False
            if has_turn and offset not in taken:
                ready.append(offset)
        for offset in ready:
            self.ready.add(offset, offset + 1)
        self.learned_end = max(self.learned_end, first + len(keys))

    def key_of(self, offset: int) -> bytes | None:
        """Returns the key of an unsettled record; None without one, or where it is not known."""
        return self._keys.get(offset)

    def has_turn(self, offset: int) -> bool:
        """Returns whether no other record, and no dead letter, holds this one up."""
        if offset >= self.learned_end:
            return False
        key = self._keys.get(offset)
        return key is None or (self._queues[key][0] == offset and key not in self._held)

    def waits_for(self, offset: int) -> int | None:
        """Returns the offset of the record, or of the dead letter, whose turn is before."""
        key = self._keys.get(offset)
        if key is None:
            return None
        if key in self._held:
            return min(self._held[key])
        head = self._queues[key][0]
        return head if head != offset else None

    def free(self, first: int, end: int) -> None:
        """Takes note that the range is available."""
        for offset in range(first, min(end, self.learned_end)):
            if self.has_turn(offset):
                self.ready.add(offset, offset + 1)

    def take(self, first: int, end: int) -> None:
        """Takes note that the range is not available."""
        self.ready.remove(first, end)

    def settle(self, first: int, end: int, taken: OffsetRanges) -> None:
        """Takes note that the range, none of it settled before, is settled."""
        self.ready.remove(first, end)
        for offset in range(first, min(end, self.learned_end)):
            self.open_count -= 1
            key = self._keys.pop(offset, None)
            if key is None:
                continue
            queue = self._queues[key]
            if queue[0] != offset:
                queue.remove(offset)
                continue
            queue.popleft()
            if not queue:
                del self._queues[key]
            elif key not in self._held and queue[0] not in taken and queue[0] >= end:
                self.ready.add(queue[0], queue[0] + 1)
        if first <= self.learned_end:
            self.learned_end = max(self.learned_end, end)

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
