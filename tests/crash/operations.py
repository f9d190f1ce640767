"""What a broker is doing as it dies: one class an operation.

prepare   what there is before; the broker is killed then, and what it left is the start
run       the operation; it notes what was confirmed, up to its broker's death
check     fails unless another broker, started on what is left, knows what was confirmed,
          and of everything else either all or nothing
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

from cases.grouped import letters_of
from server.members import ACK, REJECT

from crash.doomed_broker import DoomedBroker
from crash.scene import (
    GROUP,
    LETTERS,
    TOPIC,
    Records,
    comes_true,
    committed_of,
    lease,
    leased,
    make_group,
    partition_of,
    records_in,
    settle,
    topics_of,
)
from logbroker.v1.dead_letter_service_pb2 import (
    DeadLetterFilter,
    ListRedrivesRequest,
    StartRedriveRequest,
)
from logbroker.v1.group_service_pb2 import Commit, CommitOffsetsRequest
from logbroker.v1.topic_pb2 import TopicSettings
from logbroker.v1.topic_service_pb2 import (
    CreateTopicRequest,
    DeleteTopicRequest,
    GetTopicRequest,
    TrimTopicRequest,
    UpdateTopicRequest,
)


class Operation(Protocol):
    """An operation with what it was told."""

    plan: Mapping[str, Any] = MappingProxyType({})
    """What its broker is told beside."""

    async def prepare(self, calls: Any) -> None: ...
    async def run(self, broker: DoomedBroker) -> None: ...
    async def check(self, calls: Any) -> None: ...


class Roll(Operation):
    """Records that fill some segments: seals, index files, checkpoints, new files."""

    def __init__(self) -> None:
        self.records = Records()

    async def prepare(self, calls: Any) -> None:
        await self.records.make(calls, 8)

    async def run(self, broker: DoomedBroker) -> None:
        await self.records.publish(broker.calls, 14)

    async def check(self, calls: Any) -> None:
        await self.records.check(calls)
        await self.records.publish(calls, 3)
        await self.records.check(calls)


class Stop(Operation):
    """A clean stop: flushes, indexes, checkpoints of all partitions, the marker."""

    def __init__(self) -> None:
        self.records = Records()
        self.confirmed = 0

    async def prepare(self, calls: Any) -> None:
        await self.records.make(calls, 12)
        await make_group(calls)

    async def run(self, broker: DoomedBroker) -> None:
        await self.records.publish(broker.calls, 1)
        await self.commit(broker.calls)
        await broker.stop()

    async def commit(self, calls: Any) -> None:
        await commit(calls, 5)
        self.confirmed = 5

    async def check(self, calls: Any) -> None:
        assert await committed_of(calls) in {self.confirmed, 5}
        await self.records.check(calls)


class Start(Stop):
    """A start after a kill: whatever it mends, it may be killed as it does."""

    async def prepare(self, calls: Any) -> None:
        await super().prepare(calls)
        await self.commit(calls)

    async def run(self, broker: DoomedBroker) -> None:
        await self.check(broker.calls)


class Create(Operation):
    """A topic is made, and another grows."""

    def __init__(self) -> None:
        self.records = Records()
        self.is_made = False

    async def prepare(self, calls: Any) -> None:
        await self.records.make(calls, 2)

    async def run(self, broker: DoomedBroker) -> None:
        request = CreateTopicRequest(topic="b", partition_count=2)
        await broker.calls.topics.CreateTopic(request)
        self.is_made = True

    async def check(self, calls: Any) -> None:
        await self.records.check(calls)
        is_there = "b" in await topics_of(calls)
        assert is_there or not self.is_made
        if not is_there:
            await calls.topics.CreateTopic(CreateTopicRequest(topic="b", partition_count=2))
        found = (await calls.topics.GetTopic(GetTopicRequest(topic="b"))).partitions
        assert [(part.next_offset, part.failure) for part in found] == [(0, "")] * 2


class Delete(Operation):
    """A topic with records, a reader and dead letters goes; its name is used again."""

    def __init__(self) -> None:
        self.records, self.others = Records(), Records("other")
        self.is_gone = False

    async def prepare(self, calls: Any) -> None:
        await self.records.make(calls, 12)
        await self.others.make(calls, 2)
        await make_group(calls)
        await commit(calls, 5)

    async def run(self, broker: DoomedBroker) -> None:
        await broker.calls.topics.DeleteTopic(DeleteTopicRequest(topic=TOPIC))
        self.is_gone = True

    async def check(self, calls: Any) -> None:
        await self.others.check(calls)
        if TOPIC in await topics_of(calls):
            assert not self.is_gone
            await self.records.check(calls)
            assert await committed_of(calls) == 5
            await calls.topics.DeleteTopic(DeleteTopicRequest(topic=TOPIC))
        again = Records()
        await again.make(calls, 1)
        await again.check(calls)
        assert await records_in(calls, TOPIC) == {0: again.sent[0]}
        assert set(await leased(calls)) == set(again.sent)


class Trim(Operation):
    """The log start rises twice, over some segments."""

    STEPS = (15, 27)

    def __init__(self) -> None:
        self.records = Records()
        self.start = 0

    async def prepare(self, calls: Any) -> None:
        await self.records.make(calls, 35)

    async def run(self, broker: DoomedBroker) -> None:
        for offset in self.STEPS:
            request = TrimTopicRequest(topic=TOPIC, offset=offset)
            self.start = (await broker.calls.topics.TrimTopic(request)).log_start_offset

    async def check(self, calls: Any) -> None:
        start = (await partition_of(calls, TOPIC)).log_start_offset
        assert start in {0, *self.STEPS}
        assert start >= self.start
        await self.records.check(calls)


class Retain(Operation):
    """Retention removes segments: they go from the beginning, and only whole ones."""

    plan = MappingProxyType({"check_interval_ms": 20})
    KEPT_BYTES = 2 * 4_096

    def __init__(self) -> None:
        self.records = Records()
        self.start = 0

    async def prepare(self, calls: Any) -> None:
        await self.records.make(calls, 35)

    async def run(self, broker: DoomedBroker) -> None:
        settings = TopicSettings(retention_bytes=self.KEPT_BYTES)
        request = UpdateTopicRequest(topic=TOPIC, settings=settings)
        await broker.calls.topics.UpdateTopic(request)

        async def has_risen() -> bool:
            self.start = (await partition_of(broker.calls, TOPIC)).log_start_offset
            return self.start > 0

        await comes_true(has_risen, "retention removes segments")

    async def check(self, calls: Any) -> None:
        part = await partition_of(calls, TOPIC)
        assert self.start <= part.log_start_offset <= 35 - self.KEPT_BYTES // 600
        assert part.next_offset == 35
        await self.records.check(calls)


class Snapshot(Operation):
    """Commits, so many that the journal of groups is shortened; another group has dead letters."""

    plan = MappingProxyType({"snapshot_every": 20, "journal_segment_bytes": 4 << 10})

    def __init__(self) -> None:
        self.records = Records()
        self.asked = self.confirmed = 0

    async def prepare(self, calls: Any) -> None:
        await self.records.make(calls, 60)
        await make_group(calls)
        await give_up(calls, 2)
        await make_group(calls, "committing")

    async def run(self, broker: DoomedBroker) -> None:
        for offset in range(1, 50):
            self.asked = offset
            await commit(broker.calls, offset, "committing")
            self.confirmed = offset

    async def check(self, calls: Any) -> None:
        assert self.confirmed <= await committed_of(calls, "committing") <= self.asked
        assert [one.source_offset for one in await letters_of(calls)] == [0, 1]
        assert set(await leased(calls)) == set(self.records.sent[2:])


class GiveUp(Operation):
    """Two records are rejected: their topic is made, copies are written, once."""

    def __init__(self) -> None:
        self.records = Records()
        self.is_rejected = self.is_acknowledged = False

    async def prepare(self, calls: Any) -> None:
        await self.records.make(calls, 5)
        await make_group(calls)

    async def run(self, broker: DoomedBroker) -> None:
        calls = broker.calls
        token = (await lease(calls)).delivery.token
        await settle(calls, token, 0, 2, REJECT)
        self.is_rejected = True
        await settle(calls, token, 2, 3, ACK)
        self.is_acknowledged = True
        await _written(calls, 2)

    async def check(self, calls: Any) -> None:
        sent = self.records.sent
        pending = set(await leased(calls))
        given_up = set(sent[:2]) - pending
        assert not (self.is_rejected and given_up != set(sent[:2]))
        assert given_up in (set(), set(sent[:2])), "one settlement is one step"
        if given_up:
            await _written(calls, 2)
            copies = list((await records_in(calls, LETTERS)).values())
            assert copies == sent[:2], "one copy each, in order"
        assert set(sent[3:]) <= pending
        assert sent[2] in pending or self.is_rejected
        assert not (self.is_acknowledged and sent[2] in pending)
        await self.records.check(calls)


class Redrive(Operation):
    """Four dead letters go back to their group, which acknowledges one and then another."""

    COUNT = 4

    def __init__(self) -> None:
        self.records = Records()
        self.is_started = False
        self.done: list[bytes] = []
        self.perhaps_done: list[bytes] = []

    async def prepare(self, calls: Any) -> None:
        await self.records.make(calls, self.COUNT)
        await make_group(calls)
        await give_up(calls, self.COUNT)

    async def run(self, broker: DoomedBroker) -> None:
        calls = broker.calls
        wanted = DeadLetterFilter(group=GROUP, topic=TOPIC)
        await calls.dead_letters.StartRedrive(StartRedriveRequest(filter=wanted))
        self.is_started = True
        for _ in range(2):
            await comes_true(lambda: self._took_one(calls), "a redriven record is delivered")

    async def _took_one(self, calls: Any) -> bool:
        found = await lease(calls, 1)
        if not found.batches:
            return False
        run = found.delivery.ranges[0]
        value = (await records_in(calls, LETTERS))[run.first_offset]
        self.perhaps_done.append(value)
        await settle(calls, found.delivery.token, run.first_offset, run.end_offset, ACK)
        self.done.append(value)
        return True

    async def check(self, calls: Any) -> None:
        sent = self.records.sent
        assert list((await records_in(calls, LETTERS)).values()) == sent, "nothing is copied"

        async def is_over() -> bool:
            request = ListRedrivesRequest(group=GROUP)
            jobs = (await calls.dead_letters.ListRedrives(request)).redrives
            return all(job.state == "done" for job in jobs)

        await comes_true(is_over, "the redrive is through")
        request = ListRedrivesRequest(group=GROUP)
        jobs = (await calls.dead_letters.ListRedrives(request)).redrives
        assert len(jobs) in ({1} if self.is_started else {0, 1})
        parked = {one.source_offset for one in await letters_of(calls) if one.state == "parked"}
        delivered = await leased(calls)
        assert set(delivered.values()) <= {1}
        assert parked == (set() if jobs else set(range(self.COUNT)))
        open_ones = set(sent) - set(self.done) if jobs else set()
        assert set(delivered) <= open_ones
        assert open_ones - set(delivered) <= set(self.perhaps_done)


async def commit(calls: Any, offset: int, group: str = GROUP) -> None:
    """Commits, and returns once that is confirmed."""
    one = Commit(topic=TOPIC, offset=offset)
    request = CommitOffsetsRequest(group=group, commits=[one])
    [result] = (await calls.groups.CommitOffsets(request)).results
    assert not result.HasField("error"), result


async def give_up(calls: Any, count: int) -> None:
    """Makes dead letters of the first records."""
    found = await lease(calls, count)
    await settle(calls, found.delivery.token, 0, count, REJECT)
    await _written(calls, count)


async def _written(calls: Any, count: int) -> None:
    async def are_written() -> bool:
        return len(await letters_of(calls)) == count

    await comes_true(are_written, f"{count} dead letters are written")


OPERATIONS: tuple[type[Operation], ...] = (
    Roll, Stop, Start, Create, Delete, Trim, Retain, Snapshot, GiveUp, Redrive,
)  # fmt: skip
