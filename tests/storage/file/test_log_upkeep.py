"""What retention removes of a partition, and what it keeps; its readers (C15, C17)."""

import asyncio

import pytest

from logbroker.config import LogConfig
from logbroker.errors import OffsetOutOfRangeError
from logbroker.storage.engine import Bounds
from logbroker.storage.file.checkpoint import Checkpoint
from logbroker.storage.file.disk import Disk
from logbroker.testing.engine_harness import (
    PARTITION,
    batch_of,
    error_of,
    values_from,
)

LARGE = [f"{number:02}" * 300 for number in range(40)]


def test_retention_by_time_takes_the_active_segment_too_and_keeps_the_next_offset(place, run):
    async def test():
        async with place.engine(check_interval_ms=1_000) as engine:
            log = await engine.open(PARTITION, LogConfig(retention_ms=5_000))
            await log.append(batch_of("a", "b"))
            await place.clock.advance(4_500)
            await engine.housekeep()
            assert log.bounds() == Bounds(0, 2, 2)
            await place.clock.advance(1_500)
            await engine.housekeep()
            assert log.bounds() == Bounds(2, 2, 2)
            assert place.files() == []
        async with place.log() as log:
            assert log.bounds() == Bounds(2, 2, 2)
            assert (await log.append(batch_of("c"))).header.base_offset == 2

    run(test)


def test_retention_by_size_keeps_at_least_that_much(place, run):
    async def test():
        async with place.log(segment_bytes=4_096, retention_bytes=10_000) as log:
            for value in LARGE:
                await log.append(batch_of(value))
            await log.housekeep()
            start = log.bounds().log_start_offset
            assert 10_000 <= log.stats().size_bytes <= 10_000 + 4_096
            assert await values_from(log, start) == LARGE[start:]
            assert int(place.files()[0].stem) == start
            error = await error_of(log.read(0, 1))
            assert isinstance(error, OffsetOutOfRangeError)
            assert error.details["log_start_offset"] == str(start)

    run(test)


class _Noting(Disk):
    """Calls `on_start` while a later log start is written down."""

    on_start = staticmethod(lambda: None)

    def write_files(self, directory, files, hints=None):
        super().write_files(directory, files, hints)
        checkpoint = Checkpoint.decode(files.get(directory / "checkpoint", b""))
        if checkpoint and checkpoint.log_start_offset:
            self.on_start()


@pytest.mark.parametrize("needed, start", [(0, 0), (11, 10), (40, 40)])
def test_retention_keeps_what_somebody_needs_since_it_has_decided_what_goes(
    place, run, needed, start
):
    """A record that was given up in that moment was gone before its dead letter was copied."""

    async def test():
        disk = _Noting()
        async with place.engine(disk) as engine:
            log = await engine.open(PARTITION, LogConfig(segment_bytes=4_096, retention_ms=1_000))
            for value in LARGE:
                await log.append(batch_of(value))
            await place.flushed(log)
            needed_from = []
            engine.keep_needed(lambda _: min(needed_from, default=None))
            disk.on_start = lambda: needed_from.append(needed)
            place.clock.step_wall(1_500)
            await engine.housekeep()
            assert needed_from
            assert log.bounds() == Bounds(start, 40, 40)
            assert len(await values_from(log, start)) == 40 - start
        async with place.log() as log:
            assert log.bounds() == Bounds(start, 40, 40)

    run(test)


def test_reads_under_retention_get_their_records_or_the_new_bounds(place, run):
    async def test():
        async with place.log(segment_bytes=4_096) as log:
            for value in LARGE:
                await log.append(batch_of(value))
            await asyncio.sleep(0)

            async def read_all():
                offset, seen = 0, []
                while offset < 40:
                    try:
                        run = await log.read(offset, 700)
                    except OffsetOutOfRangeError as error:
                        offset = int(error.details["log_start_offset"])
                        continue
                    seen.append(offset)
                    offset = run.next_offset
                    await asyncio.sleep(0)
                return seen

            readers = [asyncio.create_task(read_all()) for _ in range(4)]
            finders = [asyncio.create_task(log.find(0)) for _ in range(4)]
            for offset in range(5, 40, 5):
                await asyncio.sleep(0)
                await log.trim(offset)
            for seen in await asyncio.gather(*readers):
                assert seen == sorted(seen)
                assert seen[-1] == 39
            assert all(found is not None for found in await asyncio.gather(*finders))

    run(test)


def test_removed_files_are_not_held_open(place, run):
    async def test():
        async with place.engine() as engine:
            log = await engine.open(PARTITION, LogConfig(segment_bytes=4_096))
            for value in LARGE:
                await log.append(batch_of(value))
            await values_from(log, 0)
            before = engine.stats().open_file_count
            await log.trim(40)
            assert before > 3
            assert engine.stats().open_file_count == 1

    run(test)
