"""The periodic tasks of the broker; those of the files are the engine's."""

from logbroker.broker.coordinator import Coordinator
from logbroker.broker.group_admin import GroupAdmin
from logbroker.broker.partitions import Partitions
from logbroker.clock import Clock

EVERY_MS = 5_000


async def keep_house(
    partitions: Partitions,
    coordinator: Coordinator,
    group_admin: GroupAdmin,
    clock: Clock,
    producer_retention_ms: int,
) -> None:
    """Forgets silent producers, finishes what could not be done.

    Until it is cancelled.
    """
    while True:
        await clock.wait_until(clock.monotonic_ms() + EVERY_MS)
        before_ms = clock.now_ms() - producer_retention_ms
        for partition in partitions.all():
            partition.producers.forget(before_ms)
        await coordinator.erase_deleted()
        await coordinator.open_missing()
        await group_admin.keep_house()
