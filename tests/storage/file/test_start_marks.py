"""A log start that finds no room on a full disk is in the name of a file that goes (C09)."""

import asyncio
import errno
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import NamedTuple

import pytest

from logbroker.config import Durability, LogConfig
from logbroker.errors import OffsetOutOfRangeError
from logbroker.storage.engine import Bounds
from logbroker.storage.file.partition_log import FilePartitionLog
from logbroker.testing.engine_harness import PARTITION, batch_of, error_of, values_from
from logbroker.testing.faulty_disk import FaultyDisk


@pytest.fixture
def disk(place):
    return FaultyDisk(place.data_dir)


class _Filled(NamedTuple):
    """A log with segments to remove on a full disk."""

    log: FilePartitionLog
    disk: FaultyDisk

    async def removed(self) -> int:
        """Lets retention remove them, and returns where the log begins then."""
        self.disk.is_full = True
        await self.log.housekeep()
        start = self.log.bounds().log_start_offset
        assert start > 0
        return start


@asynccontextmanager
async def _filled(place, disk):
    async with place.log(disk, segment_bytes=4_096, retention_bytes=4_096) as log:
        for number in range(20):
            await log.append(batch_of(f"{number}" * 300))
        yield _Filled(log, disk)


async def _check_begins_at(place, start: int) -> None:
    async with place.log() as log:
        assert log.bounds() == Bounds(start, 20, 20)
        assert log.damaged == ()
        assert len(await values_from(log, start)) == 20 - start


def _marks(place) -> list[str]:
    return sorted(path.name for path in place.data_dir.rglob("*.start"))


@pytest.mark.parametrize("is_full_meanwhile", [False, True])
def test_after_retention_on_a_full_disk_a_kill_takes_the_log_start_nowhere(
    place, run, disk, monkeypatch, is_full_meanwhile
):
    """What had expired was found missing by the next start, and reported as lost."""

    async def test():
        async with _filled(place, disk) as filled:
            unlink = disk.unlink

            def making_room(path):
                unlink(path)
                disk.is_full = is_full_meanwhile

            monkeypatch.setattr(disk, "unlink", making_room)
            start = await filled.removed()
            disk.is_full = False
            if is_full_meanwhile:
                await filled.log.housekeep()
            assert not _marks(place)
            disk.kill()
        await _check_begins_at(place, start)

    run(test)


@pytest.mark.parametrize("is_power_lost", [False, True])
def test_a_log_whose_start_finds_no_room_begins_there_after_a_kill(place, run, disk, is_power_lost):
    """The disk stays full, whatever retention removes; so the checkpoint says an older start."""

    async def test():
        async with _filled(place, disk) as filled:
            start = await filled.removed()
            await filled.log.housekeep()
            assert _marks(place) == [f"{start:020}.start"]
            assert not any(path.stat().st_size for path in place.data_dir.rglob("*.start"))
            disk.lose_power() if is_power_lost else disk.kill()
        await _check_begins_at(place, start)
        assert not _marks(place), "a clean stop notes it"
        await _check_begins_at(place, start)

    run(test)


def test_a_start_on_a_disk_that_is_still_full_keeps_the_mark_until_there_is_room(place, run, disk):
    async def test():
        async with _filled(place, disk) as filled:
            start = await filled.removed()
            disk.kill()
        for is_full in (True, True, False):
            later = FaultyDisk(place.data_dir)
            async with place.log(later) as log:
                later.is_full = is_full
                await log.housekeep()
                assert log.bounds().log_start_offset == start
                assert bool(_marks(place)) == is_full
                later.kill()
        await _check_begins_at(place, start)

    run(test)


def test_each_pass_of_retention_on_a_full_disk_leaves_a_mark_and_the_last_one_counts(
    place, run, disk
):
    async def test():
        async with _filled(place, disk) as filled:
            first = await filled.removed()
            filled.log.config = replace(filled.log.config, retention_bytes=1)
            start = await filled.removed()
            assert first < start < 20
            assert _marks(place) == [f"{at:020}.start" for at in (first, start)]
            disk.lose_power()
        await _check_begins_at(place, start)
        assert not _marks(place)

    run(test)


@pytest.mark.parametrize("call", ["rename", "sync_directory", "truncate"])
def test_a_mark_that_cannot_be_made_keeps_retention_from_nothing(place, run, disk, call):
    async def test():
        async with _filled(place, disk) as filled:
            disk.fail(call, errno.EIO)
            start = await filled.removed()
            assert not any(path.stat().st_size for path in place.files(".start"))
            assert all(int(path.stem) >= start for path in place.files())
            disk.is_full = False
            await filled.log.housekeep()
            assert not _marks(place)
            disk.kill()
        await _check_begins_at(place, start)

    run(test)


def test_where_all_has_expired_on_a_full_disk_all_but_the_last_segment_goes(place, run, disk):
    """None went: the last one says which offset is the next, until a checkpoint does."""

    async def test():
        async with place.log(disk, segment_bytes=4_096, retention_ms=1_000) as log:
            for number in range(20):
                await log.append(batch_of(f"{number}" * 300))
            [*_, last] = place.files()
            place.clock.step_wall(2_000)
            disk.is_full = True
            await log.housekeep()
            assert place.files() == [last]
            assert log.bounds() == Bounds(int(last.stem), 20, 20)
            disk.kill()
        await _check_begins_at(place, int(last.stem))

    run(test)


def test_a_mark_whose_maker_died_before_it_was_empty_is_emptied_by_the_next_start(
    place, run, disk, monkeypatch
):
    """It may be all that retention could remove: else the disk stays full."""

    async def test():
        async with _filled(place, disk) as filled:
            monkeypatch.setattr(disk, "empty", lambda _: disk.kill())
            disk.is_full = True
            await filled.log.housekeep()
        [mark] = place.files(".start")
        assert mark.stat().st_size
        later = FaultyDisk(place.data_dir)
        later.is_full = True
        async with place.log(later) as log:
            assert not mark.stat().st_size
            assert log.bounds() == Bounds(int(mark.stem), 20, 20)
            later.kill()

    run(test)


def test_whoever_reads_what_becomes_a_mark_is_told_that_it_is_gone(place, run, disk, monkeypatch):
    """It opened the file, whose name was another by then, and said that the disk had failed."""

    async def test():
        loop, slot_count = asyncio.get_running_loop(), 0
        async with _filled(place, disk) as filled:
            log, empty = filled.log, disk.empty
            await values_from(log, 0)
            monkeypatch.setattr(disk, "read_cached", lambda *_: False)
            slots = log._threads.read_slot
            while not slots.locked():
                slot_count += await slots.acquire()
            reading = [asyncio.ensure_future(error_of(log.read(at, 1))) for at in range(10)]
            await asyncio.sleep(0)
            while log._files.close_one():
                pass

            async def read():
                for _ in range(slot_count):
                    slots.release()
                await asyncio.wait(reading)

            def read_first(mark):
                empty(mark)
                asyncio.run_coroutine_threadsafe(read(), loop).result(60)

            monkeypatch.setattr(disk, "empty", read_first)
            assert await filled.removed() >= len(reading)
            assert {type(each.result()) for each in reading} == {OffsetOutOfRangeError}

    run(test)


def test_what_becomes_a_mark_while_it_is_flushed_fails_nobody(place, run, disk, monkeypatch):
    async def test():
        loop = asyncio.get_running_loop()
        settings = {"durability": Durability.WRITTEN, "flush_interval_ms": 100}
        async with place.log(disk, segment_bytes=4_096, retention_bytes=1, **settings) as log:
            for number in range(20):
                await log.append(batch_of(f"{number}" * 300))
                while log._files.close_one():  # what is sealed then is open no more
                    pass
            empty = disk.empty

            def flushed_first(mark):
                empty(mark)

                async def flushed():
                    await log._flusher.want()

                asyncio.run_coroutine_threadsafe(flushed(), loop).result(60)

            monkeypatch.setattr(disk, "empty", flushed_first)
            disk.is_full = True
            await log.housekeep()
            assert place.files(".start")
            disk.is_full = False
            assert log.stats().failure == ""
            await log.append(batch_of("x"))

    run(test)


def test_a_partition_of_which_nothing_but_a_mark_is_left_is_damaged_and_not_begun_anew(
    place, run, disk
):
    async def test():
        async with _filled(place, disk) as filled:
            await filled.removed()
            disk.kill()
        for path in place.directory.iterdir():
            if path.suffix != ".start":
                path.unlink()
        async with place.engine() as engine:
            error = await error_of(engine.open(PARTITION, LogConfig()))
            assert error.reason == "TOPIC_DAMAGED"
        assert len(_marks(place)) == 1

    run(test)
