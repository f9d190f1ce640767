"""File names and offsets, both ways."""

from pathlib import Path

import pytest

from logbroker.storage.file import paths


@pytest.mark.parametrize("offset", [0, 7, 1 << 40, (1 << 63) - 1])
def test_a_name_gives_back_its_offset(offset):
    name = paths.segment_path(Path("x"), offset).name
    assert paths.base_offset_of(name) == offset
    assert len(name) == 24


@pytest.mark.parametrize(
    "name", ["1.log", "0" * 20, "0" * 20 + ".log.tmp", "-" + "0" * 19 + ".log"]
)
def test_other_names_have_no_offset(name):
    assert paths.base_offset_of(name) is None


def test_names_sort_as_offsets_do():
    offsets = [0, 9, 10, 99, 1 << 50]
    names = [paths.segment_path(Path(), offset).name for offset in offsets]
    assert names == sorted(names)


@pytest.mark.parametrize("name", ["00", "x", "", "-1", "1.tmp", "٣"])
def test_only_plain_numbers_are_partitions(name):
    assert paths.partition_number_of(name) is None
    assert paths.partition_number_of("10") == 10
