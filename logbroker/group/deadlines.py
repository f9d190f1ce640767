"""Times at which something is due, by key. Asking changes nothing that can be seen. Pure."""

from heapq import heapify, heappop, heappush

SPARE = 64


class Deadlines:
    """A key has one time; setting it again replaces it."""

    def __init__(self) -> None:
        self._times: dict[int, int] = {}
        self._heap: list[tuple[int, int]] = []
        """(time, key); those that `_times` does not confirm are passed over."""

    def set(self, key: int, at_ms: int) -> None:
        """Makes the key due at this time."""
        self._times[key] = at_ms
        heappush(self._heap, (at_ms, key))
        if len(self._heap) > 2 * len(self._times) + SPARE:
            self._heap = [(time, key) for key, time in self._times.items()]
            heapify(self._heap)

    def drop(self, key: int) -> None:
        """Forgets the key."""
        self._times.pop(key, None)

    def at(self, key: int) -> int | None:
        """Returns when the key is due; None if it is not known."""
        return self._times.get(key)

    def due(self, now_ms: int) -> list[int]:
        """Returns the keys that are due, the earliest first. Looks at no others."""
        found = []
        heap, nodes = self._heap, [0]
        while nodes:
            at = nodes.pop()
            if at < len(heap) and heap[at][0] <= now_ms:
                if self._times.get(heap[at][1]) == heap[at][0]:
                    found.append(heap[at])
                nodes += (2 * at + 1, 2 * at + 2)
        return [key for _, key in sorted(set(found))]

    def next_ms(self) -> int | None:
        """Returns the earliest time; None if nothing is ever due."""
        while self._heap and self._times.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None
