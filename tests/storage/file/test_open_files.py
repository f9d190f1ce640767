"""A bounded number of descriptors."""

import errno
import os
import subprocess
import sys

import pytest

from logbroker.storage.file.disk import Disk
from logbroker.storage.file.open_files import CLOSED, OpenFile, OpenFiles
from logbroker.testing.faulty_disk import FaultyDisk


@pytest.fixture
def made(tmp_path):
    for number in range(6):
        (tmp_path / str(number)).write_bytes(b"%d" % number)
    return [OpenFile(tmp_path / str(number)) for number in range(6)]


def is_open(file):
    return file.descriptor != CLOSED


def test_the_least_recently_used_file_closes(made):
    files = OpenFiles(Disk(), 3)
    for index in (0, 1, 2, 0, 3):
        files.descriptor(made[index])
    assert [is_open(file) for file in made] == [True, False, True, True, False, False]
    assert files.open_count == 3


def test_a_held_file_stays_open_and_its_descriptor_good(made):
    files = OpenFiles(Disk(), 2)
    with files.held(made[0]) as descriptor:
        for file in made[1:]:
            files.descriptor(file)
        assert os.pread(descriptor, 1, 0) == b"0"
    assert files.open_count == 2


def test_files_that_are_synced_close_before_those_that_are_not(made):
    files = OpenFiles(Disk(), 2)
    files.descriptor(made[0])
    made[0].written += 1
    files.descriptor(made[1])
    files.descriptor(made[2])
    assert (is_open(made[0]), is_open(made[1])) == (True, False)


def test_where_all_are_written_to_the_oldest_is_synced_in_place(made, tmp_path):
    disk = FaultyDisk(tmp_path)
    files = OpenFiles(disk, 2)
    for file in made[:2]:
        files.descriptor(file)
        file.written += 1
    files.descriptor(made[2])
    assert (disk.sync_count, made[0].is_dirty, is_open(made[0])) == (1, False, False)
    made[2].written += 1
    disk.fail("sync", errno.EIO)
    files.descriptor(made[3])
    assert made[1].failure is not None
    assert files.open_count == 2


@pytest.mark.slow
@pytest.mark.parametrize(("hard", "expected"), [(4_096, 2_000), (1_500, 1_500)])
def test_a_process_may_have_as_many_files_as_are_wanted_or_its_hard_limit(hard, expected):
    program = """
import resource
from logbroker.storage.file.disk import raise_open_files_limit
resource.setrlimit(resource.RLIMIT_NOFILE, (1_024, HARD))
for wanted in (2_000, 500):
    raise_open_files_limit(wanted)
    print(*resource.getrlimit(resource.RLIMIT_NOFILE))
""".replace("HARD", str(hard))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines() == [f"{expected} {hard}"] * 2


def test_a_removed_file_closes_when_nobody_holds_it_any_more(made):
    files = OpenFiles(Disk(), 3)
    with files.held(made[0]):
        files.remove(made[0])
        assert is_open(made[0])
    assert not is_open(made[0])
    assert files.open_count == 0
