"""Damage that comes while the log is open (C05)."""

import pytest

from logbroker.config import LogConfig
from logbroker.errors import DataLossError
from logbroker.testing.engine_harness import (
    EVERYTHING,
    PARTITION,
    batch_of,
    error_of,
    values_from,
)
from logbroker.testing.faulty_disk import FaultyDisk

VALUES = [str(number) for number in range(9)]


async def fill_and_die(place):
    disk = FaultyDisk(place.data_dir)
    async with place.engine(disk) as engine:
        log = await engine.open(PARTITION, LogConfig())
        for value in VALUES:
            await log.append(batch_of(value))
        disk.kill()


async def lost_at(log, offset):
    """Returns which range the log says is lost."""
    error = await error_of(log.read(offset, EVERYTHING))
    assert isinstance(error, DataLossError)
    return int(error.details["offset"]), int(error.details["next_offset"])


def spoil(place, number):
    """Changes a bit of the batch of this number; all are of one size."""
    [path] = place.files()
    size = len(path.read_bytes().rstrip(b"\0")) // len(VALUES)
    with path.open("r+b") as file:
        file.seek(number * size + size - 1)
        last = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([last[0] ^ 1]))


@pytest.mark.parametrize("first", [None, 1])
def test_damage_behind_a_scan_is_found_and_costs_no_good_batch(place, run, first):
    """All up to the next entry of the index, 4 KiB later, was lost with it until a restart."""

    async def test():
        await fill_and_die(place)  # the next start scans the segment
        async with place.log() as log:
            if first is not None:
                spoil(place, first)
                assert await lost_at(log, first) == (first, first + 1)
            spoil(place, 3)
            assert await lost_at(log, 3) == (3, 4)
            assert await values_from(log, 4) == VALUES[4:]
            await log.append(batch_of("more"))
            assert await values_from(log, 4) == [*VALUES[4:], "more"]

    run(test)
