"""A member of a group as any client writes one: by the generated stub alone."""

import asyncio
from contextlib import asynccontextmanager

import grpc

from logbroker.v1 import consume_service_pb2 as pb
from logbroker.v1.group_pb2 import GroupSettings
from logbroker.v1.produce_service_pb2 import PublishRequest
from logbroker.v1.record_pb2 import Record
from logbroker.v1.records_pb2 import Records

from .calls import HOW_LONG_S, within_time

ACK, RETRY = pb.OUTCOME_ACKNOWLEDGE, pb.OUTCOME_RETRY
RELEASE, REJECT = pb.OUTCOME_RELEASE, pb.OUTCOME_REJECT


class Delivered:
    """A delivery with its records: (offset, value) pairs."""

    def __init__(self, response):
        self.delivery = response.delivery
        self.token = self.delivery.token
        self.records = list(records_of(response.batches))
        self.offsets = [offset for offset, _ in self.records]
        self.values = [value for _, value in self.records]
        self.numbers = [each.delivery_number for each in self.delivery.ranges]
        self.failures = [each.failures for each in self.delivery.ranges]


class TestMember:
    """A Consume stream; what came besides deliveries is kept by kind."""

    __test__ = False

    def __init__(self, call):
        self.call = call
        self.assignments, self.taken_back, self.caught_up = [], [], []
        self.settled, self.extended, self.deliveries = [], [], []
        self.joined = None

    async def read(self):
        response = await within_time(self.call.read())
        assert response is not grpc.aio.EOF, "the stream has ended"
        if response.HasField("joined"):
            self.joined = response.joined
        if response.HasField("assignment"):
            partitions = response.assignment.partitions
            self.assignments.append([(each.topic, each.partition) for each in partitions])
        self.taken_back += [(e.token, e.first_offset, e.end_offset) for e in response.taken_back]
        self.caught_up += [(each.topic, each.partition) for each in response.caught_up]
        self.settled += response.settled
        self.extended += response.extended
        if response.HasField("delivery"):
            self.deliveries.append(Delivered(response))

    async def until(self, condition):
        """Reads on until the condition holds."""
        async with asyncio.timeout(HOW_LONG_S):
            while not (found := condition()):
                await self.read()
            return found

    async def delivery(self):
        """Returns the next delivery."""
        await self.until(lambda: self.deliveries)
        return self.deliveries.pop(0)

    async def take(self, count):
        """Returns deliveries until they hold so many records."""
        found = []
        while sum(len(each.records) for each in found) < count:
            found.append(await self.delivery())
        return found

    async def settle(self, delivered, outcome=ACK, first=None, end=None, **fields):
        """Settles a delivery, or a range of it, and returns the result."""
        settlement = pb.Settlement(
            token=delivered.token,
            first_offset=delivered.offsets[0] if first is None else first,
            end_offset=delivered.offsets[-1] + 1 if end is None else end,
            outcome=outcome,
            **fields,
        )
        await self.call.write(pb.ConsumeRequest(settle=pb.Settlements(settlements=[settlement])))
        await self.until(lambda: self.settled)
        return self.settled.pop(0)

    async def extend(self, delivered, lease_ms=0):
        extension = pb.Extension(token=delivered.token, lease_ms=lease_ms)
        await self.call.write(pb.ConsumeRequest(extend=pb.Extensions(extensions=[extension])))
        await self.until(lambda: self.extended)
        return self.extended.pop(0)

    async def limit(self, records):
        limits = pb.FlowLimits(max_outstanding_records=records)
        await self.call.write(pb.ConsumeRequest(limits=limits))

    async def leave(self):
        """Ends in order."""
        await self.call.write(pb.ConsumeRequest(leave=pb.LeaveConsume()))
        while await within_time(self.call.read()) is not grpc.aio.EOF:
            pass

    def vanish(self):
        """Ends without a word."""
        self.call.cancel()


async def member_of(calls, group="g", topics=("a",), *, limits=None, order=None, **fields):
    """Returns a member that has joined; `order` and what else `settings` say is of the group."""
    names = GroupSettings.DESCRIPTOR.fields_by_name
    settings = {name: fields.pop(name) for name in list(fields) if name in names}
    opening = pb.OpenConsume(
        group=group,
        topics=topics,
        settings=GroupSettings(order=order, **settings),
        limits=pb.FlowLimits(max_outstanding_records=limits),
        **fields,
    )
    call = calls.consume.Consume()
    await call.write(pb.ConsumeRequest(open=opening))
    member = TestMember(call)
    await member.until(lambda: member.joined)
    return member


@asynccontextmanager
async def member_on(calls, group="g", **fields):
    """Yields a member that leaves in order at the end."""
    member = await member_of(calls, group, **fields)
    yield member
    await member.leave()


async def publish(calls, *values, topic="a", partition=0, keys=None):
    """Appends the values as one batch."""
    keys = keys or [None] * len(values)
    records = [Record(value=value, key=key) for value, key in zip(values, keys, strict=True)]
    request = PublishRequest(topic=topic, partition=partition, records=records)
    await calls.produce.Publish(request)


def records_of(batches):
    """Yields offset and value of each record."""
    for batch in batches:
        records = Records.FromString(batch.records)
        deltas = records.offset_deltas or range(len(records.values))
        for delta, value in zip(deltas, records.values, strict=True):
            yield batch.base_offset + delta, value
