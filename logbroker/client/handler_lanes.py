"""Which record is handled next, so that the order of the group holds. Pure.

    partition   one lane for each partition
    key         one lane for each key of a partition; records without a key need none
    none        no lanes

A lane gives a record only when the one before it is through. What is lost meanwhile is left out.
"""

from collections import deque
from collections.abc import Hashable, Iterator

from logbroker.client.delivered import Delivered, DeliveredBatch
from logbroker.group.settings import Order


class HandlerLane:
    """Records to be handled one after another."""

    __slots__ = ("name", "waiting")

    def __init__(self, name: Hashable) -> None:
        self.name = name
        self.waiting: deque[Iterator[Delivered]] = deque()


class HandlerLanes:
    """All records that came and are not begun."""

    def __init__(self, order: Order = Order.PARTITION) -> None:
        self.order = order
        self._free: deque[Iterator[Delivered]] = deque()
        self._lanes: dict[Hashable, HandlerLane] = {}
        self._ready: deque[HandlerLane] = deque()

    def add(self, batch: DeliveredBatch) -> None:
        """Takes a batch."""
        match self.order:
            case Order.NONE:
                self._free.append(iter(batch))
            case Order.PARTITION:
                self._put((batch.topic, batch.partition), iter(batch))
            case Order.KEY:
                for record in batch:
                    if record.key is None:
                        self._free.append(iter((record,)))
                    else:
                        self._put((batch.topic, batch.partition, record.key), iter((record,)))

    def next(self) -> tuple[HandlerLane | None, Delivered] | None:
        """Returns a record that may be begun, and its lane, which waits for `done`; or None."""
        free = self._free
        while free:
            for record in free[0]:
                if record.run.lease.lost is None or not record.lease_lost:
                    return None, record
            free.popleft()
        while self._ready:
            lane = self._ready.popleft()
            while lane.waiting:
                for record in lane.waiting[0]:
                    if record.run.lease.lost is None or not record.lease_lost:
                        return lane, record
                lane.waiting.popleft()
            self._lanes.pop(lane.name, None)
        return None

    def done(self, lane: HandlerLane) -> None:
        """Lets the lane go on."""
        if self._lanes.get(lane.name) is lane:
            self._ready.append(lane)

    def clear(self) -> None:
        """Forgets all records. Lanes that wait for `done` go on waiting."""
        self._free.clear()
        ready = set(map(id, self._ready))
        self._lanes = {name: lane for name, lane in self._lanes.items() if id(lane) not in ready}
        self._ready.clear()
        for lane in self._lanes.values():
            lane.waiting.clear()

    def _put(self, name: Hashable, records: Iterator[Delivered]) -> None:
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = HandlerLane(name)
            self._ready.append(lane)
        lane.waiting.append(records)
