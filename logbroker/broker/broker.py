"""Broker: the facade. Each verb delegates; the thinking is done in the file of its name."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import structlog

from logbroker.broker.backpressure import ByteBudget
from logbroker.broker.beginning import Beginning
from logbroker.broker.coordinator import Coordinator
from logbroker.broker.dead_letter_calls import DeadLetterCalls
from logbroker.broker.dead_letter_view import DeadLetterView
from logbroker.broker.dead_letters import DeadLetters
from logbroker.broker.expiry import Expiry
from logbroker.broker.explain import Explain
from logbroker.broker.fetch import Fetch, Fetched, FetchSpec
from logbroker.broker.group_admin import GroupAdmin
from logbroker.broker.group_calls import GroupCalls
from logbroker.broker.groups import Groups
from logbroker.broker.holds import Holds
from logbroker.broker.housekeeping import keep_house
from logbroker.broker.lease import LeaseCalls, LeaseSpec
from logbroker.broker.leasing import Delivery, Leasing
from logbroker.broker.loop_lag import LoopLag
from logbroker.broker.member import Member
from logbroker.broker.membership import Membership, MemberSpec
from logbroker.broker.offsets import Offsets
from logbroker.broker.parked_records import ParkedRecords
from logbroker.broker.partitions import Partitions
from logbroker.broker.produce import Appending, NewRecord, Produce
from logbroker.broker.producer_ids import ProducerIds
from logbroker.broker.progress_view import ProgressView
from logbroker.broker.redrive import RedriveJobs
from logbroker.broker.response_room import ResponseRoom
from logbroker.broker.settle import Settle, Settlement, SettleResult
from logbroker.broker.stats import BrokerStats, GroupStats
from logbroker.broker.topics import Topics
from logbroker.clock import Clock
from logbroker.config import LimitsConfig, LogConfig
from logbroker.errors import LogbrokerError
from logbroker.record.batch import Batch
from logbroker.record.partition_id import PartitionId
from logbroker.record.receipt import Receipt
from logbroker.storage.engine import Engine
from logbroker.topic.names import CATALOG_TOPIC, GROUPS_TOPIC, PRODUCERS_TOPIC
from logbroker.topic.topic import PartitionStatus, Topic, TopicSettings

log = structlog.get_logger()


class Broker:
    """Topics, produce, fetch, on an engine. Made by `open_broker`."""

    def __init__(
        self,
        engine: Engine,
        partitions: Partitions,
        coordinator: Coordinator,
        producer_ids: ProducerIds,
        groups: Groups,
        limits: LimitsConfig,
        clock: Clock,
    ) -> None:
        self.limits = limits
        self.budget = ByteBudget(limits.in_flight_bytes)
        self.error_counts: Counter[str] = Counter()
        self.loop_lag = LoopLag(clock)
        """Whoever runs the event loop runs it, too."""
        self._engine = engine
        self._partitions = partitions
        self._coordinator = coordinator
        self._catalog = coordinator.catalog
        self._producer_ids = producer_ids
        self._clock = clock
        self._produce = Produce(self._catalog, partitions, limits, clock)
        self._fetch = Fetch(self._catalog, partitions, limits, clock)
        self._groups = groups
        self._failed = {
            CATALOG_TOPIC: coordinator.has_failed,
            PRODUCERS_TOPIC: producer_ids.has_failed,
            GROUPS_TOPIC: groups.journal.has_failed,
        }
        dead_letters = DeadLetters(groups, coordinator)
        beginning = Beginning(groups, dead_letters)
        leasing = Leasing(groups)
        settle = Settle(groups, dead_letters)
        self.members = Membership(
            groups, beginning, leasing, settle, dead_letters, limits.idle_heartbeat_ms
        )
        """Joins and ends of Consume streams."""
        self._topics = Topics(coordinator, partitions, self.members, dead_letters, producer_ids)
        parked = ParkedRecords(groups)
        explain = Explain(groups, self.members, parked)
        offsets = Offsets(groups, beginning, self.members)
        self._progress = ProgressView(groups, self.members, explain)
        self.group_admin = GroupAdmin(groups, self.members, offsets, self._progress)
        """Lists, changes and deletes groups; keeps house."""
        self.groups = GroupCalls(
            groups, self.members, beginning, self.group_admin, offsets, self._progress, explain
        )
        """What an operator does with groups."""
        self._dead_letters = dead_letters
        view = DeadLetterView(groups, self._produce, parked)
        self._redrives = RedriveJobs(groups, view, parked)
        self.dead_letters = DeadLetterCalls(groups, view, self._redrives)
        """What an operator does with dead letters."""
        self._holds = Holds(groups, parked)
        self._settle = settle
        self._lease_calls = LeaseCalls(groups, beginning, leasing)
        self._expiry = Expiry(groups, dead_letters, self.members.ownership)
        self._started_ms = clock.monotonic_ms()

    async def create_topic(self, name: str, partition_count: int, settings: TopicSettings) -> Topic:
        """Creates a topic. InvalidError, AlreadyExistsError, ExhaustedError, UnavailableError."""
        return await self._coordinator.create(name, partition_count, settings)

    def get_topic(self, name: str, topic_id: str = "") -> Topic:
        """Returns a topic; see `Topics.get`."""
        return self._topics.get(name, topic_id)

    def partition_statuses(self, topic: Topic) -> list[PartitionStatus]:
        """Returns the state of each partition; see `Topics.partition_statuses`."""
        return self._topics.partition_statuses(topic)

    def list_topics(self, page_size: int, page_token: str) -> tuple[list[Topic], str]:
        """Lists topics in pages; see `Topics.list_page`."""
        return self._topics.list_page(page_size, page_token)

    async def update_topic(self, name: str, topic_id: str, settings: TopicSettings) -> Topic:
        """Changes settings. NotFoundError, InvalidError."""
        return await self._coordinator.update(name, topic_id, settings)

    async def grow_topic(self, name: str, topic_id: str, partition_count: int) -> Topic:
        """Adds partitions; see `Topics.grow`."""
        return await self._topics.grow(name, topic_id, partition_count)

    async def delete_topic(self, name: str, topic_id: str) -> None:
        """Deletes a topic with all that is known of it; see `Topics.delete`."""
        await self._topics.delete(name, topic_id)

    async def trim_topic(self, name: str, topic_id: str, partition: int, offset: int) -> int:
        """Raises the log start offset and returns it; see `Topics.trim`."""
        return await self._topics.trim(name, topic_id, partition, offset)

    def produce(
        self,
        topic: str,
        topic_id: str,
        partition: int,
        batch: Batch,
        expected_offset: int | None = None,
    ) -> Appending:
        """Appends a batch; see `Produce.produce`."""
        return self._produce.produce(topic, topic_id, partition, batch, expected_offset)

    async def publish(
        self,
        topic: str,
        topic_id: str,
        records: list[NewRecord],
        partition: int | None = None,
        expected_offset: int | None = None,
    ) -> list[Receipt | LogbrokerError]:
        """Appends records; see `Produce.publish`."""
        return await self._produce.publish(topic, topic_id, records, partition, expected_offset)

    async def create_producer(self) -> int:
        """Returns a new producer id."""
        return await self._producer_ids.create()

    def response_room(self) -> ResponseRoom:
        """Returns room for the responses to one connection."""
        return self._fetch.room()

    def fetch(self, spec: FetchSpec, room: ResponseRoom | None = None) -> AsyncGenerator[Fetched]:
        """Reads a partition; see `Fetch.fetch`."""
        return self._fetch.fetch(spec, room)

    async def find_offset(
        self, topic: str, topic_id: str, partition: int, timestamp_ms: int
    ) -> int | None:
        """Looks a time up; see `Fetch.find_offset`."""
        return await self._fetch.find_offset(topic, topic_id, partition, timestamp_ms)

    async def join(self, spec: MemberSpec) -> Member:
        """Returns a new member of a group; see `Membership.join`."""
        self._groups.check()
        return await self.members.join(spec)

    async def leave(self, member: Member, *, has_vanished: bool) -> None:
        """Ends a member; see `Membership.leave`."""
        await self.members.leave(member, has_vanished=has_vanished)

    async def lease(self, spec: LeaseSpec) -> Delivery | None:
        """Leases records without a stream; see `LeaseCalls.lease`."""
        self._groups.check()
        return await self._lease_calls.lease(spec)

    async def settle(self, group: str, settlements: list[Settlement]) -> list[SettleResult]:
        """Takes answers for leased records; returns what became of each once that is true."""
        self._groups.check()
        return await (await self._settle.settle(group, settlements)).wait_results()

    def extend(self, group: str, extensions: list[tuple[int, int]]) -> list[LogbrokerError | None]:
        """Moves deadlines of leases; see `Settle.extend`."""
        self._groups.check()
        return self._settle.extend(group, extensions)

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Begins what runs in the background for groups."""
        self._groups.start(tasks)
        self._groups.spawn(self._groups.timer.run(self._expiry.ring))
        self._groups.spawn(self._dead_letters.run())
        self._groups.spawn(self._holds.run())
        self._redrives.resume()

    def stop(self) -> None:
        """Ends what runs in the background for groups."""
        self._groups.stop()

    def stats(self, open_stream_count: int = 0) -> BrokerStats:
        """Returns what was counted since the start, and how things are."""
        logs = [partition.log.stats() for partition in self._partitions.all()]
        engine, counts = self._engine.stats(), self._produce.counts
        return BrokerStats(
            uptime_ms=self._clock.monotonic_ms() - self._started_ms,
            topic_count=len(self._catalog.topics()),
            partition_count=len(logs),
            failed_partition_count=self._failed_partition_count,
            damaged_range_count=engine.damaged_range_count,
            damaged_partitions=engine.damaged_partitions,
            damaged_topics=tuple(sorted(self._catalog.damaged_topics)),
            torn_bytes=sum(stats.torn_bytes for stats in logs),
            disk_free_bytes=engine.disk_free_bytes,
            open_file_count=engine.open_file_count,
            appended_batch_count=counts["batches"],
            appended_record_count=counts["records"],
            appended_bytes=counts["bytes"],
            fetched_bytes=self._fetch.fetched_bytes,
            duplicate_batch_count=counts["duplicate_batches"],
            in_flight_bytes=self.budget.taken,
            error_counts=dict(self.error_counts),
            open_stream_count=open_stream_count,
            group_count=len(self._groups.state.catalog.groups()),
            member_count=self.members.count,
            failed_journals=self.failed_journals(),
            scrubbed_segment_count=engine.scrubbed_segment_count,
            scrubbed_bytes=engine.scrubbed_bytes,
            scrub_finished_time_ms=engine.scrub_finished_time_ms,
            scrub_failure_count=engine.scrub_failure_count,
            loop_lag_ms=self.loop_lag.worst_ms,
        )

    async def group_stats(self) -> list[GroupStats]:
        """Returns how groups are; see `GroupAdmin.stats`. None once their journal has failed."""
        if self._groups.journal.failure:
            return []
        return await self.group_admin.stats()

    def failed_journals(self) -> tuple[str, ...]:
        """Returns what of the broker's own state takes no change until it is started again."""
        return tuple(name for name, has_failed in self._failed.items() if has_failed.is_set())

    async def failed_partition_counts(self) -> AsyncIterator[int]:
        """Yields how many partitions of topics take no more writes, now and after each change."""
        while True:
            changed = self._engine.failures.changed
            yield self._failed_partition_count
            await changed.wait()

    @property
    def _failed_partition_count(self) -> int:
        return sum(not partition.is_internal for partition in self._engine.failures)

    async def wait_failed(self, journal: str) -> None:
        """Returns once this journal has failed."""
        await self._failed[journal].wait()

    async def close(self) -> None:
        """Finishes changes; saves what the next start would else have to find out again."""
        try:
            await self._coordinator.close()
            await self._groups.close()
            await self._producer_ids.save(
                [partition for partition in self._partitions.all() if partition.unsaved_bytes]
            )
        except LogbrokerError as error:
            log.warning("state not saved", reason=error.reason, error=str(error))


@asynccontextmanager
async def open_broker(
    engine: Engine, clock: Clock, *, defaults: LogConfig, limits: LimitsConfig
) -> AsyncIterator[Broker]:
    """Replays the journals, opens the partitions, keeps house; at the end saves state."""
    engine.keep_needed(None)
    producer_ids = await ProducerIds.open(engine, clock)
    partitions = Partitions(engine, producer_ids.registry)
    coordinator = await Coordinator.open(engine, partitions, producer_ids, clock, defaults)
    groups = await Groups.open(engine, coordinator.catalog, partitions, clock)
    await producer_ids.save_due(partitions)

    def needed_from(partition: PartitionId) -> int | None:
        found = partitions.find(partition.topic_id, partition.partition)
        offsets = (
            groups.letters.needed_from(partition),
            producer_ids.needed_from(found) if found else None,
        )
        return min((offset for offset in offsets if offset is not None), default=None)

    engine.keep_needed(needed_from)
    broker = Broker(engine, partitions, coordinator, producer_ids, groups, limits, clock)
    try:
        async with asyncio.TaskGroup() as tasks:
            house = tasks.create_task(
                keep_house(
                    partitions,
                    coordinator,
                    broker.group_admin,
                    clock,
                    limits.producer_retention_ms,
                )
            )
            saving = tasks.create_task(producer_ids.keep_saved(partitions))
            broker.start(tasks)
            try:
                yield broker
            finally:
                house.cancel()
                saving.cancel()
                broker.stop()
    except BaseExceptionGroup as group:
        if len(group.exceptions) == 1:  # what the caller raised, as the caller raised it
            raise group.exceptions[0] from None
        raise
    finally:
        await broker.close()
