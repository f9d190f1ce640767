"""One partition's log: rolling, group commit, reads (C15)."""

import asyncio
from threading import Event, current_thread

from logbroker.config import Durability, LogConfig
from logbroker.errors import DataLossError
from logbroker.storage.engine import Bounds
from logbroker.storage.file.disk import Disk
from logbroker.storage.file.inspection import verify
from logbroker.testing.engine_harness import (
    EVERYTHING,
    PARTITION,
    batch_of,
    error_of,
    records_of,
    values_from,
)
from logbroker.testing.faulty_disk import FaultyDisk

LARGE = [f"{number:02}" * 300 for number in range(40)]


def test_a_segment_rolls_by_size(place, run):
    async def test():
        await place.fill(LARGE, segment_bytes=4_096)
        size = sum(path.stat().st_size for path in place.files())
        assert size // 4_096 <= len(place.files()) <= size // 4_096 + 8
        assert all(path.stat().st_size <= 4_096 for path in place.files())
        assert len(place.files(".index")) == len(place.files())

    run(test)


def test_a_batch_larger_than_a_segment_gets_one_of_its_own(place, run):
    async def test():
        await place.fill(["a", "b" * 10_000, "c"], segment_bytes=4_096)
        assert [int(path.stem) for path in place.files()] == [0, 1, 2]

    run(test)


def test_a_segment_rolls_by_age_without_traffic(place, run):
    async def test():
        async with place.log(segment_ms=10_000) as log:
            await log.append(batch_of("a"))
            await place.clock.advance(9_000)
            await log.append(batch_of("b"))
            await place.clock.advance(1_000)
            await log.housekeep()
            await log.append(batch_of("c"))
            assert [int(path.stem) for path in place.files()] == [0, 2]
            assert await values_from(log, 0) == ["a", "b", "c"]

    run(test)


class WatchedDisk(Disk):
    """Knows in which threads files were cut, and can hold up one fdatasync."""

    def __init__(self, held_sync=0):
        self.cutters = []
        self.is_syncing, self.goes_on = Event(), Event()
        self._held_sync = held_sync
        self.count = 0

    def truncate(self, descriptor, size):
        self.cutters.append(current_thread())
        super().truncate(descriptor, size)

    def sync(self, descriptor):
        self.count += 1
        if self.count == self._held_sync:
            self.is_syncing.set()
            assert self.goes_on.wait(30)
        super().sync(descriptor)


def batch_bytes(path):
    return path.read_bytes().rstrip(b"\0")


def test_a_roll_leaves_the_cutting_to_a_thread_of_the_flush(place, run):
    async def test():
        disk = WatchedDisk()
        async with place.log(disk, segment_bytes=4_096) as log:
            for value in LARGE:
                await log.append(batch_of(value))
            await place.flushed(log)
            sealed = place.files()[:-1]
            assert [len(batch_bytes(path)) for path in sealed] == [
                path.stat().st_size for path in sealed
            ]
            assert len(disk.cutters) >= len(sealed)
            assert current_thread() not in disk.cutters

    run(test)


def test_a_segment_that_is_sealed_during_a_flush_is_cut_by_the_next_one(place, run):
    async def test():
        disk = WatchedDisk(held_sync=2)  # of the second segment
        async with place.log(disk, segment_bytes=4_096) as log:
            disk.count = 0
            first = [log.append(batch_of("v" * 4_000)), log.append(batch_of("v" * 3_000))]
            await asyncio.to_thread(disk.is_syncing.wait, 30)
            later = log.append(batch_of("v" * 4_000))
            disk.goes_on.set()
            await asyncio.gather(*first, later)
            await place.flushed(log)
            second = place.files()[1]
            assert second.stat().st_size == len(batch_bytes(second)) < 4_000
        indexes = place.files(".index")
        assert [verify(path, PARTITION.seed, disk).findings for path in indexes] == [[]] * 3

    run(test)


def test_odd_record_timestamps_roll_and_retain_nothing(place, run):
    async def test():
        async with place.log(segment_ms=3_600_000, retention_ms=3_600_000) as log:
            for number in range(60):
                stamp = [number, number * 10**15, place.clock.now_ms()][number % 3]
                await log.append(batch_of("v", timestamps_ms=[stamp]))
            await log.housekeep()
            assert log.bounds() == Bounds(0, 60, 60)
        assert len(place.files()) == 1

    run(test)


def test_a_new_config_is_taken_when_opened_again(place, run):
    async def test():
        async with place.engine() as engine:
            log = await engine.open(PARTITION, LogConfig())
            await log.append(batch_of("a"))
            await engine.open(PARTITION, LogConfig(retention_ms=1))
            await place.clock.advance(2)
            await engine.housekeep()
            assert log.bounds() == Bounds(1, 1, 1)

    run(test)


def test_appends_that_arrive_during_a_flush_share_the_next_one(place, run):
    async def test():
        disk = FaultyDisk(place.data_dir)
        async with place.log(disk) as log:
            await log.append(batch_of("first"))
            before = disk.sync_count
            appends = [log.append(batch_of("v")) for _ in range(50)]
            assert log.bounds().high_watermark == 1
            await asyncio.gather(*appends)
            assert disk.sync_count - before <= 2
            assert log.bounds() == Bounds(0, 51, 51)

    run(test)


def test_synced_records_are_read_only_after_their_flush(place, run):
    async def test():
        async with place.log() as log:
            append = log.append(batch_of("a"))
            assert log.bounds() == Bounds(0, 0, 1)
            assert await log.read(0, EVERYTHING) == (b"", 0)
            await append
            assert await values_from(log, 0) == ["a"]

    run(test)


def test_a_written_append_is_complete_at_once_and_an_idle_log_has_no_task(place, run):
    async def test():
        async with place.log(durability=Durability.WRITTEN, flush_interval_ms=50) as log:
            before = len(asyncio.all_tasks())
            append = log.append(batch_of("a"))
            assert append.done()
            log.append(batch_of("b"))
            assert len(asyncio.all_tasks()) == before + 1
            await place.clock.advance(50)
            await place.flushed(log)
            assert len(asyncio.all_tasks()) == before

    run(test)


def test_a_restart_adds_no_segment_and_changes_no_file(place, run):
    async def test():
        await place.fill(LARGE, segment_bytes=4_096)
        before = {path: path.stat().st_mtime_ns for path in place.directory.iterdir()}
        for _ in range(3):
            async with place.log(segment_bytes=4_096) as log:
                await values_from(log, 0)
        after = {path: path.stat().st_mtime_ns for path in place.directory.iterdir()}
        assert after == before

    run(test)


def test_a_cold_read_returns_the_same(place, run, monkeypatch):
    async def test():
        await place.fill(LARGE, segment_bytes=16_384)
        async with place.log() as log:
            monkeypatch.setattr(log._disk, "read_cached", lambda *_: False)
            assert await values_from(log, 0, max_bytes=2_000) == LARGE

    run(test)


def test_a_run_keeps_its_bytes_while_it_is_held_and_others_are_read(place, run):
    async def test():
        await place.fill(LARGE, segment_bytes=16_384)
        async with place.log() as log:
            runs, offset = [], 0
            while offset < log.bounds().high_watermark:
                runs.append(await log.read(offset, 2_000))
                offset = runs[-1].next_offset
            values = [record.value.decode() for found in runs for record in records_of(found[0])]
            assert values == LARGE

    run(test)


def test_reads_share_a_buffer_as_long_as_nobody_holds_a_run(place, run):
    async def test():
        await place.fill(LARGE, segment_bytes=1 << 20)
        async with place.log() as log:
            buffers = set()
            for offset in range(20):
                buffers.add(id((await log.read(offset, 2_000)).batches.obj))
            held = await log.read(0, 2_000)
            other = await log.read(0, 2_000)
            assert (len(buffers), {id(held.batches.obj)}) == (1, buffers)
            assert other.batches.obj is not held.batches.obj

    run(test)


def test_a_cancelled_read_leaves_the_log_readable(place, run, monkeypatch):
    async def test():
        await place.fill(LARGE, segment_bytes=4_096)
        async with place.log() as log:
            readings = [asyncio.create_task(log.read(number, 1)) for number in range(40)]
            await asyncio.sleep(0)
            for reading in readings:
                reading.cancel()
            await asyncio.gather(*readings, return_exceptions=True)
            assert await values_from(log, 0) == LARGE

    run(test)


def test_a_segment_grows_in_steps_and_is_cut_at_a_clean_stop(place, run):
    async def test():
        async with place.log() as log:
            await log.append(batch_of("a"))
            assert place.files()[0].stat().st_size == 64 << 10
            await log.append(batch_of("b" * 100_000))
            assert 100_000 < place.files()[0].stat().st_size <= 256 << 10
            size = log.stats().size_bytes
        assert place.files()[0].stat().st_size == size

    run(test)


def test_the_latest_batch_is_the_same_from_memory_and_leaves_it_with_the_next_one(place, run):
    async def test():
        async with place.log(durability=Durability.WRITTEN) as log:
            await log.append(batch_of("a"))
            await log.append(batch_of("b"))
            whole, latest = await log.read(0, EVERYTHING), await log.read(1, EVERYTHING)
            assert bytes(whole.batches).endswith(bytes(latest.batches))
            assert whole.next_offset == latest.next_offset == 2
            [path] = place.files()
            data = path.read_bytes()
            path.write_bytes(data.replace(b"b", b"x"))
            assert await values_from(log, 1) == ["b"]
            await log.append(batch_of("c"))
            assert isinstance(await error_of(log.read(1, EVERYTHING)), DataLossError)
            assert await values_from(log, 2) == ["c"]

    run(test)
