"""What retention, or an operator, may take of records whose dead letters are not written yet."""

from contextlib import asynccontextmanager

import pytest
import structlog

from logbroker.broker.broker import open_broker
from logbroker.broker.groups import Groups
from logbroker.broker.settle import Settlement
from logbroker.config import LimitsConfig, LogConfig, StorageConfig
from logbroker.errors import NotFoundError, UnavailableError
from logbroker.group.record_state import Cause
from logbroker.storage.file.engine import FileEngine
from logbroker.testing.clock import ManualClock
from logbroker.topic.topic import TopicSettings

from .brokers import batch_of, values_of
from .grouped import delivered, member_on, settle

DEAD = "a.g.dlq"
LEAST_SEGMENT = 4 << 10
MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS
BY_TIME = TopicSettings(retention_ms=DAY_MS)
LARGE = b"v" * (LEAST_SEGMENT - 500)
"""A segment for itself."""


class Files:
    """Brokers on one data directory, whose dead-letter topic may be broken."""

    def __init__(self, data_dir):
        self.clock = ManualClock()
        self.engine = None
        self._data_dir = data_dir

    @asynccontextmanager
    async def broker(self, *, is_dead_broken=False):
        config = StorageConfig(data_dir=self._data_dir, scrub_bytes_per_second=0)
        engine = self.engine = await FileEngine.start(config, self.clock)
        engine.open = self._opening(engine.open)
        self._is_broken = is_dead_broken
        try:
            async with open_broker(
                engine, self.clock, defaults=LogConfig(), limits=LimitsConfig()
            ) as broker:
                broker.clock = self.clock
                yield broker
        finally:
            await engine.close()

    def _opening(self, open_log):
        async def opened(partition, config):
            log = await open_log(partition, config)
            if partition.topic == DEAD:
                log.append = self._appending(type(log).append.__get__(log))
            return log

        return opened

    def _appending(self, append):
        def appended(batch, **fields):
            if self._is_broken:
                raise UnavailableError("STORAGE_FAILED", "the disk is gone")
            return append(batch, **fields)

        return appended

    def mend(self):
        """Lets dead letters be written from now on."""
        self._is_broken = False

    async def retain(self, after_ms=0):
        """Applies retention, some time from now."""
        self.clock.step_wall(after_ms)
        await self.engine.housekeep()


def start_of(broker):
    """Returns where the log of the source begins."""
    return broker.partition_statuses(broker.get_topic("a"))[0].log_start_offset


async def given_up(broker, settings, *values):
    """Gives up the first of these records while no dead letter can be written."""
    await broker.create_topic("a", 1, settings)
    for value in values:
        await broker.produce("a", "", 0, batch_of(value))
    async with member_on(broker, max_records=1) as member:
        token, first, end = await delivered(broker, member)
        [result] = await settle(broker, member, Cause.REJECT, token, first, end)
        assert result.error is None


async def written(broker):
    """Returns the dead letters once they are written, and known to be."""
    for _ in range(200):
        await broker.clock.advance(1_000)
        found = await values_of(broker, DEAD)
        if found and not broker._groups.letters.groups():
            return found
    return []


async def test_retention_keeps_what_a_dead_letter_is_to_be_copied_from(tmp_path):
    files = Files(tmp_path)
    async with files.broker(is_dead_broken=True) as broker:
        await given_up(broker, BY_TIME, b"0")
        await files.retain(after_ms=DAY_MS + 1)
        assert start_of(broker) == 0
        files.mend()
        assert await written(broker) == [b"0"]
        await files.retain()
        assert start_of(broker) == 1, "nothing needs it any more"


@pytest.mark.parametrize("is_restarted", [False, True], ids=["running", "restarted"])
async def test_what_is_needed_goes_when_it_is_twice_as_old_and_that_is_said(tmp_path, is_restarted):
    files = Files(tmp_path)
    async with files.broker(is_dead_broken=True) as broker:
        await given_up(broker, BY_TIME, b"0")
        if not is_restarted:
            await goes_when_twice_as_old(files, broker)
            return
    async with files.broker(is_dead_broken=True) as broker:
        await goes_when_twice_as_old(files, broker)


async def goes_when_twice_as_old(files, broker):
    await files.retain(after_ms=2 * DAY_MS - MINUTE_MS)
    assert start_of(broker) == 0
    await files.retain(after_ms=MINUTE_MS)
    assert start_of(broker) == 1
    with structlog.testing.capture_logs() as logs:
        await broker.clock.advance(120_000)
    told = next(one for one in logs if one["event"] == "dead letters lost to retention")
    assert (told["log_level"], told["ledger"].group) == ("error", "g")
    assert (told["offset"], told["end"]) == (0, 1)


async def test_what_is_needed_goes_by_size_when_there_is_twice_as_much(tmp_path):
    files = Files(tmp_path)
    limit = 4 * LEAST_SEGMENT
    settings = TopicSettings(retention_ms=0, retention_bytes=limit, segment_bytes=LEAST_SEGMENT)
    async with files.broker(is_dead_broken=True) as broker:
        await given_up(broker, settings, *[LARGE] * 8)
        await files.retain()
        assert start_of(broker) == 0
        for _ in range(4):
            await broker.produce("a", "", 0, batch_of(LARGE))
        await files.retain()
        assert start_of(broker) > 0


async def test_before_it_is_known_what_is_needed_nothing_goes(tmp_path):
    files = Files(tmp_path)
    async with files.broker(is_dead_broken=True) as broker:
        await given_up(broker, BY_TIME, b"0")
    opening = Groups.open
    files.clock.step_wall(DAY_MS + 1)

    async def open_late(engine, *args):
        await engine.housekeep()  # it takes a while, and this goes on
        return await opening(engine, *args)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Groups, "open", open_late)
        async with files.broker() as broker:
            assert await written(broker) == [b"0"]


async def test_an_unused_group_is_not_forgotten_before_its_dead_letters_are_written(tmp_path):
    files = Files(tmp_path)
    settings = TopicSettings(retention_ms=30 * DAY_MS)
    async with files.broker(is_dead_broken=True) as broker:
        await given_up(broker, settings, b"0")
        for _ in range(2):
            files.clock.step_wall(8 * DAY_MS)
            await broker.group_admin.keep_house()
        files.mend()
        assert await written(broker) == [b"0"]
        for _ in range(2):
            await broker.group_admin.keep_house()
            files.clock.step_wall(8 * DAY_MS)
        with pytest.raises(NotFoundError):
            broker.groups.get("g")


async def test_who_deletes_a_topic_waits_until_its_dead_letters_are_written(tmp_path):
    files = Files(tmp_path)
    async with files.broker() as broker:
        await broker.create_topic("a", 1, BY_TIME)
        await broker.produce("a", "", 0, batch_of(b"0"))
        async with member_on(broker) as member:
            token, first, end = await delivered(broker, member)
            answered = await broker._settle.settle("g", [rejected(token, first, end)])
            assert not broker._groups.letters.untried("g")[0].done()
            await broker.delete_topic("a", "")
            [result] = await answered.wait_results()
            assert result.error is None
        assert await values_of(broker, DEAD) == [b"0"]


async def test_what_cannot_be_written_goes_with_its_topic_and_that_is_said(tmp_path):
    files = Files(tmp_path)
    async with files.broker(is_dead_broken=True) as broker:
        await given_up(broker, BY_TIME, b"0")
        with structlog.testing.capture_logs() as logs:
            await broker.delete_topic("a", "")
        [told] = [one for one in logs if one["log_level"] == "error"]
        assert (told["group"], told["count"]) == ("g", 1)


def rejected(token, first, end):
    return Settlement(token, first, end, Cause.REJECT)


async def test_what_retention_took_before_it_was_given_up_has_expired_and_is_no_dead_letter(
    tmp_path,
):
    files = Files(tmp_path)
    async with files.broker() as broker:
        await broker.create_topic("a", 1, BY_TIME)
        await broker.produce("a", "", 0, batch_of(b"0"))
        async with member_on(broker) as member:
            token, first, end = await delivered(broker, member)
            await files.retain(after_ms=DAY_MS + MINUTE_MS)
            [result] = await settle(broker, member, Cause.REJECT, token, first, end)
            assert result.error.reason == "LEASE_LOST"
            await broker.produce("a", "", 0, batch_of(b"1"))
            token, first, end = await delivered(broker, member)
            assert (first, end) == (1, 2), "it goes on"
        [found] = await broker.groups.progress("g")
        counters = found.progress
        assert (counters.expired_unsettled, counters.dead_letters) == (1, 0)
