"""The scrub finds what went bad, tells it as a reader would, and forgets what was mended."""

import os
import shutil

import pytest
from structlog.testing import capture_logs

from logbroker.errors import DataLossError
from logbroker.record.batch import HEADER
from logbroker.storage.file import repair
from logbroker.storage.file.disk import Disk
from logbroker.storage.file.segment import Segment
from logbroker.testing.engine_harness import EVERYTHING, PARTITION, error_of, values_from
from tests.storage.file.scrubbing import (
    SETTINGS,
    VALUES,
    batches_in,
    events,
    flip,
    passed,
    scrubbing,
)

PLACES = {
    "tag": 0, "length": 2, "base offset": 8, "count": 25, "attributes": 43, "producer": 50,
    "records' checksum": 68, "header's checksum": 73, "records' length": 78,
    "first of the records": HEADER.size, "inside": 300, "last byte": -1,
}  # fmt: skip


async def met_by_a_reader(place, offset):
    """Returns what a reader is told at this offset, in a copy that no scrub has seen."""
    copied = place.data_dir.with_name("copied")
    shutil.copytree(place.data_dir, copied)
    (copied / "scrub").unlink(missing_ok=True)
    other = type(place)(copied)
    async with scrubbing(other, scrub_bytes_per_second=0) as (engine, log):
        error = await error_of(log.read(offset, EVERYTHING))
        assert engine.stats().scrubbed_bytes == 0
        return error.reason, str(error), error.details, log.stats().damaged


@pytest.mark.parametrize("batch", ["first", "inside", "last"])
@pytest.mark.parametrize("where", PLACES)
def test_a_flipped_byte_is_found_and_answered_as_if_a_reader_had_met_it(place, run, where, batch):
    async def test():
        await place.fill(VALUES, **SETTINGS)
        path = place.files()[1]
        number = {"first": 0, "inside": 3, "last": -1}[batch]
        start, end = batches_in(path)[number]
        bad = int(path.stem) + number % len(batches_in(path))
        at = PLACES[where]
        flip(path, end - 1 if at < 0 else start + at)
        expected = await met_by_a_reader(place, bad)
        with capture_logs() as logs:
            async with scrubbing(place) as (engine, log):
                assert engine.stats().damaged_range_count == 0
                await passed(place, engine)
                stats = engine.stats()
                assert log.stats().damaged == ((bad, bad + 1),)
                assert stats.damaged_range_count == 1
                assert stats.damaged_partitions == (str(PARTITION),)
                assert stats.scrubbed_segment_count == len(place.files()) - 1
                assert stats.scrub_failure_count == 0
                error = await error_of(log.read(bad, EVERYTHING))
                assert isinstance(error, DataLossError)
                told = error.reason, str(error), error.details, log.stats().damaged
                assert told == expected
                assert await values_before(log, bad) == VALUES[:bad]
                assert await values_from(log, bad + 1) == VALUES[bad + 1 :]
                await passed(place, engine)  # which knows it already
                assert engine.stats().damaged_range_count == 1
        [line] = events(logs, "data lost")
        assert (line["offset"], line["next_offset"]) == (bad, bad + 1)
        assert line["log_level"] == "error"
        assert len(events(logs, "damage found")) == 1

    run(test)


async def values_before(log, offset):
    values = []
    while len(values) < offset:
        run = await log.read(len(values), 1)
        values.append(VALUES[run.next_offset - 1])
    return values


@pytest.mark.parametrize("harm", ["cut", "zeroed", "missing", "first missing", "swapped"])
def test_what_files_have_lost_is_found(place, run, harm):
    async def test():
        await place.fill(VALUES, **SETTINGS)
        paths = place.files()
        bases = [int(path.stem) for path in paths]
        match harm:
            case "cut":
                with paths[1].open("r+b") as file:
                    file.truncate(batches_in(paths[1])[-1][0] + 7)
                lost = bases[2] - 1, bases[2]
            case "zeroed":
                paths[1].write_bytes(bytes(paths[1].stat().st_size))
                lost = bases[1], bases[2]
            case "missing":
                paths[1].unlink()
                lost = bases[1], bases[2]
            case "first missing":
                paths[0].unlink()
                lost = bases[0], bases[1]
            case "swapped":
                paths[1].write_bytes(paths[2].read_bytes())
                lost = bases[1], bases[2]
        async with scrubbing(place) as (engine, log):
            await passed(place, engine)
            assert log.stats().damaged == (lost,)
            error = await error_of(log.read(lost[0], EVERYTHING))
            assert error.details["next_offset"] == str(lost[1])
            assert await values_from(log, lost[1]) == VALUES[lost[1] :]

    run(test)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("harm", ["missing", "empty", "noise", "flipped", "of another segment"])
def test_an_index_file_that_is_not_right_is_made_anew_and_is_no_damage(place, run, suffix, harm):
    async def test():
        await place.fill(VALUES, **SETTINGS)
        path, other = place.files(suffix)[1:3]
        right = path.read_bytes()
        match harm:
            case "missing":
                path.unlink()
            case "empty":
                path.write_bytes(b"")
            case "noise":
                path.write_bytes(os.urandom(len(right)))
            case "flipped":
                flip(path, -5)
            case "of another segment":
                shutil.copy(other, path)
        async with scrubbing(place) as (engine, log):
            await passed(place, engine)
            assert path.read_bytes() == right
            assert log.stats().damaged == ()
            assert await values_from(log, 0) == VALUES

    run(test)


def test_damage_that_an_operator_dropped_is_damage_no_more_and_readers_are_told_still(place, run):
    async def test():
        await place.fill(VALUES, **SETTINGS)
        path = place.files()[1]
        bad = int(path.stem) + 2
        flip(path, batches_in(path)[2][0] + 90)
        async with scrubbing(place) as (engine, _):
            await passed(place, engine)
            assert engine.stats().damaged_range_count == 1
        plan = repair.plan(path, PARTITION.seed, Disk(), {repair.Choice.DROP_DAMAGE})
        repair.carry_out(plan, PARTITION.seed, Disk())
        with capture_logs() as logs:
            async with scrubbing(place) as (engine, log):
                await passed(place, engine)
                error = await error_of(log.read(bad, EVERYTHING))
                assert isinstance(error, DataLossError)
                assert error.details["next_offset"] == str(bad + 1)
                assert (engine.stats().damaged_range_count, log.stats().damaged) == (0, ())
                assert await values_from(log, bad + 1) == VALUES[bad + 1 :]
        assert events(logs, "data lost") == events(logs, "damage found") == []

    run(test)


def test_damage_that_is_mended_in_its_place_is_forgotten(place, run):
    async def test():
        await place.fill(VALUES, **SETTINGS)
        path = place.files()[1]
        bad = int(path.stem) + 2
        flip(path, batches_in(path)[2][0] + 90)
        async with scrubbing(place) as (engine, log):
            await passed(place, engine)
            assert isinstance(await error_of(log.read(bad, EVERYTHING)), DataLossError)
            flip(path, batches_in(path)[2][0] + 90)
            with capture_logs() as logs:
                await passed(place, engine)
            assert engine.stats().damaged_range_count == 0
            assert await values_from(log, 0) == VALUES
        assert len(events(logs, "damage gone")) == 1

    run(test)


def test_damage_goes_with_its_segment(place, run):
    async def test():
        await place.fill(VALUES, **SETTINGS)
        flip(place.files()[0], 100)
        async with scrubbing(place) as (engine, log):
            await passed(place, engine)
            assert engine.stats().damaged_range_count == 1
            await log.trim(20)
            assert engine.stats().damaged_range_count == 0

    run(test)


def test_nobody_cuts_a_damaged_segment_while_all_of_it_is_mapped(place, run, monkeypatch):
    """Behind the end of a file that was mapped before it was cut lies a SIGBUS."""

    async def test():
        await place.fill(VALUES, **SETTINGS)
        flip(place.files()[1], HEADER.size)
        scans = []
        async with scrubbing(place) as (engine, log):
            examine = Segment.examine

            def noting(*args):
                scans.append(log._upkeep.lock.locked())
                return examine(*args)

            monkeypatch.setattr(Segment, "examine", noting)
            await passed(place, engine)
            assert engine.stats().damaged_range_count == 1
        assert scans == [True]

    run(test)
