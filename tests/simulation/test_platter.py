"""What a loss of power leaves, and what it may take."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from logbroker.errors import ExhaustedError, UnavailableError

from .disk import Fault, SimulatedDisk
from .platter import Platter

DIRECTORY, FILE = Path("/data/part"), Path("/data/part/file")


class Place:
    """A disk with one synced file of one synced name."""

    def __init__(self, seed=0):
        self.random = Random(seed)
        self.platter = Platter()
        self.counts = Counter()
        self.disk = SimulatedDisk(self.platter, self.random, self.counts)
        self.disk.make_directory(DIRECTORY)
        self.descriptor = self.disk.open(FILE, create=True)
        self.disk.write(self.descriptor, [b"synced"], 0)
        self.disk.sync(self.descriptor)
        self.disk.sync_directory(DIRECTORY)

    def after_power_cut(self):
        self.platter.lose_power(self.random)
        return SimulatedDisk(self.platter, self.random, self.counts)


@pytest.mark.parametrize("seed", range(50))
def test_what_was_synced_survives(seed):
    place = Place(seed)
    place.disk.write(place.descriptor, [b"more"], 6)
    found = place.after_power_cut().read_file(FILE)
    assert found[:6] == b"synced"
    assert b"more".startswith(found[6:]) or set(found[6:]) == {0}


def test_of_what_was_not_synced_all_nothing_or_a_part_survives():
    tails = set()
    for seed in range(200):
        place = Place(seed)
        place.disk.write(place.descriptor, [b"more"], 6)
        tails.add(place.after_power_cut().read_file(FILE)[6:])
    assert tails >= {b"", b"m", b"mo", b"mor", b"more"}


def test_a_later_write_may_survive_without_the_one_before():
    found = set()
    for seed in range(300):
        place = Place(seed)
        place.disk.write(place.descriptor, [b"one"], 6)
        place.disk.write(place.descriptor, [b"two"], 9)
        found.add(place.after_power_cut().read_file(FILE))
    assert b"synced\0\0\0two" in found


def test_names_that_were_not_synced_may_vanish_or_stay():
    found = set()
    for seed in range(50):
        place = Place(seed)
        other = place.disk.open(DIRECTORY / "other", create=True)
        place.disk.sync(other)
        found.add(tuple(place.after_power_cut().names(DIRECTORY)))
    assert found == {("file",), ("file", "other")}


def test_a_rename_is_whole_or_not_at_all():
    found = set()
    for seed in range(50):
        place = Place(seed)
        place.disk.rename(FILE, Path("/data/moved"))
        after = place.after_power_cut()
        found.add((after.exists(FILE), after.exists(Path("/data/moved"))))
    assert found == {(True, False), (False, True)}


def test_a_synced_rename_is_there_in_both_directories():
    for seed in range(20):
        place = Place(seed)
        place.disk.rename(FILE, Path("/data/moved"))
        place.disk.sync_directory(Path("/data"))
        after = place.after_power_cut()
        assert not after.exists(FILE)
        assert after.read_file(Path("/data/moved")) == b"synced"


@pytest.mark.parametrize("seed", range(20))
def test_what_a_failed_sync_was_to_keep_is_never_kept(seed):
    place = Place(seed)
    place.disk.write(place.descriptor, [b"more"], 6)
    place.disk.chances["sync"] = Fault(5, 1.0)
    with pytest.raises(UnavailableError):
        place.disk.sync(place.descriptor)
    place.disk.chances.clear()
    place.disk.sync(place.descriptor)
    assert place.after_power_cut().read_file(FILE) == b"synced"


def test_a_full_disk_takes_nothing_more_and_gives_what_it_has():
    place = Place()
    place.disk.is_full = True
    with pytest.raises(ExhaustedError):
        place.disk.open(DIRECTORY / "other", create=True)
    with pytest.raises(ExhaustedError):
        place.disk.write(place.descriptor, [b"more"], 6)
    assert place.disk.read_file(FILE)[:6] == b"synced"
    place.disk.is_full = False
    place.disk.write(place.descriptor, [b"more"], 6)
    assert place.disk.read_file(FILE) == b"syncedmore"


def test_a_dead_process_changes_nothing():
    place = Place()
    place.disk.kill()
    with pytest.raises(UnavailableError):
        place.disk.write(place.descriptor, [b"more"], 6)
    assert place.platter.lose_power(place.random) == 0
