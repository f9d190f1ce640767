"""Keeps leases alive: each is extended at a third of its time, as long as its owner wants it."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

from logbroker.client.lease import Lease
from logbroker.client.logs import ClientLog
from logbroker.clock import Clock
from logbroker.v1 import consume_service_pb2 as pb

DEFAULT_MS = 30_000

log = ClientLog(__name__)


class LeaseKeeper:
    """Extends what is among `leases`; removes what turns out to be over."""

    def __init__(
        self,
        clock: Clock,
        leases: dict[int, Lease],
        wake: Callable[[], None],
        may_extend: Callable[[Lease, int], bool],
    ) -> None:
        """`wake` is called when there is something to `take`.

        `may_extend` is asked for each lease, with the monotonic time.
        """
        self._clock = clock
        self._leases = leases
        self._wake = wake
        self._may_extend = may_extend
        self._lease_ms = DEFAULT_MS
        self._wanted: list[Lease] = []
        self._under_way: deque[Lease] = deque()
        self._tasks: asyncio.TaskGroup | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Begins to keep."""
        self._tasks = tasks
        self._task = tasks.create_task(self._keep())

    def stop(self) -> None:
        """Keeps no more."""
        if self._task is not None:
            self._task.cancel()

    def keep_every(self, lease_ms: int) -> None:
        """Hears how long leases last, and does not sleep too long."""
        before, self._lease_ms = self._lease_ms, lease_ms
        if lease_ms < before and self._tasks is not None:
            self.stop()
            self.start(self._tasks)

    def take(self) -> pb.Extensions | None:
        """Returns what is to be sent; None if that is nothing."""
        if not self._wanted:
            return None
        self._under_way += self._wanted
        extensions = [pb.Extension(token=lease.token) for lease in self._wanted]
        self._wanted = []
        return pb.Extensions(extensions=extensions)

    def take_answers(self, results: Iterable[pb.ExtendResult]) -> int:
        """Takes the broker's answers, which come in order; returns how many records are lost."""
        lost_count = 0
        for result in results:
            lease = self._under_way.popleft()
            if result.HasField("error") and result.error.reason == "LEASE_LOST":
                lost_count += lease.lose_all()
                lease.is_gone = True
                self._leases.pop(lease.token, None)
        return lost_count

    def clear(self) -> None:
        """Forgets what was wanted: the leases are gone."""
        self._wanted.clear()
        self._under_way.clear()

    async def _keep(self) -> None:
        while True:
            await self._clock.wait_until(self._clock.monotonic_ms() + max(1, self._lease_ms // 3))
            now_ms = self._clock.monotonic_ms()
            is_open = [lease for lease in list(self._leases.values()) if lease.is_open]
            self._wanted = [lease for lease in is_open if self._wants(lease, now_ms)]
            if self._wanted:
                self._wake()

    def _wants(self, lease: Lease, now_ms: int) -> bool:
        if self._may_extend(lease, now_ms):
            return True
        if not lease.is_given_up:
            lease.is_given_up = True
            log.warning(
                "lease is not extended any more: nothing has happened for too long",
                topic=lease.topic, partition=lease.partition, token=lease.token,
            )  # fmt: skip
        return False
