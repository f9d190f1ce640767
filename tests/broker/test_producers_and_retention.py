"""Who wrote what retention removes is known afterwards: a batch in doubt is stored once."""

import errno
from contextlib import asynccontextmanager

import pytest

from logbroker.broker.broker import open_broker
from logbroker.config import LimitsConfig, LogConfig, StorageConfig
from logbroker.record.columns import Columns, encode_batch
from logbroker.storage.file.engine import FileEngine
from logbroker.testing.clock import ManualClock
from logbroker.testing.faulty_disk import FaultyDisk
from logbroker.topic.topic import TopicSettings

SEGMENT = 4 << 10
LARGE = b"v" * (SEGMENT - 500)
"""A segment for itself."""
HOUR_MS = 60 * 60_000
BY_TIME = TopicSettings(retention_ms=HOUR_MS)
BY_SIZE = TopicSettings(segment_bytes=SEGMENT, retention_bytes=2 * SEGMENT)


class Files:
    """One broker after the other on a data directory; each is killed at its end."""

    def __init__(self, data_dir):
        self.clock = ManualClock()
        self._data_dir = data_dir

    @asynccontextmanager
    async def broker(self):
        self.disk = FaultyDisk(self._data_dir)
        config = StorageConfig(data_dir=self._data_dir, scrub_bytes_per_second=0)
        self.engine = await FileEngine.start(config, self.clock, self.disk)
        try:
            async with open_broker(
                self.engine, self.clock, defaults=LogConfig(), limits=LimitsConfig()
            ) as broker:
                yield broker
                self.disk.kill()
        finally:
            await self.engine.close()


def first_of(producer_id):
    batch = encode_batch(Columns([LARGE]), now_ms=1)
    return batch._replace(header=batch.header._replace(producer_id=producer_id))


def of_three(producer_id):
    batch = encode_batch(Columns([b"0", b"1", b"2"]), now_ms=1)
    return batch._replace(header=batch.header._replace(producer_id=producer_id))


def start_of(broker):
    return broker.partition_statuses(broker.get_topic("a"))[0].log_start_offset


async def produce(broker, producer_id):
    return await broker.produce("a", "", 0, first_of(producer_id))


@pytest.mark.parametrize("down_ms", [HOUR_MS // 2 + 1, 30 * HOUR_MS])
async def test_a_producer_is_known_whose_batches_expired_while_no_broker_ran(tmp_path, down_ms):
    """Their age was counted from the start of the machine, so that nobody saved their table."""
    files = Files(tmp_path)
    async with files.broker() as broker:
        await broker.create_topic("a", 1, BY_TIME)
        first = await produce(broker, 7)
    files.clock.step_wall(down_ms)
    async with files.broker() as broker:
        files.clock.step_wall(HOUR_MS)
        await files.engine.housekeep()
        assert start_of(broker) == 1
    async with files.broker() as broker:
        assert await produce(broker, 7) == first._replace(duplicate=True)


async def test_retention_waits_until_it_is_saved_who_wrote_what_it_removes(tmp_path):
    files = Files(tmp_path)
    async with files.broker() as broker:
        await broker.create_topic("a", 1, BY_SIZE)
        first = await produce(broker, 7)
        for producer_id in range(8, 11):
            await produce(broker, producer_id)
        await files.engine.housekeep()
        assert start_of(broker) == 0, "nobody has had the time to save anything"
        await files.clock.advance(1_000)
        await files.engine.housekeep()
        assert start_of(broker) > 0
    async with files.broker() as broker:
        assert await produce(broker, 7) == first._replace(duplicate=True)


async def test_a_producer_is_known_whose_batch_is_trimmed_in_part_or_whole(tmp_path):
    """After a start it was not: a batch in doubt was stored a second time."""
    files = Files(tmp_path)
    for number, offset in enumerate([1, 2, 3, 4]):
        topic, batch = f"t{number}", of_three(7)
        async with files.broker() as broker:
            await broker.create_topic(topic, 1, TopicSettings())
            stored = await broker.produce(topic, "", 0, batch)
            await broker.produce(topic, "", 0, of_three(8))
            assert await broker.trim_topic(topic, "", 0, offset) == offset
        async with files.broker() as broker:
            again = await broker.produce(topic, "", 0, batch)
            assert again == stored._replace(duplicate=True), offset


async def test_a_batch_that_is_trimmed_in_part_tells_of_its_producer_where_no_table_is_saved(
    tmp_path,
):
    files = Files(tmp_path)
    async with files.broker() as broker:
        await broker.create_topic("a", 1, TopicSettings())
        stored = await broker.produce("a", "", 0, of_three(7))
        files.disk.fail("write", errno.ENOSPC)
        assert await broker.trim_topic("a", "", 0, 2) == 2, "no room is no reason not to trim"
    async with files.broker() as broker:
        assert await broker.produce("a", "", 0, of_three(7)) == stored._replace(duplicate=True)


async def test_retention_does_not_wait_where_there_is_no_room_to_save_it(tmp_path):
    files = Files(tmp_path)
    async with files.broker() as broker:
        await broker.create_topic("a", 1, BY_SIZE)
        for producer_id in range(7, 11):
            await produce(broker, producer_id)
        files.disk.fail("write", errno.ENOSPC)
        await files.clock.advance(1_000)
        await files.engine.housekeep()
        assert start_of(broker) > 0


async def test_nothing_is_removed_before_it_is_known_what_is_needed(tmp_path):
    files = Files(tmp_path)
    async with files.broker() as broker:
        await broker.create_topic("a", 1, BY_TIME)
        await produce(broker, 7)
        await files.clock.advance(1_000)
        files.clock.step_wall(30 * HOUR_MS)
        needed_from = files.engine._needed_from
        files.engine.keep_needed(None)
        await files.engine.housekeep()
        assert start_of(broker) == 0
        files.engine.keep_needed(needed_from)
        await files.engine.housekeep()
        assert start_of(broker) == 1
