"""Topics as those see them who use them: listed, looked at; and what a change means for groups."""

from itertools import islice

from logbroker.broker.coordinator import Coordinator
from logbroker.broker.dead_letters import DeadLetters
from logbroker.broker.fetch import out_of_range
from logbroker.broker.membership import Membership
from logbroker.broker.partitions import Partitions
from logbroker.broker.producer_ids import ProducerIds
from logbroker.errors import InvalidError, NotFoundError, UnavailableError
from logbroker.limits import DEFAULT_PAGE_SIZE, PAGE_SIZE
from logbroker.topic.topic import PartitionStatus, Topic


class Topics:
    """What the coordinator does not do by itself: it knows no groups."""

    def __init__(
        self,
        coordinator: Coordinator,
        partitions: Partitions,
        members: Membership,
        dead_letters: DeadLetters,
        producer_ids: ProducerIds,
    ) -> None:
        self._coordinator = coordinator
        self._catalog = coordinator.catalog
        self._partitions = partitions
        self._members = members
        self._dead_letters = dead_letters
        self._producer_ids = producer_ids

    def get(self, name: str, topic_id: str = "") -> Topic:
        """Returns a topic. NotFoundError, also while it is being made; PreconditionError."""
        topic = self._catalog.get(name, topic_id)
        if not self._partitions.is_made(topic):
            message = f"topic {name!r} is still being made"
            raise NotFoundError("TOPIC_NOT_FOUND", message, topic=name)
        return topic

    def partition_statuses(self, topic: Topic) -> list[PartitionStatus]:
        """Returns the state of each partition, by number; of one that is not open, why."""
        statuses = []
        for partition in topic.partitions():
            try:
                found = self._partitions.get(partition).log
            except UnavailableError as error:
                statuses.append(_unavailable(partition.partition, error.reason))
                continue
            bounds, stats = found.bounds(), found.stats()
            statuses.append(
                PartitionStatus(
                    partition=partition.partition,
                    **bounds._asdict(),
                    size_bytes=stats.size_bytes,
                    segment_count=stats.segment_count,
                    damaged=stats.damaged,
                    failure=stats.failure,
                )
            )
        return statuses

    def list_page(self, page_size: int, page_token: str) -> tuple[list[Topic], str]:
        """Returns topics by name, those behind `page_token`, and the token of the next page."""
        if page_size < 0:
            message = f"page_size must be at least 0, not {page_size}"
            raise InvalidError("INVALID_ARGUMENT", message, page_size=page_size)
        size = min(page_size or DEFAULT_PAGE_SIZE, PAGE_SIZE)
        found = (topic for topic in self._catalog.topics() if topic.topic > page_token)
        topics = list(islice(filter(self._partitions.is_made, found), size + 1))
        return topics[:size], topics[size - 1].topic if len(topics) > size else ""

    async def grow(self, name: str, topic_id: str, partition_count: int) -> Topic:
        """Adds partitions. NotFoundError, InvalidError, ExhaustedError."""
        topic = await self._coordinator.grow(name, topic_id, partition_count)
        await self._members.topic_grown(topic)
        return topic

    async def delete(self, name: str, topic_id: str) -> None:
        """Deletes a topic, its records and what is known of their producers. NotFoundError.

        Dead letters are written before their records go; those that cannot be go with them.
        """
        topic = self._catalog.get(name, topic_id)
        await self._dead_letters.wait_tried(topic.topic_id)
        try:
            await self._coordinator.delete(name, topic.topic_id)
        finally:
            if self._catalog.find(topic.topic_id) is None:
                await self._members.topic_deleted(topic)

    async def trim(self, name: str, topic_id: str, partition: int, offset: int) -> int:
        """Raises the log start offset and returns it. NotFoundError, InvalidError.

        Dead letters are written before their records go; one that cannot be keeps its own. It is
        saved who wrote them.
        """
        topic, partition_id = self._catalog.partition(name, topic_id, partition)
        found = self._partitions.get(partition_id)
        bounds = found.log.bounds()
        if offset < 0:
            message = f"offset must be at least 0, not {offset}"
            raise InvalidError("INVALID_OFFSET", message, offset=offset)
        if offset > bounds.high_watermark:
            raise out_of_range(offset, bounds)
        offset = await self._dead_letters.wait_written(topic.topic_id, partition, offset)
        await self._producer_ids.save_before_trim(found, offset)
        await found.log.trim(offset)
        return found.log.bounds().log_start_offset


def _unavailable(partition: int, reason: str) -> PartitionStatus:
    return PartitionStatus(
        partition=partition,
        log_start_offset=0,
        high_watermark=0,
        next_offset=0,
        size_bytes=0,
        segment_count=0,
        failure=reason,
    )
