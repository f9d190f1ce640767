"""A pass of the scrub: at what rate, beside what else, and when the next one."""

import asyncio
import ctypes
import errno
import mmap
import os
from threading import Event

import pytest
from structlog.testing import capture_logs

from logbroker.config import StorageConfig
from logbroker.storage.file.disk import Disk, failure
from logbroker.storage.file.scrub import Scrub
from logbroker.storage.file.segment_check import STEP_BYTES
from logbroker.testing.clock import ManualClock
from logbroker.testing.engine_harness import PARTITION, batch_of
from tests.storage.file.scrubbing import (
    INTERVAL_MS,
    SETTINGS,
    VALUES,
    WatchedDisk,
    becomes,
    events,
    flip,
    passed,
    scrubbing,
    state_of,
)


class HeldDisk(Disk):
    """The first reading aside waits in its thread for leave."""

    def __init__(self):
        self.begun, self.may_go_on = Event(), Event()

    def read_aside(self, path, size, position):
        self.begun.set()
        assert self.may_go_on.wait(60)
        return super().read_aside(path, size, position)


class FailingDisk(Disk):
    """Reading aside fails, so many times, for one file."""

    def __init__(self, path, code, times):
        self._path, self._code, self.times = path, code, times

    def read_aside(self, path, size, position):
        if path == self._path and self.times:
            self.times -= 1
            raise failure(OSError(self._code, "as ordered"), "read", path)
        return super().read_aside(path, size, position)


def test_a_clean_log_costs_its_reading_and_nothing_else(place, run):
    async def test():
        await place.fill(VALUES, **SETTINGS)
        before = state_of(place.directory)
        disk = WatchedDisk()
        with capture_logs() as logs:
            async with scrubbing(place, disk) as (engine, log):
                await passed(place, engine)
                stats = engine.stats()
                assert stats.scrubbed_bytes == sum(size for _, _, size in disk.reads)
                sealed = place.files()[:-1]
                assert stats.scrubbed_bytes == sum(path.stat().st_size for path in sealed)
                assert stats.open_file_count == 0
                assert all(segment.contents is None for segment in list(log._segments)[:-1])
                assert state_of(place.directory) == before
        assert [line["event"] for line in logs] == ["scrub finished"]
        # and none of it is of the segment that is written to
        assert {path for _, path, _ in disk.reads} == set(sealed)

    run(test)


def test_no_more_is_read_in_a_time_than_the_rate_allows(place, run):
    async def test():
        values = ["v" * 3_000] * 400
        await place.fill(values, segment_bytes=200_000)
        disk, rate = WatchedDisk(place.clock), 100_000
        async with scrubbing(place, disk, rate, check_interval_ms=1_000) as (engine, _):
            while not engine.stats().scrub_finished_time_ms:
                await place.clock.advance(50)
                await asyncio.to_thread(int)
            taken_ms = place.clock.monotonic_ms() - 1_000
        total = 0
        for at_ms, _, size in disk.reads:
            assert total <= rate * (at_ms - 1_000) / 1_000 + STEP_BYTES
            total += size
        assert total > 900_000
        assert taken_ms >= (total - STEP_BYTES) / rate * 1_000

    run(test)


@pytest.mark.parametrize("end", ["deleted", "trimmed", "closed"])
def test_segments_may_go_while_they_are_read(place, run, end):
    async def test():
        await place.fill(VALUES, **SETTINGS)
        disk = HeldDisk()
        with capture_logs() as logs:
            async with scrubbing(place, disk) as (engine, log):
                await place.clock.advance(6_000)
                await asyncio.to_thread(disk.begun.wait, 60)
                match end:
                    case "deleted":
                        await engine.delete(PARTITION)
                    case "trimmed":
                        await log.trim(30)
                    case "closed":
                        closing = asyncio.create_task(engine.close())
                        await asyncio.sleep(0)
                disk.may_go_on.set()
                if end == "closed":
                    await closing
                    assert engine.stats().scrub_finished_time_ms == 0
                else:
                    await becomes(place, lambda: engine.stats().scrub_finished_time_ms)
                    sealed = place.files()[:-1]
                    assert engine.stats().scrubbed_segment_count == len(sealed)
                assert engine.stats().scrub_failure_count == 0
                assert engine.stats().damaged_range_count == 0
        bad = [line for line in logs if line["log_level"] in {"warning", "error"}]
        assert bad == []

    run(test)


def test_a_segment_that_cannot_be_read_is_told_and_counted_and_the_others_are_checked(place, run):
    async def test():
        await place.fill(VALUES, **SETTINGS)
        disk = FailingDisk(place.files()[1], errno.EIO, 1)
        with capture_logs() as logs:
            async with scrubbing(place, disk) as (engine, _):
                await passed(place, engine)
                stats = engine.stats()
                assert stats.scrub_failure_count == 1
                assert stats.scrubbed_segment_count == len(place.files()) - 2
        [line] = events(logs, "segment not readable")
        assert (line["path"], line["log_level"]) == (str(place.files()[1]), "error")

    run(test)


def test_where_the_process_has_too_many_files_open_it_waits_and_tries_again(place, run):
    async def test():
        await place.fill(VALUES, **SETTINGS)
        async with scrubbing(place, FailingDisk(place.files()[1], errno.EMFILE, 3)) as (engine, _):
            await passed(place, engine)
            assert engine.stats().scrub_failure_count == 0
            assert engine.stats().scrubbed_segment_count == len(place.files()) - 1

    run(test)


def test_a_pass_follows_the_last_one_after_the_interval_over_restarts_too(place, run):
    async def test():
        await place.fill(VALUES, **SETTINGS)
        async with scrubbing(place) as (engine, _):
            await becomes(place, lambda: engine.stats().scrub_finished_time_ms)
            finished = engine.stats().scrub_finished_time_ms
            count = engine.stats().scrubbed_segment_count
            await place.clock.advance(3_000_000)
            assert engine.stats().scrubbed_segment_count == count
        async with scrubbing(place) as (engine, _):
            assert engine.stats().scrub_finished_time_ms == finished
            await place.clock.advance(500_000)
            assert engine.stats().scrubbed_segment_count == 0
            await place.clock.advance(100_000)
            await becomes(place, lambda: engine.stats().scrub_finished_time_ms > finished)
            assert engine.stats().scrubbed_segment_count == count

    run(test)


def test_a_pass_that_a_stop_interrupts_goes_on_where_it_was(place, run):
    async def test():
        await place.fill(VALUES, **SETTINGS)
        sealed, seen = place.files()[:-1], []
        for _ in range(20):
            disk = WatchedDisk()
            async with scrubbing(place, disk, 4_000) as (engine, _):
                await becomes(place, lambda stats=engine.stats: stats().scrubbed_segment_count)
                seen += [path for _, path, _ in disk.reads]
                if engine.stats().scrub_finished_time_ms:
                    break
        assert list(dict.fromkeys(seen)) == sealed
        assert len(seen) <= 2 * len(sealed)

    run(test)


def test_a_rate_of_0_turns_it_off(place, run):
    async def test():
        await place.fill(VALUES, **SETTINGS)
        flip(place.files()[0], 100)
        async with scrubbing(place, scrub_bytes_per_second=0) as (engine, _):
            await place.clock.advance(10 * INTERVAL_MS)
            assert engine.stats().scrubbed_bytes == engine.stats().damaged_range_count == 0
        assert not (place.data_dir / "scrub").exists()

    run(test)


def test_a_new_segment_is_left_alone_until_all_of_it_is_on_the_disk(place, run):
    async def test():
        async with scrubbing(place, disk := WatchedDisk()) as (engine, log):
            for value in VALUES[:12]:
                written = log.append(batch_of(value))
            sealed = [segment for segment in log._segments if segment is not log._segments.active]
            assert sealed
            assert log.scrub.next_sealed(0) is None
            await written
            assert log.scrub.next_sealed(0) is sealed[0]
            await passed(place, engine)
            assert {path for _, path, _ in disk.reads} == {one.file.path for one in sealed}

    run(test)


class Unopened:
    log = None


async def test_a_pass_over_many_partitions_without_a_segment_lets_others_run(tmp_path):
    clock, disk = ManualClock(), Disk()
    places = {("many", number): Unopened() for number in range(20_000)}
    config = StorageConfig(data_dir=tmp_path, check_interval_ms=1_000)
    scrub = Scrub(config, clock, disk, None, places)
    running = asyncio.create_task(scrub.run())
    await clock.advance(1_000)
    turns = 0
    while not scrub.finished_time_ms:
        await asyncio.sleep(0)
        turns += 1
    assert turns >= 20
    running.cancel()


def test_the_page_cache_is_left_as_it_was(tmp_path):
    disk, path, size = Disk(), tmp_path / "file", 1 << 20
    data = os.urandom(size)
    path.write_bytes(data)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        if cached_page_count(path):
            pytest.skip("this file system is a page cache")
        assert disk.read_aside(path, 100_000, 50_001) == data[50_001:150_001]
        assert cached_page_count(path) == 0
        os.pread(descriptor, size, 0)
        assert disk.read_aside(path, size, size - 100) == data[-100:]
        disk.read_aside(path, 100_000, 50_001)
        assert cached_page_count(path) == size // mmap.PAGESIZE
    finally:
        os.close(descriptor)


def cached_page_count(path):
    """Returns how many pages of a file are in memory, and brings none there: see mincore(2)."""
    size = path.stat().st_size
    pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
    with path.open("rb") as file, mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY) as mapped:
        first = ctypes.c_char.from_buffer(mapped)
        address = ctypes.c_void_p(ctypes.addressof(first))
        assert ctypes.CDLL(None).mincore(address, ctypes.c_size_t(size), pages) == 0
        del first
    return sum(page & 1 for page in pages)
