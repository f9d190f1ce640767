"""The periodic tasks of the broker; those of the files are the engine's."""

import structlog

from logbroker.broker.coordinator import Coordinator
from logbroker.broker.group_admin import GroupAdmin
from logbroker.broker.partitions import Partitions
from logbroker.broker.producer_ids import SAVE_AFTER_BYTES, ProducerIds
from logbroker.clock import Clock
from logbroker.errors import LogbrokerError

EVERY_MS = 5_000

log = structlog.get_logger()


async def keep_house(
    partitions: Partitions,
    coordinator: Coordinator,
    producer_ids: ProducerIds,
    group_admin: GroupAdmin,
    clock: Clock,
    producer_retention_ms: int,
) -> None:
    """Saves the tables of busy producers, forgets silent ones, finishes what could not be done.

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
        busy = [found for found in partitions.all() if found.unsaved_bytes >= SAVE_AFTER_BYTES]
        try:
            await producer_ids.save(busy)
        except LogbrokerError as error:
            log.warning("producers not saved", reason=error.reason, error=str(error))
