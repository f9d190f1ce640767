"""Retention takes what somebody is just about to read."""

import pytest

from logbroker.broker.fetch import At, Edge
from logbroker.errors import OffsetOutOfRangeError

from .brokers import batch_of, broker_on, topic_on, values_of


def trimming(log, offset):
    """Makes the log trim itself when it is read next."""
    read = log.read

    async def trim_and_read(*args):
        log.read = read
        await log.trim(offset)
        return await read(*args)

    log.read = trim_and_read


async def written(broker, count=10):
    """Writes so many records, in batches of their own; returns the partition's log."""
    for number in range(count):
        await broker.produce("a", "", 0, batch_of(b"%d" % number))
    topic = broker.get_topic("a")
    return await broker.engine.open(topic.partition(0), topic.settings)


async def test_a_partition_is_opened_although_retention_is_at_work_already():
    async with topic_on() as broker:
        await written(broker)
        killed = broker.engine.reopened()  # it has to read the headers to know the producers
        topic = broker.get_topic("a")
    trimming(await killed.open(topic.partition(0), topic.settings), 7)
    async with broker_on(killed) as broker:
        assert all(not status.failure for status in broker.partition_statuses(topic))
        assert await values_of(broker) == [b"7", b"8", b"9"]


@pytest.mark.parametrize("start", [Edge.EARLIEST, At(0)])
async def test_who_asks_for_no_offset_is_never_told_that_it_is_out_of_range(start):
    async with topic_on() as broker:
        trimming(await written(broker), 7)
        assert await values_of(broker, start=start) == [b"7", b"8", b"9"]


async def test_who_asks_for_an_offset_is_told_that_it_is_out_of_range_by_now():
    async with topic_on() as broker:
        trimming(await written(broker), 7)
        with pytest.raises(OffsetOutOfRangeError):
            await values_of(broker, start=3)
