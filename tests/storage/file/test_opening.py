"""A start after a crash, or after worse (C01, C10)."""

import shutil

import pytest

from logbroker.config import LogConfig
from logbroker.errors import DataLossError
from logbroker.storage.engine import Bounds
from logbroker.testing.engine_harness import (
    EVERYTHING,
    PARTITION,
    batch_of,
    error_of,
    values_from,
)
from logbroker.testing.faulty_disk import FaultyDisk

VALUES = ["first" * 20, "second" * 20, "third" * 20]


async def kill_after(place, values, **settings):
    """Writes a batch for each value, and dies."""
    disk = FaultyDisk(place.data_dir)
    async with place.engine(disk) as engine:
        log = await engine.open(PARTITION, LogConfig(**settings))
        for value in values:
            await log.append(batch_of(value))
        disk.kill()


async def values_of(place):
    async with place.log() as log:
        return await values_from(log, 0)


def content_of(path):
    return path.read_bytes().rstrip(b"\0")


def test_after_a_kill_everything_answered_is_there(place, run):
    async def test():
        await kill_after(place, VALUES)
        assert await values_of(place) == VALUES
        async with place.log() as log:
            assert log.bounds() == Bounds(0, 3, 3)
            assert log.stats().torn_bytes == 0

    run(test)


def cut(by):
    return lambda data, last: data[: len(data) - by * last // 10]


TAILS = {
    "a byte is cut": lambda data, last: data[:-1],
    **{f"{tenths} tenths of the last batch are cut": cut(tenths) for tenths in range(1, 10)},
    "the last bytes are zeros": lambda data, last: data[:-5] + bytes(5),
}


@pytest.mark.parametrize("harm", TAILS.values(), ids=TAILS)
def test_a_torn_batch_is_dropped_whole_and_the_log_goes_on(place, run, harm):
    async def test():
        await kill_after(place, VALUES)
        [path] = place.files()
        data = content_of(path)
        path.write_bytes(harm(data, len(data) // 3))
        async with place.log() as log:
            assert log.bounds() == Bounds(0, 2, 2)
            assert log.stats().torn_bytes > 0
            assert (await log.append(batch_of("next"))).header.base_offset == 2
        for _ in range(2):
            assert await values_of(place) == [*VALUES[:2], "next"]

    run(test)


@pytest.mark.parametrize("tail", [bytes(4_096), b"\x0a\x99" * 2_048], ids=["zeros", "noise"])
@pytest.mark.parametrize("is_clean", [True, False])
def test_what_is_appended_to_the_file_costs_no_batch(place, run, tail, is_clean):
    async def test():
        await (place.fill(VALUES) if is_clean else kill_after(place, VALUES))
        [path] = place.files()
        path.write_bytes(content_of(path) + tail)
        async with place.log() as log:
            assert log.stats().torn_bytes == len(tail.rstrip(b"\0"))
            assert (await log.append(batch_of("next"))).header.base_offset == 3
        assert await values_of(place) == [*VALUES, "next"]

    run(test)


def test_a_batch_lost_after_a_clean_stop_is_reported_and_its_offset_not_given_again(place, run):
    async def test():
        await place.fill(VALUES)
        [path] = place.files()
        path.write_bytes(path.read_bytes()[:-1])
        async with place.log() as log:
            assert log.bounds() == Bounds(0, 3, 3)
            assert (await log.append(batch_of("next"))).header.base_offset == 3
            assert (await log.read(0, EVERYTHING)).next_offset == 2
            error = await error_of(log.read(2, EVERYTHING))
            assert isinstance(error, DataLossError)
            assert (error.details["offset"], error.details["next_offset"]) == ("2", "3")
            assert await values_from(log, 3) == ["next"]
            assert log.stats().damaged == ((2, 3),)

    run(test)


def test_damage_with_a_batch_behind_it_survives_a_kill_and_is_not_cut(place, run):
    async def test():
        await kill_after(place, VALUES)
        [path] = place.files()
        data = bytearray(path.read_bytes())
        data[len(content_of(path)) // 2] ^= 1
        path.write_bytes(data)
        async with place.log() as log:
            assert await log.append(batch_of("next"))
            assert (await log.read(0, EVERYTHING)).next_offset == 1
            assert isinstance(await error_of(log.read(1, EVERYTHING)), DataLossError)
            assert await values_from(log, 2) == [VALUES[2], "next"]
        assert path.read_bytes().startswith(content_of(path)[:200])

    run(test)


@pytest.mark.parametrize("left", ["checkpoint only", "an empty last segment"])
def test_offsets_never_go_back_whatever_file_is_left(place, run, left):
    async def test():
        await place.fill([value * 10 for value in VALUES * 5], segment_bytes=4_096)
        assert len(place.files()) > 2
        if left == "checkpoint only":
            for path in [*place.files(), *place.files(".index"), *place.files(".timeindex")]:
                path.unlink()
        else:
            place.files()[-1].write_bytes(b"")
        async with place.log() as log:
            assert log.bounds() == Bounds(0, 15, 15)
            assert (await log.append(batch_of("next"))).header.base_offset == 15
            error = await error_of(log.read(14, EVERYTHING))
            assert isinstance(error, DataLossError)
            assert error.details["next_offset"] == "15"
            assert await values_from(log, 15) == ["next"]

    run(test)


@pytest.mark.parametrize("missing", [0, 1, -1])
def test_a_missing_segment_is_damage_and_the_rest_is_read(place, run, missing):
    async def test():
        values = [f"{number:04}" * 100 for number in range(40)]
        await place.fill(values, segment_bytes=4_096)
        paths = place.files()
        bases = [*(int(path.stem) for path in paths), 40]
        paths[missing].unlink()
        at = missing % len(paths)
        async with place.log() as log:
            error = await error_of(log.read(bases[at], EVERYTHING))
            assert isinstance(error, DataLossError)
            assert error.details["next_offset"] == str(bases[at + 1])
            assert await values_from(log, bases[at + 1]) == values[bases[at + 1] :]
            assert await log.find(0) == (bases[1] if at == 0 else 0)

    run(test)


def test_damage_over_the_end_of_a_segment_names_the_next_good_offset(place, run):
    async def test():
        values = [f"{number:04}" * 100 for number in range(40)]
        await place.fill(values, segment_bytes=4_096)
        first, second = place.files()[:2]
        first.write_bytes(first.read_bytes()[:-10])
        data = bytearray(second.read_bytes())
        data[100] ^= 1
        second.write_bytes(data)
        base = int(second.stem)
        async with place.log() as log:
            assert (await log.read(0, EVERYTHING)).next_offset == base - 1
            error = await error_of(log.read(base - 1, EVERYTHING))
            assert error.details["next_offset"] == str(base + 1)
            assert await values_from(log, base + 1) == values[base + 1 :]

    run(test)


def test_every_damaged_byte_of_a_sealed_segment_costs_its_batch_alone(place, run):
    async def test():
        values = [f"{number:02}" * 300 for number in range(12)]
        await place.fill(values, segment_bytes=4_096)
        path = place.files()[0]
        whole = path.read_bytes()
        size = len(whole) // int(place.files()[1].stem)
        for at in range(0, len(whole), 157):
            data = bytearray(whole)
            data[at] ^= 0x20
            path.write_bytes(data)
            bad = at // size
            async with place.log() as log:
                if bad:
                    assert (await log.read(0, EVERYTHING)).next_offset == bad
                error = await error_of(log.read(bad, EVERYTHING))
                assert isinstance(error, DataLossError), at
                assert error.details["next_offset"] == str(bad + 1)
                assert await values_from(log, bad + 1) == values[bad + 1 :]

    run(test)


def test_stray_temporary_files_are_removed(place, run):
    async def test():
        await place.fill(VALUES)
        stray = place.directory / "checkpoint.tmp"
        stray.write_bytes(b"half")
        assert await values_of(place) == VALUES
        assert not stray.exists()

    run(test)


def test_a_partition_directory_copied_elsewhere_holds_no_batch_of_ours(place, run):
    async def test():
        await place.fill(VALUES)
        other = PARTITION._replace(partition=1)
        async with place.log(partition=other) as log:
            await log.append(batch_of("own"))
        target = place.directory.with_name("1") / place.files()[0].name
        shutil.copy(place.files()[0], target)
        async with place.log(partition=other) as log:
            assert isinstance(await error_of(log.read(0, EVERYTHING)), DataLossError)

    run(test)
