"""Records that wait for one another: those of a partition, or of a key, in their order."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from logbroker.group.settings import Order

from .events import Place


@dataclass(slots=True)
class Scope:
    """Some records of a partition, ascending."""

    offsets: list[int] = field(default_factory=list)
    first_open: int = 0
    """All before this one, by its index, are through."""
    top: int = -1
    """The last offset that was begun..."""
    top_begun: int = -1
    """... when..."""
    top_member: str = ""
    """... and by whom."""


class Scopes:
    """Which record waits for which, by a group's order; in order `none` none does."""

    def __init__(self, order: Order, keys: Mapping[Place, bytes | None]) -> None:
        self._order = order
        self._keys = keys
        self._scopes: dict[tuple[str, int, bytes | int], Scope] = defaultdict(Scope)
        if order is not Order.NONE:
            for place in sorted(keys):
                self._scopes[self._name(place)].offsets.append(place.offset)

    def of(self, place: Place) -> Scope | None:
        """Returns the records among which this one has its turn."""
        if self._order is Order.NONE or place not in self._keys:
            return None
        return self._scopes[self._name(place)]

    def begin(
        self, place: Place, index: int, member: str, is_through: Callable[[Place], bool]
    ) -> int | None:
        """Takes note that a record is begun; returns the offset it should have waited for."""
        scope = self.of(place)
        if scope is None:
            return None
        offsets = scope.offsets
        while scope.first_open < len(offsets) and is_through(
            place._replace(offset=offsets[scope.first_open])
        ):
            scope.first_open += 1
        at = bisect_left(offsets, place.offset)
        waits_for = offsets[scope.first_open] if scope.first_open < at else None
        scope.first_open = min(scope.first_open, at)
        scope.top, scope.top_begun, scope.top_member = place.offset, index, member
        return waits_for

    def reset(self, topic: str, partition: int, offset: int) -> None:
        """Takes note that the group goes on there."""
        for (of_topic, of_partition, _), scope in self._scopes.items():
            if (of_topic, of_partition) == (topic, partition):
                scope.first_open = bisect_left(scope.offsets, offset)
                scope.top = -1

    def _name(self, place: Place) -> tuple[str, int, bytes | int]:
        if self._order is Order.PARTITION:
            return place.topic, place.partition, b""
        key = self._keys[place]
        # A record without a key waits for nobody: it is a scope of its own.
        return place.topic, place.partition, place.offset if key is None else key
