"""The journal: what is appended is replayed, in whole batches, from the last snapshot on."""

import errno
import os

import pytest

from logbroker.config import LogConfig, StorageConfig
from logbroker.errors import DataLossError, ExhaustedError, UnavailableError
from logbroker.record.partition_id import PartitionId
from logbroker.storage.file.disk import failure
from logbroker.storage.file.engine import FileEngine
from logbroker.storage.file.paths import LOG
from logbroker.storage.journal import SNAPSHOT_EVERY, Journal
from logbroker.storage.memory import MemoryEngine
from logbroker.testing.clock import ManualClock
from logbroker.testing.faulty_disk import FaultyDisk

NAME = "__test"


async def opened(engine=None):
    engine = engine or MemoryEngine(ManualClock())
    return await Journal.open(engine, NAME, ManualClock()), engine


async def log_of(engine):
    return await engine.open(PartitionId(NAME, NAME, 0), LogConfig())


async def replayed(engine):
    journal, _ = await opened(engine.reopened())
    return await journal.replay()


async def test_an_empty_journal_replays_nothing():
    journal, _ = await opened()
    assert await journal.replay() == []
    assert not journal.wants_snapshot


async def test_events_are_replayed_in_the_order_they_were_appended():
    journal, engine = await opened()
    await journal.append([b"1", b"", b"3"])
    await journal.append([b"4"])
    assert await replayed(engine) == [b"1", b"", b"3", b"4"]


async def test_events_appended_together_are_one_batch():
    journal, engine = await opened()
    await journal.append([b"1", b"2"])
    log = await log_of(engine)
    with pytest.raises(DataLossError):
        await DamagedLog(log, damaged=(0, 1)).read(0, 1)
    assert (await log.read(1, 1)).next_offset == 2, "no read gives one of them alone"


async def test_a_snapshot_stands_for_all_before_it_which_is_trimmed():
    journal, engine = await opened()
    await journal.append([b"1", b"2"])
    await journal.append([b"3"])
    await journal.snapshot([b"1+2+3"])
    await journal.append([b"4"])
    assert await replayed(engine) == [b"1+2+3", b"4"]
    assert (await log_of(engine)).bounds().log_start_offset == 3


async def test_a_snapshot_of_nothing_empties_the_journal():
    journal, engine = await opened()
    await journal.append([b"1"])
    await journal.snapshot([])
    assert await replayed(engine) == []


async def test_a_stop_between_a_snapshot_and_its_trim_costs_nothing():
    journal, engine = await opened()
    await journal.append([b"1"])
    log = await log_of(engine)

    async def stopped(offset):
        raise ExhaustedError("DISK_FULL", "as if stopped here")

    log.trim = stopped
    with pytest.raises(ExhaustedError):
        await journal.snapshot([b"one"])
    await journal.append([b"2"])
    assert log.bounds().log_start_offset == 0
    assert await replayed(engine) == [b"one", b"2"]


class ForgetfulDisk(FaultyDisk):
    """A disk that can lose its power, and whose segments cannot be synced from some time on."""

    cannot_sync = False

    def sync(self, descriptor):
        if self.cannot_sync and os.readlink(f"/proc/self/fd/{descriptor}").endswith(LOG):
            raise failure(OSError(errno.EIO, "as ordered"), "fdatasync")
        super().sync(descriptor)


async def test_a_snapshot_that_the_disk_did_not_keep_has_trimmed_nothing(tmp_path):
    config, clock = StorageConfig(data_dir=tmp_path / "data"), ManualClock()
    disk = ForgetfulDisk(config.data_dir)
    config.data_dir.mkdir()
    engine = await FileEngine.start(config, clock, disk)
    journal, _ = await opened(engine)
    await journal.append([b"1", b"2"])
    disk.cannot_sync = True
    with pytest.raises(UnavailableError):
        await journal.snapshot([b"1+2"])
    disk.lose_power()
    await engine.close()
    engine = await FileEngine.start(config, clock)
    journal, _ = await opened(engine)
    assert await journal.replay() == [b"1", b"2"]
    await engine.close()


async def test_a_snapshot_is_wanted_after_many_events():
    journal, engine = await opened()
    await journal.append([b"x"] * SNAPSHOT_EVERY)
    assert not journal.wants_snapshot
    await journal.append([b"x"])
    assert journal.wants_snapshot
    again, _ = await opened(engine.reopened())
    await again.replay()
    assert again.wants_snapshot, "also after a restart"
    await journal.snapshot([b"x"])
    assert not journal.wants_snapshot


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_large_snapshot_is_written_again_only_after_as_many_events(is_restarted):
    journal, engine = await opened()
    await journal.snapshot([b"x"] * SNAPSHOT_EVERY)
    if is_restarted:
        journal, _ = await opened(engine.reopened())
        await journal.replay()
    await journal.append([b"x"] * 2 * SNAPSHOT_EVERY)
    assert not journal.wants_snapshot
    await journal.append([b"x"] * 3)
    assert journal.wants_snapshot


async def test_replay_can_be_repeated():
    journal, _ = await opened()
    await journal.append([b"x"] * SNAPSHOT_EVERY)
    for _ in range(3):
        assert len(await journal.replay()) == SNAPSHOT_EVERY
    assert not journal.wants_snapshot


class DamagedLog:
    """A log with a damaged range of offsets."""

    def __init__(self, log, damaged):
        self._log = log
        self._first, self._end = damaged

    def __getattr__(self, name):
        return getattr(self._log, name)

    async def read(self, offset, max_bytes):
        if self._first <= offset < self._end:
            details = {"offset": offset, "next_offset": self._end}
            raise DataLossError("DAMAGED_BATCH", "bad bytes", **details)
        return await self._log.read(offset, max_bytes if offset > self._first else 1)


@pytest.mark.parametrize(
    "damaged, left",
    [((0, 2), [b"3", b"4"]), ((2, 3), [b"1", b"2", b"4"]), ((3, 4), [b"1", b"2", b"3"])],
)
async def test_damage_is_told_and_passed_over(damaged, left):
    journal, engine = await opened()
    for events in ([b"1", b"2"], [b"3"], [b"4"]):
        await journal.append(events)
    journal = Journal(NAME, DamagedLog(await log_of(engine), damaged), ManualClock())
    assert await journal.replay() == left
    assert journal.damaged == [damaged]


async def test_a_refused_append_is_raised_at_once_and_counts_for_nothing():
    journal, engine = await opened()
    log = await log_of(engine)

    def full(batch, **_):
        raise ExhaustedError("DISK_FULL", "no room")

    log.append = full
    with pytest.raises(ExhaustedError):
        journal.append([b"x"] * 2 * SNAPSHOT_EVERY)
    assert not journal.wants_snapshot
    assert await replayed(engine) == []


async def test_two_journals_of_one_engine_do_not_mix():
    engine = MemoryEngine(ManualClock())
    one = await Journal.open(engine, "__one", ManualClock())
    two = await Journal.open(engine, "__two", ManualClock())
    await one.append([b"1"])
    await two.append([b"2"])
    assert (await one.replay(), await two.replay()) == ([b"1"], [b"2"])
