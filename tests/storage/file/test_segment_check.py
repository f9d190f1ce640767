"""A segment read in steps: whatever is wrong with it is found as a scan of all of it finds it."""

import random

import pytest

from logbroker.record.batch import HEADER
from logbroker.storage.file.disk import Disk
from logbroker.storage.file.segment import Segment
from logbroker.storage.file.segment_check import STEP_BYTES, SegmentCheck
from logbroker.testing.engine_harness import batch_of

SEED = 7
SIZES = [3, 30, 1, 300, 9, 90]
STEPS = [HEADER.size + 1, 200, STEP_BYTES]
"""Less than most batches, one or two of them, all of them."""


def content(sizes=SIZES):
    data, ends, offset = b"", [], 0
    for size in sizes:
        batch = batch_of("v" * size).stamped(base_offset=offset, append_time_ms=5)
        data += batch.encode(SEED)
        ends.append(len(data))
        offset = batch.header.next_offset
    return data, ends


@pytest.fixture
def segment(tmp_path):
    """Six batches, sealed."""
    made = Segment(tmp_path, 0, SEED)
    made.file.path.write_bytes(content()[0])
    made.next_offset = len(SIZES)
    return made


def checked(segment, step_bytes=STEP_BYTES):
    check = SegmentCheck(segment, Disk(), step_bytes)
    sizes = [check.step().size]
    while check.found is None:
        sizes.append(check.step().size)
    return check, sizes


def same_as_a_scan(segment, step_bytes):
    check, _ = checked(segment, step_bytes)
    contents, found, size = segment.examine(Disk())
    assert (check.found.next_offset, check.found.damage) == (found.next_offset, found.damage)
    assert check.contents.encode(size, SEED) == contents.encode(size, SEED)
    return found


@pytest.mark.parametrize("step_bytes", STEPS)
def test_a_sound_segment_is_read_once_and_little_more(segment, step_bytes):
    found = same_as_a_scan(segment, step_bytes)
    assert (found.damage, found.next_offset) == ((), len(SIZES))
    _, sizes = checked(segment, step_bytes)
    whole = segment.file.path.stat().st_size
    assert whole <= sum(sizes) <= (len(SIZES) + 1) * whole
    assert max(sizes) <= max(step_bytes, HEADER.size + 400)
    assert checked(segment)[1] == [whole]


@pytest.mark.parametrize("step_bytes", STEPS)
def test_any_flipped_bit_is_found(segment, step_bytes):
    data, ends = content()
    for at in range(len(data)):
        harmed = bytearray(data)
        harmed[at] ^= 1 << at % 8
        segment.file.path.write_bytes(harmed)
        found = same_as_a_scan(segment, step_bytes)
        batch = next(number for number, end in enumerate(ends) if at < end)
        if batch + 1 < len(ends):
            [damage] = found.damage
            assert (damage.offset, damage.next_offset) == (batch, batch + 1)
        else:
            assert (found.next_offset, found.damage) == (batch, ())


@pytest.mark.parametrize("seed", range(20))
def test_so_is_whatever_else_may_have_happened(segment, seed):
    chance = random.Random(seed)
    data, _ = content()
    for _ in range(20):
        harmed = bytearray(data)
        for _ in range(chance.randint(1, 3)):
            first = chance.randrange(len(data))
            end = min(first + chance.randint(1, 400), len(data))
            match chance.choice(["zeros", "noise", "gone", "again"]):
                case "zeros":
                    harmed[first:end] = bytes(end - first)
                case "noise":
                    harmed[first:end] = chance.randbytes(end - first)
                case "gone":
                    del harmed[first:end]
                case "again":
                    harmed[first:first] = data[first:end]
        segment.file.path.write_bytes(harmed)
        found = same_as_a_scan(segment, chance.choice(STEPS))
        # and what is known by then is passed over the next time, and tells the same
        segment.note_scan(found, segment.next_offset)
        lost = list(segment.lost)
        again = same_as_a_scan(segment, chance.choice(STEPS))
        segment.note_scan(again, segment.next_offset)
        assert segment.lost == lost
        segment.lost, segment.gaps, segment.found = [], set(), None


def test_damage_that_is_known_costs_no_scan_of_the_whole_file(segment):
    data, ends = content([50] * 40)
    segment.next_offset = 40
    harmed = bytearray(data)
    harmed[ends[4] + 90] ^= 1
    harmed[-1] ^= 1
    segment.file.path.write_bytes(harmed)
    check, sizes = checked(segment, 400)
    assert sizes[-1] == len(data)
    segment.note_scan(check.found, segment.next_offset)
    assert segment.lost == [(5, 6), (39, 40)]
    check, sizes = checked(segment, 400)
    assert max(sizes) <= 400
    segment.note_scan(check.found, segment.next_offset)
    assert segment.lost == [(5, 6), (39, 40)]


def test_new_damage_behind_an_end_that_was_known_is_not_taken_for_that_end(segment):
    data, ends = content()
    segment.file.path.write_bytes(data[: ends[2]])
    segment.next_offset = 3
    segment.note_scan(segment.examine(Disk()).scan, 3)
    harmed = bytearray(data)
    harmed[ends[2] + 90] ^= 1
    segment.file.path.write_bytes(harmed)
    segment.next_offset = len(SIZES)
    segment.found = segment.examine(Disk(), ends[2]).scan  # as of a time when it was shorter
    same_as_a_scan(segment, STEP_BYTES)


def test_a_batch_larger_than_a_step_is_read_whole(segment):
    data, _ = content([10, 2 * STEP_BYTES, 10])
    segment.next_offset = 3
    segment.file.path.write_bytes(data)
    check, sizes = checked(segment)
    assert (check.found.next_offset, check.found.damage) == (3, ())
    assert len(sizes) <= 4
    harmed = bytearray(data)
    harmed[len(data) // 2] ^= 1
    segment.file.path.write_bytes(harmed)
    check, _ = checked(segment)
    [damage] = check.found.damage
    assert (damage.offset, damage.next_offset) == (1, 2)


def test_zeros_behind_the_last_batch_are_no_harm(segment):
    segment.file.path.write_bytes(content()[0] + bytes(10_000))
    assert same_as_a_scan(segment, 200).torn_bytes == 0


def test_an_empty_file_has_lost_all_that_it_had(segment):
    segment.file.path.write_bytes(b"")
    check, _ = checked(segment)
    segment.note_scan(check.found, segment.next_offset)
    assert segment.lost == [(0, len(SIZES))]
