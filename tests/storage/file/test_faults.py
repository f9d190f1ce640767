"""Full disks, failing disks, and disks that forget (C09)."""

import asyncio
import errno

import pytest

from logbroker.config import Durability, LogConfig
from logbroker.errors import ExhaustedError, UnavailableError
from logbroker.storage.engine import Bounds
from logbroker.testing.engine_harness import (
    PARTITION,
    appended,
    batch_of,
    error_of,
    values_from,
)
from logbroker.testing.faulty_disk import FaultyDisk


@pytest.fixture
def disk(place):
    return FaultyDisk(place.data_dir)


@pytest.mark.parametrize("torn_bytes", [0, 1, 40, 90])
def test_on_a_full_disk_nothing_is_half_visible_and_writing_resumes_by_itself(
    place, run, disk, torn_bytes
):
    async def test():
        async with place.log(disk) as log:
            await log.append(batch_of("a"))
            disk.fail("write", errno.ENOSPC, torn_bytes=torn_bytes)
            error = await error_of(appended(log, batch_of("b" * 100)))
            assert isinstance(error, ExhaustedError)
            assert error.reason == "DISK_FULL"
            assert log.bounds() == Bounds(0, 1, 1)
            assert await values_from(log, 0) == ["a"]
            assert (await log.append(batch_of("c"))).header.base_offset == 1
            assert await values_from(log, 0) == ["a", "c"]
            disk.kill()
        async with place.log() as log:
            assert await values_from(log, 0) == ["a", "c"]
            assert log.stats().torn_bytes == 0

    run(test)


@pytest.mark.parametrize("code", [errno.EIO, errno.EROFS])
def test_a_failed_write_is_undone_and_the_next_may_succeed(place, run, disk, code):
    async def test():
        async with place.log(disk) as log:
            await log.append(batch_of("a"))
            disk.fail("write", code, torn_bytes=30)
            error = await error_of(appended(log, batch_of("b")))
            assert isinstance(error, UnavailableError)
            assert error.reason == "STORAGE_FAILED"
            await log.append(batch_of("c"))
            assert await values_from(log, 0) == ["a", "c"]

    run(test)


def test_a_write_that_could_not_be_undone_is_undone_before_the_next(place, run, disk):
    async def test():
        async with place.log(disk) as log:
            await log.append(batch_of("a"))
            disk.fail("write", errno.EIO, torn_bytes=150)
            disk.fail("truncate", errno.EIO)
            disk.fail("truncate", errno.EIO)
            for _ in range(2):
                assert await error_of(appended(log, batch_of("b" * 200))) is not None
            await log.append(batch_of("c"))
            disk.kill()
        async with place.log() as log:
            assert await values_from(log, 0) == ["a", "c"]
            assert log.stats().torn_bytes == 0

    run(test)


def test_a_full_disk_serves_reads_and_starts_and_lists_what_it_has(place, run, disk):
    async def test():
        async with place.log(disk, segment_bytes=4_096) as log:
            for number in range(20):
                await log.append(batch_of(f"{number}" * 300))
            disk.is_full = True
            assert isinstance(await error_of(appended(log, batch_of("x"))), ExhaustedError)
            assert len(await values_from(log, 0)) == 20
            disk.kill()
        second = FaultyDisk(place.data_dir)
        second.is_full = True
        async with place.engine(second) as engine:
            assert engine.partitions() == [PARTITION]
            assert engine.stats().disk_free_bytes == 0
            log = await engine.open(PARTITION, LogConfig(segment_bytes=4_096))
            assert len(await values_from(log, 0)) == 20
            assert isinstance(await error_of(appended(log, batch_of("x"))), ExhaustedError)
            second.is_full = False
            assert (await log.append(batch_of("x"))).header.base_offset == 20

    run(test)


def test_retention_makes_room_on_a_full_disk(place, run, disk):
    async def test():
        async with place.log(disk, segment_bytes=4_096, retention_bytes=4_096) as log:
            for number in range(20):
                await log.append(batch_of(f"{number}" * 300))
            disk.is_full = True
            await log.housekeep()
            start = log.bounds().log_start_offset
            assert start > 0
            assert (await values_from(log, start))[-1] == "19" * 300
        async with place.log() as log:
            assert log.bounds().next_offset == 20

    run(test)


def test_an_engine_knows_which_partitions_have_failed_until_they_are_deleted(place, run, disk):
    async def test():
        async with place.engine(disk) as engine:
            config = LogConfig(durability=Durability.SYNCED)
            log = await engine.open(PARTITION, config)
            await engine.open(PARTITION._replace(partition=1), config)
            assert not list(engine.failures)
            changed = engine.failures.changed
            disk.fail("sync", errno.EIO)
            assert await error_of(appended(log, batch_of("a"))) is not None
            assert list(engine.failures) == [PARTITION]
            assert changed.is_set()
            await engine.delete(PARTITION)
            assert not list(engine.failures)

    run(test)


def test_a_failed_fsync_is_final_until_the_next_start(place, run, disk):
    async def test():
        async with place.log(disk) as log:
            await log.append(batch_of("a"))
            disk.fail("sync", errno.EIO)
            appends = [log.append(batch_of(value)) for value in "bc"]
            for append in appends:
                error = await error_of(append)
                assert isinstance(error, UnavailableError)
                assert error.reason == "STORAGE_FAILED"
            synced = disk.sync_count
            error = await error_of(appended(log, batch_of("d")))
            assert isinstance(error, UnavailableError)
            assert log.stats().failure == "STORAGE_FAILED"
            assert log.bounds().high_watermark == 1
            assert await values_from(log, 0) == ["a"]
            await asyncio.sleep(0)
        assert disk.sync_count == synced
        assert not (place.data_dir / "clean").exists()
        async with place.log() as log:
            assert log.stats().failure == ""
            assert log.bounds() == Bounds(0, 3, 3)
            await log.append(batch_of("d"))
            assert await values_from(log, 0) == ["a", "b", "c", "d"]

    run(test)


def test_one_failed_partition_holds_up_no_other(place, run, disk):
    async def test():
        async with place.engine(disk) as engine:
            first = await engine.open(PARTITION, LogConfig())
            second = await engine.open(PARTITION._replace(partition=1), LogConfig())
            await second.append(batch_of("x"))
            disk.fail("sync", errno.EIO)
            assert await error_of(first.append(batch_of("a"))) is not None
            await second.append(batch_of("y"))
            assert second.bounds() == Bounds(0, 2, 2)

    run(test)


def test_a_background_flush_that_fails_stops_writes(place, run, disk):
    async def test():
        settings = {"durability": Durability.WRITTEN, "flush_interval_ms": 100}
        async with place.log(disk, **settings) as log:
            await log.append(batch_of("a"))
            disk.fail("sync", errno.EIO)
            await place.clock.advance(100)
            await place.flushed(log)
            assert log.stats().failure == "STORAGE_FAILED"
            assert await error_of(appended(log, batch_of("b"))) is not None
            assert await values_from(log, 0) == ["a"]

    run(test)


def test_what_was_answered_survives_a_loss_of_power(place, run, disk):
    async def test():
        async with place.log(disk, segment_bytes=4_096) as log:
            for number in range(12):
                await log.append(batch_of(f"{number:02}" * 300))
            pending = log.append(batch_of("not answered"))
            disk.lose_power()
            assert await error_of(pending) is not None
        async with place.log() as log:
            assert await values_from(log, 0) == [f"{number:02}" * 300 for number in range(12)]

    run(test)


def test_written_records_survive_a_loss_of_power_after_their_flush(place, run, disk):
    async def test():
        settings = {"durability": Durability.WRITTEN, "flush_interval_ms": 100}
        async with place.log(disk, **settings) as log:
            await log.append(batch_of("a"))
            await place.clock.advance(100)
            await place.flushed(log)
            await log.append(batch_of("b"))
            disk.lose_power()
        async with place.log() as log:
            assert await values_from(log, 0) == ["a"]

    run(test)


@pytest.mark.parametrize("after", [0, 1])
def test_a_partition_whose_directories_could_not_be_synced_at_first_survives_a_loss_of_power(
    place, run, disk, after
):
    """The second try found them there, and nobody synced them: all records went with them."""

    async def test():
        async with place.engine(disk) as engine:
            disk.fail("sync_directory", errno.EIO, after=after)
            with pytest.raises(UnavailableError):
                await engine.open(PARTITION, LogConfig())
            log = await engine.open(PARTITION, LogConfig())
            await log.append(batch_of("kept"))
            disk.lose_power()
        async with place.log() as log:
            assert await values_from(log, 0) == ["kept"]

    run(test)


def test_a_trim_survives_a_loss_of_power(place, run, disk):
    async def test():
        async with place.log(disk) as log:
            for value in "abc":
                await log.append(batch_of(value))
            await log.trim(2)
            disk.lose_power()
        async with place.log() as log:
            assert log.bounds() == Bounds(2, 3, 3)

    run(test)


def test_a_deleted_partition_does_not_come_back_after_a_loss_of_power(place, run, disk):
    async def test():
        async with place.engine(disk) as engine:
            log = await engine.open(PARTITION, LogConfig())
            await log.append(batch_of("a"))
            await engine.delete(PARTITION)
            disk.lose_power()
        async with place.engine() as engine:
            assert engine.partitions() == []

    run(test)


@pytest.mark.parametrize("call", ["rename", "sync_directory", "remove_empty", "remove_tree"])
@pytest.mark.parametrize("after", range(3))
def test_a_deletion_that_failed_is_finished_by_the_next_try(place, run, disk, call, after):
    """The second try found the directory gone, and nobody synced that: it came back."""

    async def test():
        async with place.engine(disk) as engine:
            await (await engine.open(PARTITION, LogConfig())).append(batch_of("a"))
            disk.fail(call, errno.EIO, after=after)
            for _ in range(2):
                if await error_of(engine.delete(PARTITION)) is None:
                    break
            else:
                pytest.fail("the second try failed too")
            disk.lose_power()
        async with place.engine() as engine:
            assert engine.partitions() == []
            assert not any(place.directory.parent.rglob("*"))
            assert not list((place.data_dir / "trash").iterdir())

    run(test)


@pytest.mark.parametrize("seed", range(12))
def test_no_answered_record_is_lost_wherever_the_power_goes(place, run, seed):
    """A run of appends, rolls and trims, cut at a different call each time."""

    async def test():
        disk = FaultyDisk(place.data_dir)
        answered, trimmed = 0, 0
        async with place.engine(disk) as engine:
            log = await engine.open(PARTITION, LogConfig(segment_bytes=4_096))
            for name in ("sync", "write", "rename", "sync_directory"):
                disk.fail(name, errno.EIO, after=3 + seed * 5 % 23)
            for number in range(30):
                if await error_of(appended(log, batch_of(f"{number:02}" * 300))) is None:
                    answered = log.bounds().high_watermark
                if number % 10 == 9 and await error_of(log.trim(answered - 1)) is None:
                    trimmed = answered - 1
            disk.lose_power()
        async with place.log() as log:
            start, mark, next_offset = log.bounds()
            assert start >= trimmed
            assert mark == next_offset >= answered
            found = await values_from(log, start)
            assert len(found) >= answered - start

    run(test)
